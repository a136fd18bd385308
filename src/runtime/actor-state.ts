// The state of a durable actor, as it is stored: a machine's snapshot as JSON, with the version of its shape and a few facts beside it,
// so that those who only look at an actor need none of its code.
import type { StateValue } from "xstate";
import { jsonFields } from "../base/exact-json.ts";

/** A machine's snapshot without its children: as XState persists it. */
export interface ActorSnapshot {
  readonly status: string;
  readonly value: StateValue;
  readonly context: unknown;
  readonly output?: unknown;
  /** By the id of a history state, the ids of the states that it goes back to. */
  readonly historyValue?: Readonly<Record<string, readonly { readonly id: string }[]>>;
}

/** A promise or a machine that an actor has invoked or spawned, until it is left. */
export interface KeptChild {
  /** The name of its logic in the machine. */
  readonly src: string;
  readonly kind: "promise" | "machine";
  /** The actor was told of its end. */
  readonly hasEnded?: true;
  /** The name under which XState has it, where that is not its id; null where it has none. */
  readonly as?: string | null;
}

export interface ActorState {
  readonly type: string;
  /** The names of logic that lead to a child's machine, from that of the type; absent for an actor that is none's child. */
  readonly source?: string;
  /** `state_version` of the manifest with which it was written. */
  readonly version: number;
  /** Events that it is made of. */
  readonly events: number;
  /** The tags of the states that it is in, in order. */
  readonly tags: readonly string[];
  readonly snapshot: ActorSnapshot;
  /** By their ids; absent while there are none. */
  readonly children?: Readonly<Record<string, KeptChild>>;
  /** Ids that were made for children without one; absent for 0. */
  readonly named?: number;
}

const FORMAT = 1;

export function writeActorState(state: ActorState): Uint8Array {
  return Buffer.from(JSON.stringify({ actor: FORMAT, ...state }));
}

/** Undefined when the bytes are no state of an actor. */
export function readActorState(bytes: Uint8Array): ActorState | undefined {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  const { actor, ...state } = jsonFields(text);
  const { type, version, events, tags, snapshot } = state;
  const isOurs =
    actor === FORMAT && typeof type === "string" && typeof snapshot === "object" && snapshot !== null;
  if (!isOurs || typeof version !== "number" || typeof events !== "number" || !Array.isArray(tags))
    return undefined;
  return state as unknown as ActorState;
}
