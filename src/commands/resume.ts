// `rollout resume`
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { resumeRun } from "../compose/run-deeds.ts";

export class Resume extends OperatorCommand {
  static override readonly summary = "Resume a paused run.";
  static override readonly description =
    "A limit that paused the run (failures, time) counts from zero again. A run that is not paused does not change.";
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
