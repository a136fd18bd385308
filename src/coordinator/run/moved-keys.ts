// Keys told for another run, and taken from one. All of a call are taken in one turn, under a number of completions of their own: no state of
// this run, nor any that a worker keeps, has the commit of theirs.
import { LIMITS } from "../../config/limits.ts";
import { partitionOf } from "../../base/partition.ts";
import type { Key } from "../keys/key.ts";
import { toldKey } from "../keys/moving.ts";
import type { MovedKey } from "../keys/moving.ts";
import type { Input } from "../turn/input.ts";
import type { TakenKeys, ToldKeys } from "../turn/key-terms.ts";
import type { Refusal } from "../turn/run-terms.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { adoptTask, extend, meaningOf } from "./run.ts";
import { otherTask } from "./submission.ts";

type Refused = Exclude<Refusal, { readonly kind: "renamed" }>;
type Asked<K extends "tellKeys" | "takeKeys"> = Extract<Input, { readonly kind: K }>;

export function tellKeys(
  { keys: { table } }: CoordinatorState,
  { prefix, after, limit }: Asked<"tellKeys">,
): ToldKeys {
  const told: ToldKeys["keys"][number][] = [];
  const unmovable: ToldKeys["unmovable"][number][] = [];
  const first = after === "" ? 0 : partitionOf(after, table.totalPartitions);
  for (let partition = first; partition < table.totalPartitions; partition++) {
    const isWanted = ({ text }: Key): boolean =>
      text.startsWith(prefix) && (partition > first || text > after);
    const page = [...table.keysOf(partition)].filter(isWanted);
    page.sort((one, other) => (one.text < other.text ? -1 : 1));
    for (const key of page) {
      const one = toldKey(key);
      if (typeof one === "string") unmovable.push({ key: key.text, why: one });
      else told.push(one);
      if (told.length + unmovable.length >= limit) return { keys: told, unmovable, after: key.text };
    }
  }
  return { keys: told, unmovable, after: "" };
}

/** On disk before it is answered. */
export function takeKeys(
  state: CoordinatorState,
  turn: Turn,
  { keys: moved, task }: Asked<"takeKeys">,
): TakenKeys | Refused {
  turn.requireSync();
  const { keys, ledger } = state;
  const fresh = moved.filter((key) => keys.moving.verdictOf(key) === "taken");
  const there = moved.filter((key) => keys.moving.verdictOf(key) === "there").map(({ text }) => text);
  const refusal = refusalOf(state, fresh, task);
  if (refusal !== undefined) return refusal;
  const known = moved.length - fresh.length - there.length;
  if (fresh.length === 0) return { kind: "taken", taken: 0, known, there };
  if (state.task === null) adoptTask(state, turn, task);
  extend(state, turn);
  keys.begin(turn);
  turn.takesCompletion = true;
  turn.ledgerTouched = true;
  if (state.verification !== undefined) state.verification.isStale = true;
  // Counted from 1: a state of commit 0 is none.
  for (const key of fresh) keys.moving.take(key, ledger.tally.nextCompletion + 1);
  return { kind: "taken", taken: fresh.length, known, there };
}

function refusalOf(
  state: CoordinatorState,
  fresh: readonly MovedKey[],
  task: Asked<"takeKeys">["task"],
): Refused | undefined {
  const { keys, releases } = state;
  const { phase } = meaningOf(state);
  if (phase === "cancelled") return { kind: "cancelled" };
  if (phase !== "open" && fresh.length > 0) return { kind: "sealed" };
  const other = state.task === null ? undefined : otherTask(state.task, task, releases);
  // Items that move bring their names along, so either manifest of a completed release will do.
  if (other !== undefined && other.kind !== "renamed") return other;
  const [found, configured] = [keys.table.totalPartitions, keys.settings.totalPartitions];
  if (found !== configured) return { kind: "partitionsFixed", found, configured };
  const full = keys.table.findFull(fresh.map(({ text }) => text));
  if (full !== undefined) return { kind: "partitionFull", ...full };
  const timers = fresh.reduce((sum, { actor }) => sum + (actor?.timers.length ?? 0), keys.timers.armed);
  return timers > LIMITS.timers ? { kind: "timersFull", limit: LIMITS.timers } : undefined;
}
