// `rollout key skip`
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { parkedKeys, steerKeys } from "../../compose/key-deeds.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class KeySkip extends OperatorCommand {
  static override readonly summary = "Continue parked keys without the item that has failed.";
  static override readonly description =
    "The item stays failed. If `rollout retry` runs it later, it goes before all that wait then. An item that has not failed is not skipped.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> customer-17",
    "<%= config.bin %> <%= command.id %> --all",
  ];
  static override readonly args = {
    key: Args.string({ description: "Keys.", multiple: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    all: Flags.boolean({ default: false, summary: "All keys that a failed item has parked." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeySkip);
    const keys = args.key ?? [];
    if (keys.length > 0 === flags.all) throw this.misuse("name keys, or say --all");
    const { object, text } = await this.askRun(flags, async (client) =>
      steerKeys(client, "skip", flags.all ? await parkedKeys(client, "failed") : keys),
    );
    this.print([object], text);
  }
}
