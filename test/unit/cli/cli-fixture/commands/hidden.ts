// Is not shown, and not parsed either.
import type { ExitCode } from "../../../../../src/base/error-row.ts";
import { EXIT } from "../../../../../src/base/error-row.ts";
import { BaseCommand } from "../../../../../src/cli/base-command.ts";

export class Hidden extends BaseCommand {
  static override readonly summary = "Not shown.";
  static override readonly hidden = true;

  override async run(): Promise<ExitCode> {
    await this.parse(Hidden);
    return EXIT.done;
  }
}
