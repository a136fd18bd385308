// The coordinator without sockets: its turn loop over a real database in this process, and workers that hand their beats, and their
// frames, over as the services do. Measured is the coordinator's own cost.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { assert } from "../../src/base/assert.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, RunId, WorkerId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { turnstile } from "../../src/base/turnstile.ts";
import type { Input } from "../../src/coordinator/turn/input.ts";
import type { CoordinatorState } from "../../src/coordinator/turn/state.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { performEffect } from "../../src/coordinator/perform-effect.ts";
import type { EffectPorts } from "../../src/coordinator/perform-effect.ts";
import { replay } from "../../src/coordinator/replay.ts";
import { TurnLoop } from "../../src/coordinator/turn-loop.ts";
import type { EventEmitter } from "../../src/observe/events.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { claimStore } from "../../src/storage/store-identity.ts";
import type { Batch, Store } from "../../src/storage/store.ts";
import type { LagReport } from "./measured-coordinator.ts";

const LIVENESS = {
  heartbeatIntervalMs: 500,
  clockSkewBudgetMs: 250,
  coordinatorFailureTimeoutMs: 5_000,
  removeAfterMs: 60_000,
};
/** As a ledger's database has it. */
const WRITE_BUFFER_BYTES = 64 * 2 ** 20;
const GROUPS = 50;
const SETTLE_MS = 2_000;
const [clock, random] = [systemClock, systemRandom];

export interface InMemoryMeasured {
  readonly beatsPerSecond: number;
  readonly suspected: number;
  readonly lag: LagReport;
}

export async function measureInMemory(workers: number, measureMs: number): Promise<InMemoryMeasured> {
  return ledInMemory(workers, async (coordinator) => {
    const stop = new AbortController();
    const beating = beat(coordinator, workers, stop.signal);
    await sleep(clock, SETTLE_MS);
    const measured = await measure(coordinator, measureMs);
    stop.abort();
    await beating;
    return measured;
  });
}

export interface InMemoryCoordinator {
  readonly loop: TurnLoop;
  readonly store: Store;
  readonly state: CoordinatorState;
  readonly counted: { accepted: number; suspected: number };
  /** Nobody waits for what is still being read. */
  isOver: boolean;
}

/** A coordinator over a new database, for as long as it is used. `onCommit` is told of each batch before it is written. */
export async function ledInMemory<Result>(
  workersMax: number,
  use: (coordinator: InMemoryCoordinator) => Promise<Result>,
  onCommit?: (batch: Batch) => void,
): Promise<Result> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
  const store = await openLevelStore({
    ...{ path: join(directory, "db"), holderName: "bench", clock },
    writeBufferBytes: WRITE_BUFFER_BYTES,
  });
  try {
    if (onCommit !== undefined) tellCommits(store, onCommit);
    const coordinator = await lead(store, workersMax);
    const result = await use(coordinator);
    await coordinator.loop.stop();
    coordinator.isOver = true;
    return result;
  } finally {
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
}

function tellCommits(store: Store, onCommit: (batch: Batch) => void): void {
  const commit = store.commit.bind(store);
  store.commit = (batch) => {
    onCommit(batch);
    return commit(batch);
  };
}

async function lead(store: Store, workersMax: number): Promise<InMemoryCoordinator> {
  await claimStore(store, { runId: newUlid<RunId>(clock, random), clock, random });
  const { epoch, epochRow } = await new StorageLease(store, "bench").claim();
  const budgets = { maxAttempts: 3, maxLost: 5 };
  const state = await replay(store, {
    liveness: LIVENESS,
    workersMax,
    nowMs: clock.monotonicMs(),
    epoch,
    random,
    budgets,
  });
  const counted = { accepted: 0, suspected: 0 };
  const events: EventEmitter = {
    emit: (topic, payload) => {
      // The line is made as for standard output, and counted instead of written.
      if (JSON.stringify(payload).length > 0 && topic === "worker_suspected") counted.suspected++;
    },
  };
  const onFatal = (error: unknown): void =>
    assert(coordinator.isOver, `the coordinator broke: ${String(error)}`);
  const feed = (input: Input): void => loop.feed(input);
  const ports: EffectPorts = {
    store,
    events,
    log: silentLogger,
    onFatal,
    feed,
    isLeader: () => Promise.resolve(true),
    inTurn: turnstile(),
  };
  const loop: TurnLoop = new TurnLoop({
    state,
    store,
    clock,
    epochRow,
    inboxMax: 2 * workersMax,
    mayAct: () => true,
    leads: () => Promise.resolve(true),
    perform: (effect) => performEffect(effect, ports),
    onBroken: ({ kind }) => assert(false, `the loop broke: ${kind}`),
  });
  const coordinator: InMemoryCoordinator = { loop, store, state, counted, isOver: false };
  return coordinator;
}

/** Every worker once per interval, in groups that are spread over it. */
async function beat(
  { loop, counted }: InMemoryCoordinator,
  workers: number,
  signal: AbortSignal,
): Promise<void> {
  const fleet = Array.from({ length: workers }, () => ({
    workerId: newUlid<WorkerId>(clock, random),
    incarnation: newUlid<IncarnationId>(clock, random),
    sequence: 0,
  }));
  const answer = (): void => void counted.accepted++;
  let nextMs = clock.monotonicMs();
  for (let group = 0; !signal.aborted; group = (group + 1) % GROUPS) {
    nextMs += LIVENESS.heartbeatIntervalMs / GROUPS;
    for (let at = group; at < workers; at += GROUPS) {
      const worker = fleet[at];
      assert(worker !== undefined, "the fleet has no holes");
      worker.sequence++;
      const said = {
        ...worker,
        state: "Ready" as const,
        load: 0.5,
        sentAtMs: clock.wallMs(),
        slots: 1,
        plugins: [],
        isAtRisk: false,
        trouble: "",
      };
      assert(loop.push({ kind: "beat", beat: said, answer }), "the inbox holds two beats of every worker");
    }
    await sleep(clock, Math.max(0, nextMs - clock.monotonicMs()));
  }
}

async function measure({ counted }: InMemoryCoordinator, measureMs: number): Promise<InMemoryMeasured> {
  const histogram = monitorEventLoopDelay({ resolution: 5 });
  histogram.enable();
  const [acceptedBefore, startedMs, cpuBefore] = [counted.accepted, clock.monotonicMs(), process.cpuUsage()];
  await sleep(clock, measureMs);
  const lagMs = (percentile: number): number => Math.max(0, histogram.percentile(percentile) / 1e6 - 5);
  const { user, system } = process.cpuUsage(cpuBefore);
  return {
    beatsPerSecond: ((counted.accepted - acceptedBefore) / (clock.monotonicMs() - startedMs)) * 1_000,
    suspected: counted.suspected,
    lag: {
      p50_ms: lagMs(50),
      p99_ms: lagMs(99),
      max_ms: Math.max(0, histogram.max / 1e6 - 5),
      cpu_ms: (user + system) / 1_000,
      rss_bytes: process.memoryUsage.rss(),
      rss_peak_bytes: process.resourceUsage().maxRSS * 1_024,
      rss_of_files_bytes: 0,
      in_use_bytes: 0,
    },
  };
}
