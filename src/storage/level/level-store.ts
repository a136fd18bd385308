// The store on LevelDB, for one process. Opening is the delicate part: see docs/adr/0009.
//
// Keeps true: two handles never have one database, in this process or in others, and the one that is refused leaves the
// first unharmed; after a failed write the handle answers nothing but `unknown`.
import { stat } from "node:fs/promises";
import { isoTime, sleep } from "../../base/clock.ts";
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import { GroupCommit } from "../group-commit.ts";
import type { SyncTiming } from "../group-commit.ts";
import { assertBatch, assertKey, assertOpen, assertRange, NO_GENERATION } from "../store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../store.ts";
import { prepareDirectory, refuseUnlessDatabaseOrEmpty, systemStatFs, unusable } from "./directory.ts";
import type { StatFs } from "./directory.ts";
import { FrozenStore } from "./frozen-store.ts";
import { describeHolder, findLiveHolder, holderFilePath, removeHolder, writeHolder } from "./holder-file.ts";
import type { Holder } from "./holder-file.ts";
import { LevelEngine } from "./level-engine.ts";
import { LevelWriter } from "./level-writer.ts";
import { thisProcess } from "./process-identity.ts";

export interface LevelStoreOptions {
  /** The directory; it and its parents are made. `<path>.lock` beside it says who holds it. */
  readonly path: string;
  /** The command, for whoever is refused: "rollout coordinator run". */
  readonly holderName: string;
  readonly clock: Clock;
  readonly log?: Logger;
  /** Told how long each write took that had an fsync in it. */
  readonly onSynced?: SyncTiming["onSynced"] | undefined;
  /**
   * Bytes of writes that LevelDB holds in memory, up to twice as many, before it writes them a second time, sorted: 4 MiB unless
   * said, enough for a store that little is written to. An open after a crash reads as many again.
   */
  readonly writeBufferBytes?: number;
  /** Injected in tests. */
  readonly statFs?: StatFs;
}

const WRITE_BUFFER_BYTES = 4 * 1024 * 1024;

/** How long a process that lost the race waits for the winner to say its name. */
const NAME_WAIT_MS = 50;
const NAME_TRIES = 20;

/**
 * Opens the database, or makes it. Throws store_held (with who holds it), store_unusable (with what to do), or
 * store_broken (LevelDB's own files are damaged, or acknowledged commits are missing).
 */
export async function openLevelStore(options: LevelStoreOptions): Promise<Store> {
  const statFs = options.statFs ?? systemStatFs;
  const path = await prepareDirectory(options.path, statFs);
  const self: Holder = {
    ...(await thisProcess()),
    command: options.holderName,
    since: isoTime(options.clock.wallMs()),
  };
  const reservation = await reserveOpenPath(path, `${describeHolder(self)}, which is this process`);
  if (reservation.kind === "open") throw held(path, reservation.holder);
  try {
    return await openReserved(path, self, reservation, { ...options, statFs });
  } catch (error) {
    reservation.release();
    throw unusable(path, error);
  }
}

async function openReserved(
  path: string,
  self: Holder,
  reservation: Reservation & { kind: "reserved" },
  options: LevelStoreOptions & { readonly statFs: StatFs },
): Promise<Store> {
  const holder = await findLiveHolder(path, self);
  if (holder !== undefined) throw held(path, describeHolder(holder));
  await refuseUnlessDatabaseOrEmpty(path);

  const { statFs, clock, log, onSynced, writeBufferBytes = WRITE_BUFFER_BYTES } = options;
  const opened = await LevelEngine.open(path, { statFs, clock, log, writeBufferBytes });
  if (opened.kind === "locked") throw held(path, await nameOfWinner(path, self, options.clock));
  try {
    await writeHolder(path, self);
  } catch (error) {
    await opened.engine.close();
    throw error;
  }
  const release = async (): Promise<void> => {
    try {
      await removeHolder(path, self);
    } finally {
      reservation.release();
    }
  };
  return new LevelStore(path, opened.engine, { release, timing: onSynced && { clock, onSynced } });
}

class LevelStore implements Store {
  readonly location: string;
  readonly supports = { multiProcess: false };
  readonly generation = NO_GENERATION;
  readonly #engine: LevelEngine;
  readonly #writer: GroupCommit;
  readonly #release: () => Promise<void>;
  #closing: Promise<void> | undefined;

  constructor(
    location: string,
    engine: LevelEngine,
    { release, timing }: { readonly release: () => Promise<void>; readonly timing: SyncTiming | undefined },
  ) {
    this.location = location;
    this.#engine = engine;
    this.#writer = new GroupCommit(new LevelWriter(engine), timing);
    this.#release = release;
  }

  get everWritten(): boolean {
    return this.#engine.everWritten;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    this.#assertReadable();
    assertKey(key);
    return this.#engine.get(key);
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    this.#assertReadable();
    keys.forEach(assertKey);
    return this.#engine.read(keys);
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    this.#assertReadable();
    assertRange(range);
    return this.#engine.scan(range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    assertOpen(this.#closing === undefined, this.location);
    assertBatch(batch);
    return this.#writer.commit(batch);
  }

  async freeze(): Promise<Store> {
    this.#assertReadable();
    return new FrozenStore(this, this.#engine);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await this.#writer.drained();
    try {
      await this.#engine.close();
    } finally {
      await this.#release();
    }
  }

  /** A broken handle may read other values than are on the disk. */
  #assertReadable(): void {
    assertOpen(this.#closing === undefined, this.location);
    if (this.#writer.broken !== undefined) throw this.#writer.broken;
  }
}

/** The kernel says that somebody has it. Its name may be there only a moment later. */
async function nameOfWinner(path: string, self: Holder, clock: Clock): Promise<string> {
  for (let tries = 0; tries < NAME_TRIES; tries++) {
    const holder = await findLiveHolder(path, self);
    if (holder !== undefined) return describeHolder(holder);
    await sleep(clock, NAME_WAIT_MS);
  }
  return `a process that ${holderFilePath(path)} does not name`;
}

function held(path: string, holder: string): RolloutError {
  return failure("store_held", { path, holder });
}

/**
 * The databases that this process has open. LevelDB's lock belongs to the process, and a second open in the same process,
 * even one that fails, silently gives it away (docs/adr/0009): so a second open must never get as far as LevelDB.
 *
 * The one module-level state of the product: what it guards, the lock of a process, is one per process too, and a
 * registry that had to be passed around could be forgotten by exactly the caller that it is there to stop.
 */
const openPaths = new Map<string, string>();

type Reservation =
  | { readonly kind: "reserved"; release(): void }
  /** This process has it open; `holder` is who, as given with the first reservation. */
  | { readonly kind: "open"; readonly holder: string };

/**
 * Reserves a directory, by its real path and by its inode (a bind mount has another path). Taken in one step, without
 * waiting between look and take, once the inode is known. `release` is idempotent.
 */
async function reserveOpenPath(realPath: string, holder: string): Promise<Reservation> {
  const { dev, ino } = await stat(realPath, { bigint: true });
  const names = [`path ${realPath}`, `inode ${dev}:${ino}`];
  for (const name of names) {
    const present = openPaths.get(name);
    if (present !== undefined) return { kind: "open", holder: present };
  }
  for (const name of names) openPaths.set(name, holder);
  let held = true;
  return {
    kind: "reserved",
    release() {
      if (held) for (const name of names) openPaths.delete(name);
      held = false;
    },
  };
}
