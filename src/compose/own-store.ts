// The database in which a coordinator keeps its role, below the state directory. A start takes over one that no live process has, so
// there is one, and it says how the process before ended; beside a live coordinator another is made. Where several are free, as
// coordinators side by side leave them, and earlier versions with one for each start, the record of the last leadership counts.
//
// Keeps true: a database is removed only while another one on the disk tells of as late a leadership, and never under a live process.
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../base/clock.ts";
import { errnoOf, RolloutError } from "../base/errors.ts";
import { isUlid, newUlid } from "../base/ids.ts";
import type { IncarnationId } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { Role } from "../coordinator/lead/role.ts";
import type { Logger } from "../observe/log.ts";
import { unusable } from "../storage/level/directory.ts";
import { holderFilePath } from "../storage/level/holder-file.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import type { Store } from "../storage/store.ts";

export interface OwnStoreOptions {
  readonly stateDir: string;
  readonly holderName: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Ends the name of one that is being removed: no start takes it, and the next one removes it where this process dies. */
const REMOVED = ".removed";

/**
 * Held by this process when it resolves. One that cannot be opened is left as it is, with a warning: what became of an earlier
 * process is no reason not to lead. Throws the store_… rows of a new one.
 */
export async function openOwnStore(options: OwnStoreOptions): Promise<Store> {
  const { clock, random, log } = options;
  const directory = join(options.stateDir, "coordinators");
  const open = (name: string): Promise<Store> => openLevelStore({ ...options, path: join(directory, name) });
  const names = await namesIn(directory);
  for (const name of names)
    if (name.endsWith(REMOVED)) await orWarn(log, () => finishRemoval(join(directory, name)));
  let kept: Found | undefined;
  for (const name of names.filter(isUlid).sort().reverse()) {
    const found = await open(name).then(
      (store) => read(store, options),
      (error: unknown) => {
        if (!(error instanceof RolloutError)) throw error;
        if (!isHeld(error) && kept === undefined) log.warn(UNREADABLE, { err: error });
        return undefined;
      },
    );
    if (found === undefined) continue;
    const earlier = kept === undefined || found.epoch > kept.epoch ? kept : found;
    if (earlier !== found) kept = found;
    if (earlier !== undefined) await orWarn(log, () => remove(earlier.store));
  }
  if (kept !== undefined) return kept.store;
  const make = (): Promise<Store> => open(newUlid<IncarnationId>(clock, random));
  // Another process that starts may find the directory that was just made, and hold it or remove it before its maker has it.
  return make().catch((error: unknown) => {
    if (error instanceof RolloutError) return make();
    throw error;
  });
}

const UNREADABLE = "the role of an earlier coordinator cannot be read";

interface Found {
  readonly store: Store;
  /** The last leadership that it tells of; -1 for none. */
  readonly epoch: number;
}

/** Closed, and undefined, where the record cannot be had from it. */
async function read(store: Store, options: OwnStoreOptions): Promise<Found | undefined> {
  try {
    return { store, epoch: (await Role.lastEpoch({ ...options, ownStore: store })) ?? -1 };
  } catch (error) {
    await store.close();
    if (!(error instanceof RolloutError)) throw error;
    options.log.warn(UNREADABLE, { err: error });
    return undefined;
  }
}

/** It loses its name while this process still holds it: after that nobody can find it and open it. */
async function remove(store: Store): Promise<void> {
  const removed = `${store.location}${REMOVED}`;
  try {
    await rename(store.location, removed);
  } finally {
    await store.close();
  }
  await finishRemoval(removed);
}

async function finishRemoval(removed: string): Promise<void> {
  // A process that died meanwhile has left its name behind.
  await rm(holderFilePath(removed.slice(0, -REMOVED.length)), { force: true });
  await rm(removed, { recursive: true, force: true });
}

async function orWarn(log: Logger, act: () => Promise<void>): Promise<void> {
  await act().catch((err: unknown) => log.warn("a database of an earlier coordinator stays", { err }));
}

function isHeld(error: RolloutError): boolean {
  return error.code === "store_held";
}

async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return [];
    throw unusable(directory, error);
  }
}
