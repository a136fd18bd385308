// A real worker in this process: its store in memory, its way to the coordinator over mutual TLS, and everything it says.
import { systemClock } from "../../src/base/clock.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import type { WorkerId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { Plugins } from "../../src/worker/backends/plugins.ts";
import type { WorkerOptions } from "../../src/worker/worker.ts";
import { Worker } from "../../src/worker/worker.ts";
import { newIdentity, newWorkerId } from "./certificates.ts";
import { RecordingEmitter } from "./recording-emitter.ts";
import { RecordingLogger } from "./recording-logger.ts";
import type { TestCluster } from "./test-coordinator.ts";

export interface StartedWorker {
  readonly worker: Worker;
  readonly id: WorkerId;
  readonly store: Store;
  readonly events: RecordingEmitter;
  readonly log: RecordingLogger;
  /** Why it had to end, if it had to. */
  readonly ended: readonly RolloutError[];
  readonly fatal: readonly unknown[];
}

export type WorkerTestOptions = Partial<WorkerOptions> & Pick<WorkerOptions, "address">;

/** Enrols by a bundle, unless `options.credentials` says otherwise. */
export async function startWorker(
  { runId, ca }: TestCluster,
  options: WorkerTestOptions,
): Promise<StartedWorker> {
  const [ended, fatal]: [RolloutError[], unknown[]] = [[], []];
  const workerId = options.workerId ?? newWorkerId();
  const store = options.store ?? new MemoryStore();
  const said = { events: new RecordingEmitter(), log: new RecordingLogger() };
  const worker = await Worker.start({
    runId,
    credentials: { kind: "enrolment", load: () => ca.issue(newIdentity(runId, "enrolment")) },
    slots: 2,
    // None, unless the test has some: it executes nothing then.
    work: { plugins: new Plugins([], (error) => void fatal.push(error)) },
    heartbeatIntervalMs: 20,
    selfFenceTimeoutMs: 3_000,
    failureTimeoutMs: 4_000,
    clock: systemClock,
    random: systemRandom,
    onFatal: (error) => void fatal.push(error),
    onEnded: (error) => void ended.push(error),
    ...said,
    ...options,
    workerId,
    store,
  });
  return { ...said, worker, id: workerId, store, ended, fatal };
}
