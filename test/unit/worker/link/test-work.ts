// The part of a worker that works, without its life: over mutual TLS to a scripted coordinator, with a backend that waits
// for the test.
import { createClient } from "@connectrpc/connect";
import { systemClock } from "../../../../src/base/clock.ts";
import type { RolloutError } from "../../../../src/base/errors.ts";
import type { IncarnationId } from "../../../../src/base/ids.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import type { Random } from "../../../../src/base/random.ts";
import { WorkService } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { openClient } from "../../../../src/transport/client.ts";
import { EpochGuard } from "../../../../src/worker/link/epoch-guard.ts";
import type { SessionOptions } from "../../../../src/worker/link/session.ts";
import type { WorkOptions } from "../../../../src/worker/workload.ts";
import { Workload } from "../../../../src/worker/workload.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import type { ScriptedCoordinator } from "../../../support/scripted-coordinator.ts";

export interface StartedWork {
  readonly work: Workload;
  readonly backend: HeldBackend;
  readonly store: Store;
  readonly log: RecordingLogger;
  readonly incarnation: IncarnationId;
  readonly fatal: readonly unknown[];
  readonly failed: readonly RolloutError[];
  superseded: number;
  /** The epochs that were to be written down, in order. */
  readonly epochsMet: readonly number[];
  /** An epoch is on disk when this has resolved. */
  disk: Promise<unknown>;
  isFenced: boolean;
  /** Ends at once, as a killed process does, but for what is on its way to the disk. */
  stop(): Promise<void>;
}

/** Waits are there, and short. */
const hasty: Random = { unit: () => 0.01, bytes: (count) => new Uint8Array(count) };

export type WorkTestOptions = Partial<WorkOptions> & {
  readonly address?: string;
  /** In place of one over mutual TLS. */
  readonly sessions?: SessionOptions["client"];
};

/** Its session is started. Three slots and two more in the backlog, unless `options` says otherwise. */
export async function startWork(
  { runId, ca, server }: ScriptedCoordinator,
  options: WorkTestOptions = {},
): Promise<StartedWork> {
  const [fatal, failed, epochsMet]: [unknown[], RolloutError[], number[]] = [[], [], []];
  const workerId = options.workerId ?? newWorkerId();
  const [log, backend] = [new RecordingLogger(), new HeldBackend()];
  const { store = new MemoryStore(), incarnation = incarnationId(1) } = options;
  const clock = systemClock;
  const work = await Workload.open({
    runId,
    workerId,
    incarnation,
    slots: 3,
    prefetch: 2,
    plugins: fixedPlugins(backend),
    store,
    clock,
    log,
    isFenced: () => started.isFenced,
    onFatal: (error) => void fatal.push(error),
    ...options,
  });
  const client = openClient({
    address: options.address ?? server.address,
    runId,
    credentials: await ca.issue({ runId, role: "worker", id: workerId }),
    clock,
    random: hasty,
    log,
  });
  const calls = createClient(WorkService, client.transport);
  work.attach({
    client: { ...calls, ...options.sessions },
    random: hasty,
    guard: new EpochGuard([], async ([latest]) => {
      epochsMet.push(Number(latest?.epoch));
      await started.disk;
    }),
    envelope: () => ({ workerId: ulidToBytes(workerId), incarnation: ulidToBytes(incarnation) }),
    onFailed: (error) => void failed.push(error),
    onSuperseded: () => started.superseded++,
  });
  const stop = async (): Promise<void> => {
    await work.stop();
    client.close();
  };
  const started: StartedWork = {
    ...{ work, backend, store, log, incarnation, fatal, failed, epochsMet, stop },
    ...{ superseded: 0, disk: Promise.resolve(), isFenced: false },
  };
  work.start();
  return started;
}
