// `rollout actor send`
import { text as textOf } from "node:stream/consumers";
import { systemClock } from "../../base/clock.ts";
import { isEvent } from "../../base/actor-address.ts";
import { RolloutError } from "../../base/errors.ts";
import { parseJson } from "../../base/exact-json.ts";
import { newUlid } from "../../base/ids.ts";
import { printable } from "../../base/safe-text.ts";
import { systemRandom } from "../../base/random.ts";
import { Args, Flags } from "../../cli/oclif.ts";
import { configFlags } from "../../cli/setting-flags.ts";
import { ActorCommand } from "../../compose/actor-command.ts";
import { actorObject, actorOf, actorText, isIn, valueText } from "../../compose/actor-views.ts";
import type { ActorView } from "../../compose/actor-views.ts";
import { untilActor } from "../../compose/actor-wait.ts";
import type { RolloutClient } from "../../compose/rollout-client.ts";
import { parseDurationMs } from "../../config/duration.ts";

const TAG = "tag:";

export class ActorSend extends ActorCommand {
  static override readonly summary = "Send an event to an actor. The first event makes the actor.";
  static override readonly description =
    "Returns when the event is on stable storage; the actor handles it after the events that already wait. With --id the command may be repeated: within an " +
    "actor an id is one event, for ever. Without --id each call sends another event. With --wait it stays until the actor is in the " +
    "state, or in a state with the tag (tag:TAG). For a new event only later states count; for one that was sent before, the present state counts too. It " +
    "ends with 3 when the actor cannot reach the state, because an event of it has failed or it is final, and with 1 after --timeout.";
  static override readonly examples = [
    `<%= config.bin %> <%= command.id %> order/17 '{"type": "pay", "cents": 2350}' --plugin order.toml --id payment-9`,
    `<%= config.bin %> <%= command.id %> order/17 '{"type": "ship"}' --wait shipped --timeout 1m`,
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
      summary: "[default: worker.plugins] The manifest of the plugin that has the actors.",
      helpValue: "FILE",
    }),
    id: Flags.string({ summary: "The id of the event within its actor.", helpValue: "ID" }),
    wait: Flags.string({
      summary: "Stay until the actor is in this state; `playing` includes `playing.fast`.",
      helpValue: "STATE|tag:TAG",
    }),
    timeout: Flags.string({
      summary: "[default: until the run is over] The longest time that --wait waits, such as 30s.",
      helpValue: "DURATION",
    }),
  };

  override async run(): Promise<void> {
    const { args, flags } = await this.parse(ActorSend);
    const { plugin, id = newUlid(systemClock, systemRandom), wait, timeout } = flags;
    if (timeout !== undefined && wait === undefined) throw this.misuse("--timeout goes with --wait");
    const timeoutMs = timeout === undefined ? undefined : this.#durationOf(timeout);
    const event = Buffer.from((args.event === "-" ? await textOf(process.stdin) : args.event).trim());
    if (!isEvent(parseJson(event.toString())))
      throw this.misuse('EVENT is a JSON object with a type, such as \'{"type":"pay"}\'');
    const actor = await this.keyOfReceiver(args.actor, flags);
    const { known, view } = await this.withRun({ ...flags, plugin: undefined }, async (client) => {
      const since = wait === undefined ? undefined : await commitOf(client, actor);
      const { added } = await client.submit([event], { plugin, key: () => actor, id: () => id });
      const isKnown = added === 0;
      if (wait === undefined) return { known: isKnown, view: undefined };
      this.tell(recordedText(actor, isKnown));
      const seen = await untilActor(client, actor, (key) => inWanted(actorOf(key), wait), {
        ...{ clock: systemClock, random: systemRandom, timeoutMs },
        ...(!isKnown && { sinceCommit: since }),
        onTrouble: (trouble) =>
          this.tell(
            trouble === undefined ? "The coordinator answers again." : `Waiting: ${trouble.message}.`,
          ),
      });
      return { known: isKnown, view: seen };
    });
    if (view === undefined) return this.print([{ actor, known }], `${recordedText(actor, known)}\n`);
    this.print([{ known, ...actorObject(view) }], actorText(view, this.hinted, systemClock.wallMs()));
  }

  #durationOf(text: string): number {
    const durationMs = parseDurationMs(text);
    if (durationMs !== undefined && durationMs > 0) return durationMs;
    throw this.misuse(`--timeout takes a duration such as 30s or 5m, not ${text}`);
  }
}

function recordedText(actor: string, isKnown: boolean): string {
  return isKnown
    ? `Actor ${printable(actor)} was sent this event before.`
    : `The event is recorded for actor ${printable(actor)}.`;
}

/** The commit of the state that the actor has; 0 for one that is not there. */
async function commitOf(client: RolloutClient, actor: string): Promise<number> {
  try {
    return (await client.key(actor)).stateCommit ?? 0;
  } catch (error) {
    if (error instanceof RolloutError && error.code === "key_unknown") return 0;
    throw error;
  }
}

/** The actor when it is where it is waited for. */
function inWanted(view: ActorView, wanted: string): ActorView | undefined {
  const { actor } = view;
  if (actor === undefined) return undefined;
  const tag = wanted.startsWith(TAG) ? wanted.slice(TAG.length) : undefined;
  const isThere =
    tag === undefined ? isIn(valueText(actor.snapshot.value), wanted) : actor.tags.includes(tag);
  return isThere ? view : undefined;
}
