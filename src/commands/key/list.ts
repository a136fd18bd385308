// `rollout key list`
import { Flags } from "../../cli/oclif.ts";
import { keysText } from "../../cli/render/keys.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import type { Key, KeyPhaseName } from "../../client/keys.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { KeySchema } from "../../gen/rollout/v1/keys_pb.ts";

export class KeyList extends OperatorCommand {
  static override readonly summary = "Show the keys of the run.";
  static override readonly description =
    "One a line, with its state, its items that are not final and the next of them, and why it is parked.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> --parked",
    "<%= config.bin %> <%= command.id %> --waiting --json",
  ];
  static override readonly flags = {
    ...configFlags("operator"),
    parked: Flags.boolean({ default: false, summary: "Only parked keys: none of their items starts." }),
    waiting: Flags.boolean({ default: false, summary: "Only keys whose next item waits." }),
  };

  override async run(): Promise<void> {
    const { flags } = await this.parse(KeyList);
    const phases: KeyPhaseName[] = [
      ...(flags.parked ? (["parked"] as const) : []),
      ...(flags.waiting ? (["waiting", "delayed"] as const) : []),
    ];
    const keys = await this.askRun(flags, async (client) => {
      const found: Key[] = [];
      for await (const key of client.keys({ phases })) found.push(key);
      return found;
    });
    this.print(
      keys.map((key) => jsonOf(KeySchema, key)),
      keysText(keys, phases.length > 0, this.hinted),
    );
  }
}
