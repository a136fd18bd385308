// `rollout pause`
import { EXIT } from "../base/error-table.ts";
import type { ExitCode } from "../base/error-table.ts";
import { printable } from "../base/safe-text.ts";
import { Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";

export class Pause extends OperatorCommand {
  static override readonly summary = "Give out nothing more until the run is resumed.";
  static override readonly description =
    "What executes goes on to its end, and its results are recorded. `rollout status` and `rollout explain` show the reason.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    '<%= config.bin %> <%= command.id %> --reason "the model is being replaced"',
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    reason: Flags.string({
      summary: "Why, for those who wonder.",
      default: "by an operator",
      helpValue: "TEXT",
    }),
  };

  override async run(): Promise<ExitCode> {
    const { flags } = await this.parse(Pause);
    const status = await this.askRun(flags, async (client) => {
      await client.pause(flags.reason);
      return client.status();
    });
    const { state, pauseReason, running } = status;
    const items = running === 1 ? "item" : `${running} items`;
    const left = running === 0 ? "no worker has anything" : `workers finish the ${items} that they have`;
    const text =
      state === "paused"
        ? `The run is paused (${printable(pauseReason ?? "")}); ${left}.\n`
        : `The run is ${state}: there is nothing to pause.\n`;
    this.print([{ state, pause_reason: pauseReason ?? null, running }], text);
    return EXIT.done;
  }
}
