// `rollout key retire`
import { Args } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { steerKeys } from "../../compose/key-deeds.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class KeyRetire extends OperatorCommand {
  static override readonly summary = "Delete idle keys with their states.";
  static override readonly description =
    "Their results stay. A later item of such a key starts without a state. A key with items that are not final is not deleted.";
  static override readonly examples = ["<%= config.bin %> <%= command.id %> customer-17"];
  static override readonly args = {
    key: Args.string({ description: "Keys.", required: true, multiple: true, ignoreStdin: true }),
  };
  static override readonly flags = configFlags("operator");

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeyRetire);
    const { object, text } = await this.askRun(flags, (client) => steerKeys(client, "retire", args.key));
    this.print([object], text);
  }
}
