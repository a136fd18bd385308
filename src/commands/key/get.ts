// `rollout key get`
import { Args, Flags } from "../../cli/oclif.ts";
import { keyText } from "../../cli/render/keys.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";
import { KeySchema } from "../../gen/rollout/v1/keys_pb.ts";

export class KeyGet extends OperatorCommand {
  static override readonly summary = "Show a key: its items, why it waits, and its state.";
  static override readonly description =
    "With --state it prints the state's exact bytes, as the last item that succeeded left it. With --json too the object has it as " +
    "text (state), or in base64 where it is not UTF-8 (state_base64); both are null without one.";
  static override readonly examples = [
    "<%= config.bin %> <%= command.id %> customer-17",
    "<%= config.bin %> <%= command.id %> customer-17 --state",
  ];
  static override readonly args = {
    key: Args.string({ description: "The key.", required: true, ignoreStdin: true }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    state: Flags.boolean({ default: false, summary: "Print its state." }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(KeyGet);
    const withState = flags.state;
    const { state, ...key } = await this.askRun(flags, (client) => client.key(args.key, { withState }));
    const object = { ...jsonOf(KeySchema, key), ...(withState && stateObject(state)) };
    this.print([object], withState ? (state ?? "") : keyText(key, this.hinted));
  }
}

function stateObject(state: Uint8Array | undefined): object {
  if (state === undefined) return { state: null, state_base64: null };
  const bytes = Buffer.from(state);
  const text = bytes.toString("utf8");
  const isText = Buffer.from(text).equals(bytes);
  return isText
    ? { state: text, state_base64: null }
    : { state: null, state_base64: bytes.toString("base64") };
}
