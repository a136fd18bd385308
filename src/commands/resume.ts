// `rollout resume`
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { resumeRun } from "../compose/run-deeds.ts";

export class Resume extends OperatorCommand {
  static override readonly summary = "Let a paused run go on.";
  static override readonly description =
    "A limit that paused the run (failures, time) is counted anew from this moment. A run that is not paused stays as it is.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { flags } = await this.parse(Resume);
    const { object, text } = await this.askRun(flags, resumeRun);
    this.print([object], text);
  }
}
