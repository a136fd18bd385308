// The workers on the ring of partitions: those that are heard of, stay, are trusted, have the run's plugin and take items of keys. One
// that was only started again stays on it, so its partitions stay where they are warm.
import type { WorkerId } from "../../base/ids.ts";
import type { Moved } from "../keys/assignment.ts";
import { isHeard, isTrusted, serves, workerStateOf } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** Pairs of workers that an event names at most. */
const MOVES_TOLD = 100;

/** Once a turn, before work is given out. The epoch of a change is on disk before anybody hears of it. */
export function updateMembership(state: CoordinatorState, turn: Turn): void {
  const { keys, workers } = state;
  if (!keys.isInUse) return;
  const members = new Set<WorkerId>();
  for (const row of workers.values()) if (isMember(state, row)) members.add(row.id);
  const moved = keys.assign(members);
  if (moved === undefined) return;
  keys.warmth.retain((partition) => keys.assignment.ownerOf(partition));
  turn.put(keys.assignment.entry());
  turn.requireSync();
  turn.answer((epoch: number) => (keys.assignment.committedEpoch = epoch), moved.epoch);
  announce(turn, moved);
}

function isMember(state: Pick<CoordinatorState, "task" | "enrolment" | "releases">, row: WorkerRow): boolean {
  const { lifecycle } = workerStateOf(row);
  return (
    (lifecycle === "Init" || lifecycle === "Ready") &&
    isHeard(row) &&
    isTrusted(row) &&
    row.takesKeys &&
    !row.chart.context.isToDrain &&
    !state.enrolment.revoked.has(row.id) &&
    serves(state, row)
  );
}

function announce(turn: Turn, { epoch, joined, left, moves }: Moved): void {
  const pairs = new Map<string, { from: string | null; to: string | null; partitions: number }>();
  for (const { from = null, to = null } of moves) {
    const name = `${from ?? ""} ${to ?? ""}`;
    const pair = pairs.get(name) ?? { from, to, partitions: 0 };
    pair.partitions++;
    pairs.set(name, pair);
  }
  const told = [...pairs.values()].slice(0, MOVES_TOLD);
  turn.emit("partitions_moved", { epoch, joined, left, partitions: moves.length, moves: told });
}
