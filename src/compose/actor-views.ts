// Actors of a run as those who look at them see them: keys whose states say which actor they are of.
import { create } from "@bufbuild/protobuf";
import { isoTime } from "../base/clock.ts";
import { jsonFields } from "../base/exact-json.ts";
import { printable, printableLines } from "../base/safe-text.ts";
import { waitSentences } from "../cli/render/actors.ts";
import { keySentences } from "../cli/render/keys.ts";
import type { HintedLine } from "../cli/shell-words.ts";
import type { FullKey, KeyAsks, KeyWithState, WholeKey } from "../client/keys.ts";
import { jsonOf } from "../client/operator-message.ts";
import { ArmedTimerSchema, KeyAsksSchema, KeySchema } from "../gen/rollout/v1/keys_pb.ts";
import type { ActorEvent } from "./actor-now.ts";
import { readActorState } from "../runtime/actor-state.ts";
import type { ActorState } from "../runtime/actor-state.ts";

/** A key, and the actor that it is: undefined while no event of it has succeeded, and for a key that is none. */
export interface ActorView<Actor = ActorState | undefined> {
  readonly key: KeyWithState | WholeKey;
  readonly actor: Actor;
}

export function actorOf(key: KeyWithState | WholeKey): ActorView {
  return { key, actor: key.state && readActorState(key.state) };
}

/** Those among the keys that are actors, and have a state. */
export async function* actorsAmong(keys: AsyncIterable<FullKey>): AsyncGenerator<ActorView<ActorState>> {
  for await (const key of keys) {
    const { actor } = actorOf(key);
    if (actor !== undefined) yield { key, actor };
  }
}

/** An actor in sentences; ends with a line ending. `nowMs` by the wall clock. */
export function actorText({ key, actor }: ActorView, line: HintedLine, nowMs: number): string {
  const asks = asksOf(key);
  const sentences = [
    ...(asks === undefined ? [] : waitSentences(key.key, asks, line, nowMs)),
    ...keySentences(key, line, "actor"),
  ];
  const head = `actor ${printable(key.key)}: ${printableLines(sentenceOf({ key, actor }))}\n`;
  return `${head}${sentences.map((sentence) => `  ${sentence}\n`).join("")}`;
}

function sentenceOf({ key, actor }: ActorView): string {
  if (actor === undefined)
    return key.state === undefined
      ? "no event of it has succeeded yet, so it has no state"
      : "the state of that key is none that an actor has left";
  const { events, snapshot } = actor;
  const { status, value, context } = snapshot;
  const ended = status === "active" ? "" : ` (${status})`;
  return `${valueText(value)}${ended}, after ${events} ${events === 1 ? "event" : "events"}\n  ${JSON.stringify(context)}`;
}

/** The object that `--json` prints of an event of an actor. */
export function eventObject({ event, value, status, tags, atMs, item, from }: ActorEvent): object {
  return { item, at: isoTime(atMs), event, from: from ?? null, value, status, tags };
}

/** The same of a timer. */
export function timerObject(timer: KeyAsks["timers"][number]): object {
  return { ...jsonOf(ArmedTimerSchema, timer), event: eventIn(timer.event) };
}

/** An event that is no JSON of an object is none that an actor has made. */
function eventIn(bytes: Uint8Array): object {
  return jsonFields(Buffer.from(bytes).toString("utf8"));
}

/** The object that `--json` prints. */
export function actorObject({ key, actor }: ActorView): object {
  const { value = null, status = null, context = null, output = null } = actor?.snapshot ?? {};
  const { type = null, version = null, events = 0, tags = [] } = actor ?? {};
  const { phase, items: pending, head, worker, parked_by, error } = jsonOf(KeySchema, key);
  return {
    ...{ key: key.key, type, value, status, tags, output, context, events, state_version: version },
    ...{ phase, pending, next_item: head, worker, parked_by, error },
    ...("asks" in key && asksObject(asksOf(key))),
  };
}

/** A key that came in a list says nothing of it. */
export function asksOf(key: KeyWithState | WholeKey): KeyAsks | undefined {
  return "asks" in key ? key.asks : undefined;
}

/** The timers, invocations and children of an actor, and who has started it. */
export function asksObject(asks: KeyAsks | undefined): object {
  const { invocations, children, actions, actions_error, parent, retires_at } = jsonOf(
    KeyAsksSchema,
    asks ?? create(KeyAsksSchema),
  );
  const timers = asks?.timers.map(timerObject) ?? [];
  return { timers, invocations, children, actions: actions ?? 0, actions_error, parent, retires_at };
}

/** A state as people name it: `paid`, or `playing.fast` of one within another; regions stand beside each other. */
export function valueText(value: unknown): string {
  if (typeof value !== "object" || value === null) return String(value);
  return Object.entries(value)
    .map(([name, inner]) => {
      const below = valueText(inner);
      return below === "" ? name : `${name}.${below}`;
    })
    .join(", ");
}

/** Whether a state as `valueText` names it is this one, or one within it. */
export function isIn(text: string, value: string): boolean {
  return text.split(", ").some((part) => part === value || part.startsWith(`${value}.`));
}
