// How many files and sockets a process of each role has open at once, and whether this one may: looked at before anything is
// started, because later it shows in other words at some place that could not open one more.
//
// Measured on Linux with Node 24: the least limit at which 60 items come through. A worker of 1, 4 and 16 slots 40, 48 and 92 (its
// commands, their pipes and their starts counted), a coordinator 36 and one more for each worker, `rollout run` 34 and two
// more for each. The numbers here are a little above that.
import { failure } from "../base/errors.ts";
import { openFilesLimit } from "../base/process-table.ts";

export interface FilesNeeded {
  /** For people: "a worker of 4 slots". */
  readonly who: string;
  readonly files: number;
}

const BASE = 40;
const EACH_SLOT = 4;
const EACH_WORKER = 1;
/** Two pipes, and a log for a moment. */
const EACH_CHILD = 3;

export function filesOfWorker(slots: number): FilesNeeded {
  return { who: `a worker of ${counted(slots, "slot")}`, files: BASE + EACH_SLOT * slots };
}

export function filesOfCoordinator(workers: number): FilesNeeded {
  return { who: `a coordinator of ${counted(workers, "worker")}`, files: BASE + EACH_WORKER * workers };
}

/** The process of a local run that needs most: each of them has the same limit. */
export function filesOfLocalRun(workers: number, slots: number): FilesNeeded {
  const own = { who: `a local run of ${counted(workers, "worker")}`, files: BASE + EACH_CHILD * workers };
  const all = [own, filesOfCoordinator(workers), filesOfWorker(slots)];
  return all.reduce((most, each) => (each.files > most.files ? each : most));
}

/** How many workers a coordinator may have with so many files. */
export function workersWithin(limit: number): number {
  return Math.max(0, Math.floor((limit - BASE) / EACH_WORKER));
}

/** Throws too_few_files. */
export function demandFiles(needed: FilesNeeded): void {
  const limit = openFilesLimit();
  if (limit !== undefined && limit < needed.files)
    throw failure("too_few_files", { who: needed.who, needed: needed.files, limit });
}

function counted(count: number, what: string): string {
  return `${count} ${what}${count === 1 ? "" : "s"}`;
}
