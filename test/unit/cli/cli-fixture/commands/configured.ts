// Reads the configuration and prints a part of it; logs a line.
import { EXIT } from "../../../../../src/base/error-row.ts";
import type { ExitCode } from "../../../../../src/base/error-row.ts";
import { BaseCommand } from "../../../../../src/cli/base-command.ts";
import { configFlags } from "../../../../../src/cli/setting-flags.ts";

export class Configured extends BaseCommand {
  static override readonly summary = "Read the configuration.";
  static override readonly flags = configFlags("worker");

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Configured);
    const config = await this.loadConfig("worker", flags);
    (await this.openLog(config.log)).info("configured", { slots: config.worker.slots });
    this.print([config.worker], `${config.worker.slots} slots\n`);
    return EXIT.done;
  }
}
