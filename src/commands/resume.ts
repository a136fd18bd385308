// `rollout resume`
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Resume extends OperatorCommand {
  static override readonly summary = "Let a paused run go on.";
  static override readonly description =
    "A limit that paused the run (failures, time) is counted anew from this moment. A run that is not paused stays as it is.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    "<%= config.bin %> <%= command.id %> --json",
  ];
  static override readonly flags = configFlags("operator");

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Resume);
    const { state, pending, running } = await this.askRun(flags, async (client) => {
      await client.resume();
      return client.status();
    });
    const left = pending + running;
    const isOver = state === "complete" || state === "cancelled";
    const text = isOver
      ? `The run is ${state}: there is nothing to resume.\n`
      : `The run goes on: ${left} item${left === 1 ? " is" : "s are"} not final yet.\n`;
    this.print([{ state, pending, running }], text);
    return EXIT.done;
  }
}
