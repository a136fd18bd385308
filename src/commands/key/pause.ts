// `rollout key pause`
import { Args } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { steerKeys } from "../../compose/key-deeds.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class KeyPause extends OperatorCommand {
  static override readonly summary = "Pause keys: no more of their items start.";
  static override readonly description =
    "Items that execute finish. Other keys are not affected. A sealed run does not complete while items of a paused key wait.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> customer-17"];
  static override readonly args = {
    key: Args.string({ description: "Keys.", required: true, multiple: true, ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeyPause);
    const { object, text } = await this.askRun(flags, (client) => steerKeys(client, "pause", args.key));
    this.print([object], text);
  }
}
