// Prints what it was given, as often as it is told, and ends with the code that it is told.
import { EXIT } from "../../../../../src/base/error-row.ts";
import type { ExitCode } from "../../../../../src/base/error-row.ts";
import { BaseCommand } from "../../../../../src/cli/base-command.ts";
import { Args, Flags } from "../../../../../src/cli/oclif.ts";

export class Print extends BaseCommand {
  static override readonly summary = "Print what is given.";
  static override readonly args = { file: Args.string({ ignoreStdin: true }) };
  static override readonly flags = {
    times: Flags.integer({ summary: "How often.", default: 1, helpValue: "N" }),
    paused: Flags.boolean(),
    late: Flags.boolean({ dependsOn: ["paused"] }),
  };

  override async run(): Promise<ExitCode> {
    const { args, flags } = await this.parse(Print);
    const result = { file: args.file, commandLine: this.commandLine };
    const results = Array.from({ length: flags.times }, () => result);
    this.tell("printing");
    this.print(results, `${args.file ?? "nothing"}\n`.repeat(flags.times));
    return flags.paused ? EXIT.paused : EXIT.done;
  }

  protected override takesCommandLine(): boolean {
    return true;
  }
}
