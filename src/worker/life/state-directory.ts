// Which worker this process is. Each has a directory of its own under `<state_dir>/workers`, named by its id; a process
// without an id of its own takes over the first that nobody holds and that was not revoked, so that a restart is the same worker, and any
// number of processes start from one configuration. Workers of fleets have theirs under `<state_dir>/allocations`: nobody takes over
// those, and they are removed when nothing that was to be delivered is left in them.
import { readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import { asUnwritable, unwritable } from "../../base/system-reason.ts";
import { newUlid, parseUlid } from "../../base/ids.ts";
import { ifThere, makeDirectory } from "../../base/file-system.ts";
import { keepDirectoryPrivate, keepPlaceTrusted } from "../../base/trusted-place.ts";
import type { WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Store } from "../../storage/store.ts";
import { wasRevoked } from "./worker-records.ts";

/** Opens the database in a directory, making it when it is not there; fails with `store_held` when a process has it. */
export type OpenStore = (path: string) => Promise<Store>;

export interface ClaimedState {
  readonly workerId: WorkerId;
  readonly store: Store;
}

export interface ClaimOptions {
  readonly stateDir: string;
  /** Undefined: take over a free one, else make one. */
  readonly workerId: WorkerId | undefined;
  /** It is the worker of an allocation of a fleet. */
  readonly isAllocation: boolean;
  readonly openStore: OpenStore;
  readonly clock: Clock;
  readonly random: Random;
}

const ALLOCATIONS = "allocations";

/** How many new ids may be taken by others before this process holds them; one is rare enough. */
const NEW_IDS_MAX = 8;

/** Holds the worker's store when it resolves. Throws store_… rows, not_trusted, or file_unwritable for the directory. */
export async function claimWorkerState(options: ClaimOptions): Promise<ClaimedState> {
  const { stateDir, workerId: wanted, clock, random, isAllocation } = options;
  const directory = join(stateDir, isAllocation ? ALLOCATIONS : "workers");
  await prepare(stateDir, directory);
  const open = (workerId: WorkerId): Promise<Store> => options.openStore(join(directory, workerId));
  if (wanted !== undefined) return { workerId: wanted, store: await open(wanted) };
  const candidates = await existingWorkers(directory);
  // Another process that starts may find a directory that was just made, and hold it before its maker does.
  for (let made = 0; made < NEW_IDS_MAX; made++) candidates.push(newUlid<WorkerId>(clock, random));
  for (const workerId of candidates) {
    const store = await open(workerId).catch(undefinedWhenHeld);
    if (store === undefined) continue;
    if (!(await isOver(store))) return { workerId, store };
    await store.close();
  }
  throw failure("internal", { detail: `all of ${NEW_IDS_MAX} new worker ids were held` });
}

/** Workers of fleets that have left their state here: those that run, and those that have ended and had something left. */
export async function allocationsIn(stateDir: string): Promise<WorkerId[]> {
  return existingWorkers(join(stateDir, ALLOCATIONS));
}

/** The database of the worker of an allocation. */
export function allocationState(stateDir: string, workerId: WorkerId): string {
  return join(stateDir, ALLOCATIONS, workerId);
}

/** Removes all that is here of the worker of an allocation. After its store was closed. */
export async function removeAllocation(stateDir: string, workerId: WorkerId): Promise<void> {
  const places = [ALLOCATIONS, "children", "attempts"].map((place) => join(stateDir, place, workerId));
  for (const place of places) await rm(place, { recursive: true, force: true });
}

/** Whether no coordinator will ever take this worker again. */
async function isOver(store: Store): Promise<boolean> {
  return wasRevoked(store).catch(async (error: unknown) => {
    await store.close();
    throw error;
  });
}

async function prepare(stateDir: string, directory: string): Promise<void> {
  await makeDirectory(directory).catch(asUnwritable(directory));
  await keepPlaceTrusted(stateDir);
  await keepDirectoryPrivate(directory);
}

async function existingWorkers(directory: string): Promise<WorkerId[]> {
  try {
    const names = (await ifThere(readdir(directory))) ?? [];
    return names.flatMap((name) => parseUlid<WorkerId>(name) ?? []).sort();
  } catch (error) {
    throw unwritable(directory, error);
  }
}

function undefinedWhenHeld(error: unknown): undefined {
  if (error instanceof RolloutError && error.code === "store_held") return undefined;
  throw error;
}
