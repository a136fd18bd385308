// A worker in the store: its row of the registry, written whenever one of its charts moves or its beat says something new of
// it, and its latest beat, which is overwritten every time.
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { parseUlid } from "../../base/ids.ts";
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { RECORD_KIND, workerKey, WORKERS_PREFIX } from "../../storage/keys.ts";
import type { Segment } from "../../storage/segment-count.ts";
import type { Beat } from "../turn/input.ts";
import { isTrusted, trustChart, workerChart } from "../turn/state.ts";
import type { CoordinatorState, WorkerRow } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import type { Plugin } from "../turn/input.ts";

export interface WorkerRecord {
  readonly incarnation: IncarnationId;
  /** Name of the state in the compiled chart: `Ready+Alive`. */
  readonly state: string;
  /** The same of the chart of its trust. */
  readonly trust: string;
  /** An operator wants this process of it to leave. */
  readonly isToDrain: boolean;
  /** Why it is cordoned, if it is: so many items that it failed. */
  readonly failuresInRow: number;
  readonly slots: number;
  readonly plugins: readonly Plugin[];
  readonly registeredAtWallMs: number;
}

export const workerRecord: RecordType<WorkerRecord> = {
  kind: RECORD_KIND.worker,
  name: "worker",
  encode: ({ incarnation, state, slots, plugins, registeredAtWallMs, trust, failuresInRow, isToDrain }) => [
    incarnation,
    state,
    slots,
    // A plugin without such states is stored as it was before there were any.
    plugins.map(({ name, version, stateVersion }) =>
      stateVersion === undefined ? [name, version] : [name, version, stateVersion],
    ),
    registeredAtWallMs,
    trust,
    failuresInRow,
    isToDrain,
  ],
  decode: (fields) => ({
    incarnation: parseUlid<IncarnationId>(fields.text(0)) ?? fields.refuse(0, "is no ULID"),
    state: fields.text(1),
    slots: fields.integer(2),
    plugins: fields.tuples(3).map((plugin) => ({
      ...{ name: plugin.text(0), version: plugin.text(1) },
      ...(plugin.length > 2 && { stateVersion: plugin.integer(2) }),
    })),
    registeredAtWallMs: fields.number(4),
    trust: fields.text(5),
    failuresInRow: fields.integer(6),
    isToDrain: fields.boolean(7),
  }),
};

export const workersSegment: Segment = { name: "workers", prefix: WORKERS_PREFIX, record: workerRecord };

export interface BeatRecord extends Pick<Beat, "incarnation" | "sequence" | "state" | "load" | "sentAtMs"> {
  readonly arrivedAtWallMs: number;
}

export const beatRecord: RecordType<BeatRecord> = {
  kind: RECORD_KIND.heartbeat,
  name: "heartbeat",
  encode: ({ incarnation, sequence, state, load, sentAtMs, arrivedAtWallMs }) => [
    incarnation,
    sequence,
    state,
    load,
    sentAtMs,
    arrivedAtWallMs,
  ],
  decode: (fields) => ({
    incarnation: parseUlid<IncarnationId>(fields.text(0)) ?? fields.refuse(0, "is no ULID"),
    sequence: fields.integer(1),
    state: claimedState(fields.text(2)) ?? fields.refuse(2, "is no state of a worker"),
    load: fields.number(3),
    sentAtMs: fields.number(4),
    arrivedAtWallMs: fields.number(5),
  }),
};

function claimedState(text: string): Beat["state"] | undefined {
  return text === "Init" || text === "Ready" || text === "Draining" || text === "Gone" ? text : undefined;
}

/** The id in the key of a row; undefined when it is none. */
export function workerIdOf(key: string): WorkerId | undefined {
  return parseUlid<WorkerId>(key.slice(WORKERS_PREFIX.length));
}

export function storeWorker(state: CoordinatorState, turn: Turn, row: WorkerRow): void {
  const key = workerKey(row.id);
  const value = encodeRecord(workerRecord, key, {
    incarnation: row.chart.context.incarnation as IncarnationId,
    state: workerChart.nameOf(row.chart),
    trust: trustChart.nameOf(row.trust),
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
