// Keys of a run, as the library gives them: one, all of them page by page, and what an operator asks of them.
import { originOf } from "./origin.ts";
import type { Origin } from "./origin.ts";
import type { Client } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import type {
  GetKeyResponse,
  Key as KeyWire,
  KeyAsks as KeyAsksWire,
  KeyRefusal as KeyRefusalWire,
  KeyService,
  Partition as PartitionWire,
} from "../gen/rollout/v1/keys_pb.ts";
import {
  KeyAction,
  KeyAsksSchema,
  KeyRefusalSchema,
  KeySchema,
  PartitionSchema,
} from "../gen/rollout/v1/keys_pb.ts";
import type { ItemResult } from "../gen/rollout/v1/run_pb.ts";
import { KeyPhase } from "../gen/rollout/v1/run_pb.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";

export interface Key extends Plain<KeyWire> {
  /** It is the named actions of that actor, which may be gone: one that has failed keeps the others. */
  readonly ofActions: boolean;
  /** `waiting`: its next item may start. `delayed`: that waits after a failure. `parked`: nothing of it starts. */
  readonly phase: "idle" | "waiting" | "delayed" | "running" | "parked" | "unknown";
  /** By the ring. */
  readonly owner: WorkerId | undefined;
  /** The worker that has its next item. */
  readonly worker: WorkerId | undefined;
  /** Undefined unless it is parked: an item of it has failed, or an operator has paused it. */
  readonly parkedBy: string | undefined;
}

export interface KeyWithState extends Key {
  /** Undefined when it has none. */
  readonly state: Uint8Array | undefined;
}

/** A key and all that the run knows of it. */
export interface WholeKey extends KeyWithState {
  /** Undefined unless it is an actor that has asked for something, or is final. */
  readonly asks: KeyAsks | undefined;
}

export type KeyAsks = Plain<KeyAsksWire>;

export interface FullKey extends KeyWithState {
  /** The payload of its next item, or of the one that has failed; undefined when there is none. */
  readonly next: Uint8Array | undefined;
  /** The next one and those behind it, in order, as far as they were wanted; `hasMore`: there are more of them. */
  readonly waiting: readonly WaitingItem[];
  readonly hasMore: boolean;
}

export interface WaitingItem {
  readonly payload: Uint8Array;
  /** Undefined for an item that was submitted. */
  readonly origin: Origin | undefined;
}

export interface Partition extends Plain<PartitionWire> {
  /** Its owner by the ring; undefined when that has no member. */
  readonly worker: WorkerId | undefined;
}

export interface KeyRefusal extends Plain<KeyRefusalWire> {
  /** `unknown`, `not_failed`, `head_failed`, `not_idle` or `cancelled`. */
  readonly reason: string;
}

export interface SteeredKeys {
  readonly steered: number;
  readonly refused: readonly KeyRefusal[];
}

export type KeySteering = "pause" | "resume" | "skip" | "retire";

export type KeyPhaseName = Exclude<Key["phase"], "unknown">;

type Calls = Client<typeof KeyService>;

const PHASES: Readonly<Record<KeyPhaseName, KeyPhase>> = {
  idle: KeyPhase.IDLE,
  waiting: KeyPhase.WAITING,
  delayed: KeyPhase.DELAYED,
  running: KeyPhase.RUNNING,
  parked: KeyPhase.PARKED,
};
const ACTIONS: Readonly<Record<KeySteering, KeyAction>> = {
  pause: KeyAction.PAUSE,
  resume: KeyAction.RESUME,
  skip: KeyAction.SKIP,
  retire: KeyAction.RETIRE,
};
/** As many as one call takes. */
const KEYS_PER_CALL = 100;

/** Throws the transport's rows, and key_unknown. */
export async function askForKey(calls: Calls, key: string, withState: boolean): Promise<WholeKey> {
  if (key === "") throw failure("key_unknown", { key: '""' });
  return wholeKeyOf(await calls.getKey({ key, withState }));
}

/** The key that an answer is about. */
export function wholeKeyOf({ key, state, asks }: GetKeyResponse): WholeKey {
  return { ...keyOf(told(key)), state, asks: asks && plainOf(KeyAsksSchema, asks) };
}

/** Items of the key that have succeeded, the last one first. Throws the transport's rows, and key_unknown. */
export async function* listKeyHistory(
  calls: Calls,
  key: string,
  limit = Infinity,
): AsyncGenerator<ItemResult> {
  let [after, left] = ["", limit];
  do {
    const page = await calls.listKeyHistory({ key, after, limit: Math.min(left, KEYS_PER_CALL) });
    yield* page.results;
    after = page.after;
    left -= page.results.length;
  } while (after !== "" && left > 0);
}

/** Those in any of the states, or all; with parked ones the named actions that are, too. In order of their partitions. Throws the transport's rows. */
export async function* listKeys(
  calls: Calls,
  names: readonly KeyPhaseName[],
  prefix = "",
): AsyncGenerator<Key> {
  const phases = names.map((name) => PHASES[name]);
  let after = "";
  do {
    const page = await calls.listKeys({ phases, after, prefix, parkedActions: names.includes("parked") });
    for (const key of page.keys) yield keyOf(key);
    after = page.after;
  } while (after !== "");
}

/** All of them in order of their numbers; none while the run has no keys. Throws the transport's rows. */
export async function listPartitions(calls: Calls): Promise<Partition[]> {
  const { partitions } = await calls.listPartitions({});
  return partitions.map((partition) => plainOf(PartitionSchema, partition) as Partition);
}

/** Every call may be repeated. Throws the transport's rows; what was steered by then stays so. */
export async function steerKeys(
  calls: Calls,
  steering: KeySteering,
  keys: readonly string[],
): Promise<SteeredKeys> {
  let total: SteeredKeys = { steered: 0, refused: [] };
  for (let at = 0; at < keys.length; at += KEYS_PER_CALL) {
    const some = keys.slice(at, at + KEYS_PER_CALL);
    const { steered, refused } = await calls.steerKeys({ action: ACTIONS[steering], keys: some });
    const refusals = refused.map((refusal) => plainOf(KeyRefusalSchema, refusal) as KeyRefusal);
    total = { steered: total.steered + steered, refused: [...total.refused, ...refusals] };
  }
  return total;
}

/** Goes on without the failed item that keeps it, for each key that has one. Returns how many there were. */
export async function skipParked(calls: Calls): Promise<number> {
  const parked: string[] = [];
  for await (const { key, parkedBy } of listKeys(calls, ["parked"]))
    if (parkedBy === "failed") parked.push(key);
  return (await steerKeys(calls, "skip", parked)).steered;
}

export interface KeysWanted {
  /** Only keys that begin with it. */
  readonly prefix?: string;
  /** Only keys whose state is of this commit or of a later one. */
  readonly fromCommit?: number;
  /** Told before the first key: what is listed from that commit on is what has changed since this list. */
  readonly onCommit?: (commit: number) => void;
  /** So many of the items that wait for each, at most; none unless said. */
  readonly mail?: number;
}

/** All keys with what is in them, or those that are wanted; in order of their partitions. Throws the transport's rows. */
export async function* listFullKeys(
  calls: Calls,
  { prefix = "", fromCommit = 0, mail = 0, onCommit }: KeysWanted = {},
): AsyncGenerator<FullKey> {
  let after = "";
  do {
    const page = await calls.listKeys({ after, withContents: true, prefix, fromCommit, mail });
    if (after === "") onCommit?.(page.commit);
    for (const [at, key] of page.keys.entries()) {
      const { state, next, waiting = [], hasMore = false } = page.contents[at] ?? {};
      const all = waiting.map(({ payload, origin }) => ({ payload, origin: originOf(origin) }));
      yield { ...keyOf(key), state, next, waiting: all, hasMore };
    }
    after = page.after;
  } while (after !== "");
}

function keyOf(key: KeyWire): Key {
  return plainOf(KeySchema, key) as Key;
}
