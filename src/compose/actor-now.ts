// An actor as programs see it, with the types of its machine. These are read off the machine's own method: XState's types are none that
// every compiler of a program takes that imports this package.
import type { FullKey, Key, KeyWithState } from "../client/keys.ts";
import { jsonFields } from "../base/exact-json.ts";
import type { ItemResult } from "../gen/rollout/v1/run_pb.ts";
import { readActorState } from "../runtime/actor-state.ts";

/** Anything that `defineActor` of rollout/actors has made. */
export interface AnyActorType {
  readonly machine: { readonly transition: (snapshot: never, event: never, scope: never) => unknown };
}

type SnapshotOf<Type extends AnyActorType> = Type["machine"]["transition"] extends (
  snapshot: infer Snapshot,
  event: never,
  scope: never,
) => unknown
  ? Snapshot
  : never;

type TakenBy<Type extends AnyActorType> = Type["machine"]["transition"] extends (
  snapshot: never,
  event: infer Event,
  scope: never,
) => unknown
  ? Event
  : never;

/** Any event where nothing is said of the type. */
export type EventOf<Type extends AnyActorType> = [TakenBy<Type>] extends [never]
  ? { readonly type: string }
  : TakenBy<Type>;

type Member<Type extends AnyActorType, Name extends string> = [SnapshotOf<Type>] extends [never]
  ? unknown
  : SnapshotOf<Type> extends { readonly [Key in Name]: infer Value }
    ? Value
    : unknown;

/** An actor as its last event that succeeded has left it. */
export interface ActorNow<Type extends AnyActorType = AnyActorType> {
  readonly id: string;
  readonly value: Member<Type, "value">;
  readonly status: "active" | "done";
  readonly tags: readonly string[];
  readonly context: Member<Type, "context">;
  /** Undefined while it is active. */
  readonly output: Member<Type, "output">;
  /** Events that it is made of. */
  readonly events: number;
  /** Events that wait, the one that executes included. */
  readonly pending: number;
  /** Undefined unless it is parked. */
  readonly parkedBy: Key["parkedBy"];
  /** The commit of its state: each event that succeeds makes it larger. */
  readonly commit: number;
}

/** An event of an actor that has succeeded, and where it has left the actor. */
export interface ActorEvent<Type extends AnyActorType = AnyActorType> {
  /** As it was sent, or as XState names what came from inside: an end of an invocation, a timer. */
  readonly event: EventOf<Type> | { readonly type: string };
  readonly value: Member<Type, "value">;
  readonly status: "active" | "done";
  readonly tags: readonly string[];
  /** When it was recorded. */
  readonly atMs: number;
  /** Its item, 64 hexadecimal digits. */
  readonly item: string;
  /** From where it came: undefined for one that was submitted. */
  readonly from: string | undefined;
}

/** Undefined for a key that is no actor of the type. The types are those that the program says that the machine has. */
export function nowOf<Type extends AnyActorType>(
  { key, state, items, parkedBy, stateCommit = 0 }: KeyWithState | FullKey,
  type: string,
): ActorNow<Type> | undefined {
  const actor = state && readActorState(state);
  if (actor?.type !== type) return undefined;
  const { tags, events, snapshot } = actor;
  const { value, status, context, output } = snapshot;
  const id = key.slice(type.length + 1);
  const stands = { events, pending: items, parkedBy, commit: stateCommit };
  return { id, value, status, tags, context, output, ...stands } as ActorNow<Type>;
}

/** A result of an item that is an event of an actor. */
export function eventOf<Type extends AnyActorType>(result: ItemResult): ActorEvent<Type> {
  const { value, status, tags } = jsonFields(textOf(result.output));
  const { event, from } = sentIn(result);
  const item = Buffer.from(result.itemId).toString("hex");
  return { event, value, status, tags, atMs: Number(result.finishedAtMs), item, from } as ActorEvent<Type>;
}

/** The event that an item is, and who has sent it if nobody submitted it. */
function sentIn({ payload, origin }: ItemResult): {
  readonly event: { readonly type: string };
  readonly from: string | undefined;
} {
  const sent = (): { readonly type: string } => jsonFields(textOf(payload)) as { readonly type: string };
  const made = origin?.from;
  switch (made?.case) {
    case "mail":
      return { event: sent(), from: made.value.key };
    case "timer":
      return { event: sent(), from: `timer ${made.value.id}` };
    case "outcome":
      return { event: { type: `xstate.done.actor.${made.value.id}` }, from: made.value.id };
    case "failure":
      return { event: { type: `xstate.error.actor.${made.value.id}` }, from: made.value.id };
    case "start":
      return { event: { type: "xstate.init" }, from: made.value.parent };
    case "invocation":
    case "action":
      return { event: { type: made.case }, from: made.value.key };
    case undefined:
      return { event: sent(), from: undefined };
  }
}

function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
}
