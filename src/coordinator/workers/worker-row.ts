// A worker's row of the registry, written whenever one of its charts moves or its beat says something new of it.
import { assert } from "../../base/assert.ts";
import type { IncarnationId } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { workerKey } from "../../storage/keys.ts";
import { isTrusted, trustChart, workerChart } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { workerRecord } from "./worker-record.ts";

export function storeWorker(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const key = workerKey(row.id);
  const value = encodeRecord(workerRecord, key, {
    incarnation: row.chart.context.incarnation as IncarnationId,
    state: nameOf(row.chart.state),
    trust: trustNameOf(row.trust.state),
    isToDrain: row.chart.context.isToDrain,
    failuresInRow: isTrusted(row) ? 0 : row.trust.context.failuresInRow,
    slots: row.slots,
    plugins: row.plugins,
    registeredAtWallMs: row.registeredAtWallMs,
  });
  if (row.stored === undefined) state.workersCount.added(value);
  else state.workersCount.replaced(row.stored, value);
  row.stored = value;
  turn.put({ key, value });
  turn.put(state.workersCount.entry());
}

/** The name of a state of a worker's life. */
export function nameOf(state: number): string {
  const name = workerChart.states[state];
  assert(name !== undefined, `no state ${state} in the worker's chart`);
  return name;
}

export function trustNameOf(state: number): string {
  const name = trustChart.states[state];
  assert(name !== undefined, `no state ${state} in the chart of a worker's trust`);
  return name;
}
