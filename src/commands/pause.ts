// `rollout pause`
import { Flags } from "../cli/oclif.ts";
import { configFlags } from "../cli/setting-flags.ts";
import { OperatorCommand } from "../compose/operator-command.ts";
import { pauseRun, UNNAMED_REASON } from "../compose/run-deeds.ts";

export class Pause extends OperatorCommand {
  static override readonly summary = "Pause the run: no more items are assigned until it is resumed.";
  static override readonly description =
    "Items that execute finish, and their results are recorded. `rollout status` and `rollout explain` show the reason.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %>",
    '<%= config.bin %> <%= command.id %> --reason "the model is being replaced"',
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    reason: Flags.string({
      summary: "The reason, which `rollout status` and `rollout explain` show.",
      default: UNNAMED_REASON,
      helpValue: "TEXT",
    }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(Pause);
    const { object, text } = await this.askRun(flags, (client) => pauseRun(client, flags.reason));
    this.print([object], text);
  }
}
