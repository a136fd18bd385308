// `rollout key resume`
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { parkedKeys, steerKeys } from "../../compose/key-deeds.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class KeyResume extends OperatorCommand {
  static override readonly summary = "Resume paused keys.";
  static override readonly description =
    "It does not resume a key that a failed item has parked: `rollout retry` runs that item again, `rollout key skip` continues without it.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> customer-17",
    "<%= config.bin %> <%= command.id %> --all",
  ];
  static override readonly args = {
    key: Args.string({ description: "Keys.", multiple: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    all: Flags.boolean({ default: false, summary: "All keys that an operator has paused." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeyResume);
    const keys = args.key ?? [];
    if (keys.length > 0 === flags.all) throw this.misuse("name keys, or say --all");
    const { object, text } = await this.askRun(flags, async (client) =>
      steerKeys(client, "resume", flags.all ? await parkedKeys(client, "paused") : keys),
    );
    this.print([object], text);
  }
}
