// LevelDB itself, behind this program's words: what may be asked of it, with which options, and what its failures mean.
//
// Keeps true: every write carries the next number of the commit index, and no error of the driver gets out as it is.
import { Level } from "level";
import { AssertionFailed } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { describeError, failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { Entry, ScanRange } from "../store.ts";
import { COMMIT_KEYS, CommitIndex, findIndexProblem, lastNumber, trimIndex } from "./commit-index.ts";
import { freeBytes, unopened } from "./directory.ts";
import type { StatFs } from "./directory.ts";
import type { Engine, Operation } from "./level-writer.ts";
import { RecentWrites } from "./recent-writes.ts";

/** The types of `level` have only what it can do in a browser too. */
type Database = Level<string, Uint8Array> & {
  compactRange(from: string, to: string): Promise<void>;
};
export type Snapshot = ReturnType<Database["snapshot"]>;

/** As of when something is read: without a snapshot as it is now. */
interface View {
  readonly snapshot?: Snapshot;
}

/**
 * Bytes of an operation, on average, up to which a batch is chained: that costs half of an array, of which the driver clones each entry. Its memory
 * is the driver's and goes with the collector, which does not see how much it is: of light operations it comes often enough.
 */
const CHAINED_BYTES_MAX = 1_024;
const READ_AHEAD_BYTES = 1024 * 1024;
/** The lowest key that the port allows; what is below is ours. */
const LOWEST_KEY = "!";
/** No table has anything here: to compact it empties the log, and does nothing else. */
const NOWHERE = "\u0000";

export interface EngineOptions {
  readonly clock: Clock;
  readonly statFs: StatFs;
  readonly log: Logger | undefined;
  readonly writeBufferBytes: number;
}

/** Opened: `locked` when another process has LevelDB's own lock. */
export type OpenedEngine =
  | { readonly kind: "opened"; readonly engine: LevelEngine }
  | { readonly kind: "locked" };

export class LevelEngine implements Engine {
  readonly #path: string;
  readonly #database: Database;
  readonly #index: CommitIndex;
  readonly #options: EngineOptions;
  readonly #recent = new RecentWrites();
  #emptying: Promise<void> | undefined;

  private constructor(path: string, database: Database, index: CommitIndex, options: EngineOptions) {
    this.#path = path;
    this.#database = database;
    this.#index = index;
    this.#options = options;
  }

  /** Never twice for one path in one process: see level-store.ts. Throws store_broken or store_unusable. */
  static async open(path: string, options: EngineOptions): Promise<OpenedEngine> {
    const database = new Level(path, {
      keyEncoding: "utf8",
      valueEncoding: "view",
      writeBufferSize: options.writeBufferBytes,
    }) as unknown as Database;
    const room = { statFs: options.statFs, needed: options.writeBufferBytes };
    try {
      await database.open();
    } catch (error) {
      if (driverCode(error) === "LEVEL_LOCKED") return { kind: "locked" };
      if (driverCode(error) === "LEVEL_CORRUPTION") throw broken(path, "its own files", error);
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      throw await unopened(path, cause, room);
    }
    try {
      const index = await openIndex(path, database, options);
      return { kind: "opened", engine: new LevelEngine(path, database, index, options) };
    } catch (error) {
      await database.close();
      if (error instanceof AssertionFailed) throw error;
      throw await unopened(path, error, room);
    }
  }

  get everWritten(): boolean {
    return this.#index.last > 0;
  }

  /** Reads that name it see nothing newer. */
  snapshot(): Snapshot {
    return this.#database.snapshot();
  }

  async get(key: string, view: View = {}): Promise<Uint8Array | undefined> {
    const recent = this.#readRecent([key], view);
    if (recent !== undefined) return recent[0];
    try {
      // The types of abstract-level 3 promise a value; an absent key gives undefined.
      const value: Uint8Array | undefined = await this.#database.get(key, view);
      return value;
    } catch (error) {
      throw corrupt(this.#path, key, error);
    }
  }

  async read(keys: readonly string[], view: View = {}): Promise<readonly (Uint8Array | undefined)[]> {
    const recent = this.#readRecent(keys, view);
    if (recent !== undefined) return recent;
    try {
      return await this.#database.getMany([...keys], view);
    } catch (error) {
      throw corrupt(this.#path, keys.length === 1 ? String(keys[0]) : `one of ${keys.join(", ")}`, error);
    }
  }

  async scan({ from, to, limit, bytesMax }: ScanRange, view: View = {}): Promise<Entry[]> {
    const gte = from < LOWEST_KEY ? LOWEST_KEY : from;
    const highWaterMarkBytes = bytesMax ?? READ_AHEAD_BYTES;
    try {
      const iterator = this.#database.iterator({ gte, lt: to, limit, highWaterMarkBytes, ...view });
      // One reading ends behind the entry that passes the mark; all of them end at the limit.
      const rows = bytesMax === undefined ? await iterator.all() : await iterator.nextv(limit);
      await iterator.close();
      return rows.map(([key, value]) => ({ key, value }));
    } catch (error) {
      throw corrupt(this.#path, `${from} to ${to}`, error);
    }
  }

  async write(operations: Operation[], sync: boolean): Promise<void> {
    const bytes = this.#index.number(operations);
    try {
      if (bytes > operations.length * CHAINED_BYTES_MAX) await this.#database.batch(operations, { sync });
      else await this.#chain(operations).write({ sync });
    } catch (error) {
      throw await this.#writeFailed(error, operations);
    }
    this.#recent.note(operations);
    if (sync) this.#index.noteSynced();
    if (this.#index.isLong) this.#emptying ??= this.#emptyLog();
  }

  #readRecent(keys: readonly string[], { snapshot }: View): (Uint8Array | undefined)[] | undefined {
    return snapshot === undefined ? this.#recent.read(keys) : undefined;
  }

  /** At once: nothing is awaited, so whatever throws here has opened nothing. */
  #chain(operations: readonly Operation[]): ReturnType<Database["batch"]> {
    const chain = this.#database.batch();
    for (const operation of operations)
      if (operation.type === "put") chain.put(operation.key, operation.value);
      else chain.del(operation.key);
    return chain;
  }

  async close(): Promise<void> {
    await this.#emptying;
    await this.#database.close();
    await this.#index.close();
  }

  /** Many small commits fill the index long before they fill the log. */
  async #emptyLog(): Promise<void> {
    const { last } = this.#index;
    try {
      await this.#database.compactRange(NOWHERE, NOWHERE);
      this.#index.noteEmptied(last);
    } catch (error) {
      // The index stays as long as it is, and it is tried again.
      this.#options.log?.warn("cannot empty the log of the database", {
        err: error,
        reason: describeError(error),
      });
    }
    this.#emptying = undefined;
  }

  /** The driver gives a text and no errno. A disk without room for what LevelDB writes next is told apart by looking. */
  async #writeFailed(error: unknown, operations: readonly Operation[]): Promise<RolloutError> {
    const bytes = operations.reduce((sum, op) => sum + (op.type === "put" ? op.value.length : 0), 0);
    const { statFs, writeBufferBytes } = this.#options;
    const free = await freeBytes(this.#path, statFs);
    const full = free !== undefined && free < bytes + writeBufferBytes;
    const reason = full ? `no space left on device (ENOSPC): ${describeError(error)}` : describeError(error);
    return failure("store_write_failed", { path: this.#path, reason }, error);
  }
}

async function openIndex(
  path: string,
  database: Database,
  { clock, log, writeBufferBytes }: EngineOptions,
): Promise<CommitIndex> {
  const entries = await commitEntries(path, database);
  const problem = await findIndexProblem(entries, path);
  if (problem !== undefined) throw failure("store_broken", { path, ...problem });
  // Not more than tidying, so not synced: when it is lost, the same is found again.
  await database.batch(trimIndex(entries));
  const last = lastNumber(entries);
  return CommitIndex.open(last, { directory: path, writeBufferBytes, log, clock });
}

async function commitEntries(path: string, database: Database): Promise<Entry[]> {
  try {
    return (await database.iterator(COMMIT_KEYS).all()).map(([key, value]) => ({ key, value }));
  } catch (error) {
    throw broken(path, "its commits", error);
  }
}

/** The driver's own code: when opening fails it is that of the cause. */
function driverCode(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return driverCode(error.cause) ?? ("code" in error ? error.code : undefined);
}

/** Nothing can be read out of it, and no command can set anything aside. */
function broken(path: string, key: string, error: unknown): Error {
  if (error instanceof AssertionFailed) return error;
  return failure("store_broken", { path, key, reason: describeError(error) }, error);
}

/** A read that fails is damage too: the key is there or not, and this store cannot say. */
function corrupt(path: string, key: string, error: unknown): Error {
  if (error instanceof AssertionFailed) return error;
  return failure("store_corrupt", { path, key, reason: describeError(error) }, error);
}
