// The state of a new leader, from the store. Every worker that the registry names is registered again and gets a full
// failure timeout from this moment, longer when many have to find their way back at once.
import { okOrFailure } from "../storage/codec.ts";
import { heartbeatKey, RUN_KEY, RUNNING_PREFIX, WORKERS_PREFIX } from "../storage/keys.ts";
import { readRecord, corrupt, pagesUnder, recordOf } from "../storage/records.ts";
import type { Store } from "../storage/store.ts";
import type { Epoch, WorkerId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { SegmentCount, verifySegment } from "../storage/segment-count.ts";
import { QUOTA_DEFAULT, replayEnrolment } from "./workers/enrolment.ts";
import { demandNoOlder, readSnapshot } from "./lead/coordinator-snapshot.ts";
import type { ItemBudgets, RunningItem } from "./ledger/ledger.ts";
import type { Fleets } from "./fleet/fleets.ts";
import type { KeySettings } from "./keys/key-settings.ts";
import { keyedStamp } from "./ledger-charts.ts";
import { replayLedger } from "./items/replay-ledger.ts";
import { Pulse, NEVER_STARTED } from "./turn/run-terms.ts";
import type { RunLimits } from "./turn/run-terms.ts";
import { runChart, runRecord } from "./run/run.ts";
import type { CoordinatorState, LivenessSettings, WorkerRow } from "./turn/state.ts";
import { NO_SUCCESS, trustChart, workerChart } from "./turn/state.ts";
import type { WorkerRecord } from "./workers/worker-record.ts";
import { beatRecord, workerIdOf, workerRecord, workersSegment } from "./workers/worker-record.ts";

/** About as many workers as can do a TLS handshake in a second beside everything else, on two cores. */
const RECONNECTS_PER_SECOND = 150;
const PAGE = 1_000;

export interface ReplayOptions {
  readonly liveness: LivenessSettings;
  readonly workersMax: number;
  /** Workers that one bundle lets in; as in the configuration's defaults unless said. */
  readonly enrolmentQuota?: number | undefined;
  readonly epoch: Epoch;
  readonly budgets: ItemBudgets;
  /** Without them nothing is limited. */
  readonly limits?: RunLimits;
  readonly random: Random;
  /** Whether backlogs are stolen; they are unless said. */
  readonly steals?: boolean;
  /** The moment of leading, monotonic. */
  readonly nowMs: number;
  /** In one page of the scrub; as many as it likes unless said. */
  readonly scrubRows?: number | undefined;
  /** Reads the fleets; without it there are none. */
  readonly openFleets?: ((store: Store) => Promise<Fleets | undefined>) | undefined;
  /** As in the configuration's defaults unless said. */
  readonly keys?: KeySettings | undefined;
}

/**
 * Throws store_corrupt or store_newer, naming the key: a store that cannot be read whole is not led. One that became another meanwhile, as by
 * a failover, is read again: pages of before and after that fit each other no better than damaged ones.
 */
export async function replay(store: Store, options: ReplayOptions): Promise<CoordinatorState> {
  for (;;) {
    const { generation } = store;
    try {
      const state = await replayAsItIs(store, options);
      if (store.generation === generation) return state;
    } catch (error) {
      if (store.generation === generation) throw error;
    }
  }
}

async function replayAsItIs(store: Store, options: ReplayOptions): Promise<CoordinatorState> {
  okOrFailure(store.location, await verifySegment(store, workersSegment));
  const workers = new Map<WorkerId, WorkerRow>();
  for await (const page of pagesUnder(store, WORKERS_PREFIX, PAGE))
    for (const { key, value } of page) {
      const row = await readWorker(store, key, value, options.nowMs);
      workers.set(row.id, row);
    }
  const { liveness, workersMax, nowMs } = options;
  const dueAtMs = nowMs + liveness.heartbeatIntervalMs + (workers.size / RECONNECTS_PER_SECOND) * 1_000;
  for (const row of workers.values()) row.dueAtMs = dueAtMs;
  const [{ ledger, keys, releases }, enrolment, snapshot] = await Promise.all([
    replayLedger(store, { ...options, keyedStamp: keyedStamp() }),
    replayEnrolment(store, options.enrolmentQuota ?? QUOTA_DEFAULT),
    readSnapshot(store),
  ]);
  if (snapshot !== undefined) demandNoOlder(store, ledger.tally, snapshot);
  const usage = [...(snapshot?.usage ?? [])].filter(([id]) => workers.has(id));
  // Whether it takes keys is known by its next beat; a member of the ring stays one until then.
  for (const row of workers.values()) row.takesKeys = keys.assignment.has(row.id);
  for (const item of ledger.running.values()) handTo(store, workers, item);
  return {
    epoch: options.epoch,
    ledger,
    keys,
    releases,
    fleets: await options.openFleets?.(store),
    ...(await readRun(store)),
    steadyOffsetMs: undefined,
    limits: options.limits ?? {},
    pulse: new Pulse(),
    news: { steps: 0, changes: 0 },
    verification: undefined,
    counters: { staleReports: 0, conflicts: 0, reassigned: 0 },
    liveness,
    steals: options.steals ?? true,
    enrolment,
    workersMax,
    workers,
    workersCount: await SegmentCount.load(store, workersSegment),
    failedOnce: new Set(),
    usage: new Map(usage),
    published: snapshot?.number ?? 0,
    successes: { latest: NO_SUCCESS, ofAnother: NO_SUCCESS },
    lastScanMs: nowMs,
  };
}

async function readWorker(store: Store, key: string, value: Uint8Array, nowMs: number): Promise<WorkerRow> {
  const record = recordOf(store, { key, value }, workerRecord);
  const id = workerIdOf(key) ?? corrupt(store, key, "its key names no worker");
  const state =
    workerChart.indexOf(record.state) ??
    corrupt(store, key, `no state ${record.state} in the worker's chart`);
  const beat = await readRecord(store, heartbeatKey(id), beatRecord);
  return {
    id,
    chart: { state, context: { incarnation: record.incarnation, isToDrain: record.isToDrain } },
    trust: trustOf(store, key, record, nowMs),
    isAtRisk: false,
    takesKeys: false,
    loadedVersions: undefined,
    lacks: undefined,
    trouble: "",
    drain: undefined,
    ackedAssignment: undefined,
    holdsNothing: false,
    refusedAloneAtMs: -Infinity,
    stored: value,
    slots: record.slots,
    plugins: record.plugins,
    load: beat?.load ?? 0,
    registeredAtWallMs: record.registeredAtWallMs,
    sequence: beat?.incarnation === record.incarnation ? beat.sequence : 0,
    lastBeatMs: undefined,
    dueAtMs: nowMs,
    movedAtMs: nowMs,
    session: undefined,
    sessionNumber: 0,
    restart: undefined,
    adopted: 0,
    held: new Map(),
  };
}

/** The failures of a trusted worker are forgotten: failures in a row are counted anew. */
function trustOf(store: Store, key: string, record: WorkerRecord, nowMs: number): WorkerRow["trust"] {
  const { incarnation, trust, failuresInRow } = record;
  const state =
    trustChart.indexOf(trust) ?? corrupt(store, key, `no state ${trust} in the chart of a worker's trust`);
  const { context } = trustChart.initial({ incarnation });
  // When it was tried is not known by this clock.
  return { state, context: { ...context, failuresInRow, triedAtMs: nowMs } };
}

/** Running stays running: only the worker's own word, or its silence, takes an item from it. */
function handTo(store: Store, workers: ReadonlyMap<WorkerId, WorkerRow>, item: RunningItem): void {
  const holder = workers.get(item.row.context.worker as WorkerId);
  if (holder === undefined) {
    const reason = `it is with worker ${item.row.context.worker}, which the registry does not have`;
    return corrupt(store, `${RUNNING_PREFIX}${item.place}`, reason);
  }
  holder.held.set(item.itemKey, item);
}

async function readRun(store: Store): Promise<Pick<CoordinatorState, "run" | "task" | "countedFrom">> {
  const record = await readRecord(store, RUN_KEY, runRecord);
  if (record === undefined) return { run: runChart.initial({}), task: null, countedFrom: NEVER_STARTED };
  const { state, pauseReason, task, countedFrom } = record;
  const index = runChart.indexOf(state) ?? corrupt(store, RUN_KEY, `no state ${state} in the run's chart`);
  return { run: { state: index, context: { pauseReason } }, task, countedFrom };
}
