// `rollout actor send`
import { text as textOf } from "node:stream/consumers";
import { systemClock } from "../../base/clock.ts";
import { newUlid } from "../../base/ids.ts";
import { systemRandom } from "../../base/random.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { OperatorCommand } from "../../compose/operator-command.ts";

export class ActorSend extends OperatorCommand {
  static override readonly summary = "Send an event to an actor. The first one makes it.";
  static override readonly description =
    "Answers when the event is on stable storage: it is executed after all that wait for the actor. With --id it may be sent again: within an " +
    "actor the same id is the same event, for ever. Without it each call sends another event.";
  static override readonly examples = [
    `<%= config.bin %> <%= command.id %> order/17 '{"type": "pay", "cents": 2350}' --plugin order.toml --id payment-9`,
    `cat event.json | <%= config.bin %> <%= command.id %> order/17 -`,
  ];
  static override readonly args = {
    actor: Args.string({
      description: "The actor, as TYPE/ID; its id alone where the plugin has one type.",
      required: true,
      ignoreStdin: true,
    }),
    event: Args.string({
      description: "The event, a JSON object with a type; or - for standard input.",
      required: true,
      ignoreStdin: true,
    }),
  };
  static override readonly flags = {
    ...configFlags("operator"),
    plugin: Flags.string({
      summary: "The manifest of the plugin that has the actors; without it that of worker.plugins.",
      helpValue: "FILE",
    }),
    id: Flags.string({ summary: "The id of the event within its actor.", helpValue: "ID" }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorSend);
    const { plugin, id = newUlid(systemClock, systemRandom) } = flags;
    const event = Buffer.from((args.event === "-" ? await textOf(process.stdin) : args.event).trim());
    const { added } = await this.withRun({ ...flags, plugin: undefined }, (client) =>
      client.submit([event], { plugin, key: () => args.actor, id: () => id }),
    );
    const known = added === 0;
    this.print(
      [{ actor: args.actor, known }],
      known ? "That event is there already.\n" : "The event is on its way.\n",
    );
  }
}
