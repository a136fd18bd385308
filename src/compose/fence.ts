// The end of a fenced coordinator: one event on its own standard output, then SIGABRT. Nothing else of it happens any more,
// and what it had in memory, keys among it, is not left behind in a core dump.
import { execFile } from "node:child_process";
import { writeFile } from "node:fs/promises";
import type { Fenced } from "../coordinator/coordinator.ts";
import type { WatchdogWorker } from "../coordinator/lead/watchdog-worker.ts";
import type { UrgentEventEmitter } from "../observe/events.ts";

/**
 * Makes a coordinator's `abortFenced`. `watchdog` is there where another process can come to lead: it and the main
 * thread agree on who speaks.
 */
export function fencing(events: UrgentEventEmitter, watchdog?: WatchdogWorker): (fenced: Fenced) => void {
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
