// A coordinator process that stands for leadership, and its end when it has lost it: one event on its own standard output, then SIGABRT.
// Nothing else of it happens then, and what it had in memory, keys among it, is not left behind in a core dump.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import type { IncarnationId, RunId } from "../base/ids.ts";
import type { Fenced } from "../coordinator/coordinator-options.ts";
import { StaticElector } from "../coordinator/lead/elector.ts";
import { StorageElector } from "../coordinator/lead/elector-storage.ts";
import type { LeaseTiming } from "../coordinator/lead/elector-storage.ts";
import type { FencePatience } from "../coordinator/lead/fence-patience.ts";
import { FENCE_PATIENCE } from "../coordinator/lead/fence-patience.ts";
import type { LeaderElector } from "../coordinator/lead/elector.ts";
import { StorageLease } from "../coordinator/lead/lease.ts";
import { WatchdogWorker } from "../coordinator/lead/watchdog.ts";
import type { UrgentEventEmitter } from "../observe/events.ts";
import type { Logger } from "../observe/log.ts";
import type { Store } from "../storage/store.ts";

export interface CandidacyOptions {
  readonly runId: RunId;
  readonly incarnation: IncarnationId;
  readonly store: Store;
  /** Whether another process may come to lead over the same store. */
  readonly isShared: boolean;
  readonly timing: LeaseTiming;
  readonly onRenewal?: (isRenewed: boolean) => void;
  readonly clock: Clock;
  readonly events: UrgentEventEmitter;
  readonly log: Logger;
  /**
   * As its coordinator has it.
   * @internal
   */
  readonly fencePatience?: FencePatience;
}

export interface Candidacy {
  /** For one leadership each: a process that has made room for another may stand again. The lease names the address. */
  readonly newElector: (address?: string) => LeaderElector;
  readonly abortFenced: (fenced: Fenced) => void;
}

/** A store that is not shared needs no wait, no renewals and no watchdog: holding it is the proof. */
export async function stand(options: CandidacyOptions): Promise<Candidacy> {
  const { runId, timing, clock, events, log } = options;
  const lease = (address = ""): StorageLease =>
    new StorageLease(options.store, options.incarnation, { address });
  if (!options.isShared)
    return {
      newElector: (address) => new StaticElector(lease(address), clock),
      abortFenced: fencing(events),
    };
  const { onRenewal, fencePatience = FENCE_PATIENCE } = options;
  const renewals = onRenewal && { onRenewal };
  const watchdog = await WatchdogWorker.start({
    runId,
    fd: process.stdout.fd,
    graceMs: fencePatience.wordMs,
  });
  return {
    newElector: (address) =>
      new StorageElector({ lease: lease(address), timing, clock, log, watchdog, ...renewals }),
    abortFenced: fencing(events, watchdog),
  };
}

/**
 * Makes a coordinator's `abortFenced`. `watchdog` is there where another process can come to lead: it and the main
 * thread agree on who speaks.
 */
function fencing(events: UrgentEventEmitter, watchdog?: WatchdogWorker): (fenced: Fenced) => void {
  return ({ epoch, seenEpoch, reason, refusedWrites, refusedReplies }) => {
    if (watchdog?.takeLastWord() === false) return;
    const refused = { refused_writes: refusedWrites, refused_replies: refusedReplies };
    events.emitNow("coordinator_fenced", { epoch, seen_epoch: seenEpoch, reason, ...refused });
    process.kill(process.pid, "SIGABRT");
  };
}

/**
 * Core dumps off, as far as Linux lets a process do so from within; elsewhere they are off unless somebody turned them on.
 * Never fails: a coordinator without it still leads.
 *
 * A process can say that none of its memory goes into a dump; that holds for dumps that are piped to a program as well, for
 * which limits mean nothing. That there is no file at all takes setrlimit, which Node does not have: prlimit of
 * util-linux does it for us where it is installed.
 */
export async function turnOffCoreDumps(): Promise<void> {
  if (process.platform !== "linux") return;
  await writeFile("/proc/self/coredump_filter", "0x0").catch(() => undefined);
  await new Promise<void>((resolve) => {
    execFile("prlimit", ["--pid", String(process.pid), "--core=0:0"], () => resolve());
  });
}
