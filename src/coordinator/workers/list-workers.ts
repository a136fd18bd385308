// The registry for people: a page of workers in order of id.
import type { Input } from "../turn/input.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import { workerStateOf } from "../turn/state.ts";
import { cordonReasonOf } from "./trust.ts";
import type { Turn } from "../turn/turn.ts";
import type { ListedWorker } from "../turn/worker-view.ts";

export function onListWorkers(
  state: CoordinatorState,
  turn: Turn,
  { after, limit, answer }: Extract<Input, { kind: "listWorkers" }>,
): void {
  const ids = [...state.workers.keys()].filter((id) => id > after).sort();
  const page = ids.slice(0, limit).flatMap((id) => state.workers.get(id) ?? []);
  turn.effects.push({
    kind: "answerListing",
    to: answer,
    answer: { workers: page.map((row) => listed(state, row, turn.nowMs)), more: ids.length > page.length },
  });
}

export function listed({ enrolment }: CoordinatorState, row: WorkerRow, nowMs: number): ListedWorker {
  const { id, load, slots, plugins, registeredAtWallMs, lastBeatMs, trouble } = row;
  return {
    id,
    incarnation: row.chart.context.incarnation,
    ...workerStateOf(row),
    load,
    slots,
    plugins,
    registeredAtWallMs,
    lastBeatAgeMs: lastBeatMs === undefined ? undefined : nowMs - lastBeatMs,
    held: row.held.size,
    cordonReason: cordonReasonOf(row),
    trouble,
    isRevoked: enrolment.revoked.has(id),
  };
}
