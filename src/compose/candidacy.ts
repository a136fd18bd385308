// How a coordinator process stands for leadership, and how it goes when it has lost it: by what its store is like.
import type { Clock } from "../base/clock.ts";
import type { IncarnationId, RunId } from "../base/ids.ts";
import type { Fenced } from "../coordinator/coordinator.ts";
import { StaticElector } from "../coordinator/lead/elector-static.ts";
import { StorageElector } from "../coordinator/lead/elector-storage.ts";
import type { LeaseTiming } from "../coordinator/lead/elector-storage.ts";
import type { LeaderElector } from "../coordinator/lead/elector.ts";
import { StorageLease } from "../coordinator/lead/lease.ts";
import { WatchdogWorker } from "../coordinator/lead/watchdog-worker.ts";
import type { UrgentEventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";
import { fencing } from "./fence.ts";

export interface CandidacyOptions {
  readonly runId: RunId;
  readonly incarnation: IncarnationId;
  readonly store: Store;
  /** Whether another process may come to lead over the same store. */
  readonly isShared: boolean;
  readonly timing: LeaseTiming;
  readonly clock: Clock;
  readonly events: UrgentEventEmitter;
  readonly log: Logger;
}

export interface Candidacy {
  readonly elector: LeaderElector;
  readonly abortFenced: (fenced: Fenced) => void;
}

/** A store that is not shared needs no wait, no renewals and no watchdog: holding it is the proof. */
export async function stand(options: CandidacyOptions): Promise<Candidacy> {
  const { runId, timing, clock, events, log } = options;
  const lease = new StorageLease(options.store, options.incarnation);
  if (!options.isShared) return { elector: new StaticElector(lease, clock), abortFenced: fencing(events) };
  const watchdog = await WatchdogWorker.start({ runId, fd: process.stdout.fd });
  const elector = new StorageElector({ lease, timing, clock, log, watchdog });
  return { elector, abortFenced: fencing(events, watchdog) };
}
