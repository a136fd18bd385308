// Results that workers of a fleet have left on this host, because no coordinator answered before they had to go: the next worker of a fleet
// here delivers them before it asks for work. Each is delivered as its own worker's, which is started again for that alone.
//
// Keeps true: nothing of a worker that runs is touched, and no result is removed before a coordinator has acknowledged it. A failure is said
// and costs a second execution at most: the worker that delivers goes on.
import { describeError, RolloutError } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { bootId } from "../base/process-table.ts";
import type { ClientConfig } from "../config/resolve.ts";
import type { Store } from "../storage/store.ts";
import type { Credentials } from "../transport/tls/identity.ts";
import { Plugins } from "../worker/backends/plugins.ts";
import { allocationsIn, allocationState, removeAllocation } from "../worker/life/state-directory.ts";
import { Worker } from "../worker/worker.ts";
import { hasUndelivered } from "../worker/work/outbox.ts";
import type { ProcessPorts } from "./process-ports.ts";
import { Downfall } from "./process-ports.ts";

export interface LeftResultsOptions {
  /** The worker that delivers. */
  readonly workerId: WorkerId;
  readonly openStore: (path: string) => Promise<Store>;
  readonly enrolment: () => Promise<Credentials>;
}

/** Workers whose results one start delivers at most; the next one has the others. */
const WORKERS_MAX = 16;
/** Nothing executes in it: the drain waits for the acknowledgement of its results alone. */
const DRAIN_MS = 15_000;

export async function deliverLeftResults(
  config: ClientConfig,
  options: LeftResultsOptions,
  ports: ProcessPorts,
): Promise<void> {
  const { stateDir } = config.worker;
  const others = (await allocationsIn(stateDir)).filter((id) => id !== options.workerId);
  let looked = 0;
  for (const id of others) {
    if (looked >= WORKERS_MAX) return;
    const store = await options.openStore(allocationState(stateDir, id)).catch(unlessHeld(id, ports));
    if (store === undefined) continue;
    looked++;
    const isDone = await deliver(config, { id, store }, options, ports).catch((error: unknown) =>
      say(ports, id, error),
    );
    await store.close();
    // Where one cannot deliver, others cannot either now.
    if (!isDone) return;
    await removeAllocation(stateDir, id);
  }
}

/** Whether nothing is left to deliver. */
async function deliver(
  config: ClientConfig,
  { id, store }: { readonly id: WorkerId; readonly store: Store },
  { enrolment }: LeftResultsOptions,
  ports: ProcessPorts,
): Promise<boolean> {
  if (!(await hasUndelivered(store))) return true;
  const { clock, log } = ports;
  log.info("an earlier worker has left results here: they are delivered first", { worker_id: id });
  const downfall = new Downfall();
  const { coordinatorAddr: address, onFence } = config.worker;
  const { heartbeatIntervalMs, workerSelfFenceTimeoutMs, coordinatorFailureTimeoutMs } = config.liveness;
  const worker = await Worker.start({
    ...{ ...ports, runId: config.runId, workerId: id, store, boot: bootId(), address, slots: 1 },
    credentials: { kind: "enrolment", load: enrolment },
    work: { plugins: new Plugins([], downfall.because), onFence },
    ...{ heartbeatIntervalMs, selfFenceTimeoutMs: workerSelfFenceTimeoutMs },
    failureTimeoutMs: coordinatorFailureTimeoutMs,
    onFatal: downfall.because,
    onEnded: (error: RolloutError) => downfall.because(error),
  });
  try {
    const left = worker.drain({ cause: "sigterm", deadlineMs: clock.monotonicMs() + DRAIN_MS });
    await Promise.race([left, downfall.promise]);
  } finally {
    await worker.stop();
  }
  return !(await hasUndelivered(store));
}

function unlessHeld(id: WorkerId, ports: ProcessPorts) {
  return (error: unknown): undefined => {
    // It runs.
    if (error instanceof RolloutError && error.code === "store_held") return;
    say(ports, id, error);
  };
}

function say({ log }: ProcessPorts, id: WorkerId, error: unknown): false {
  if (!(error instanceof RolloutError)) throw error;
  const about = { worker_id: id, code: error.code };
  log.warn(`results of an earlier worker cannot be delivered: ${describeError(error)}`, about);
  return false;
}
