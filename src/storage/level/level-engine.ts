// LevelDB itself, behind this program's words: what may be asked of it, with which options, and what its failures mean.
//
// Keeps true: every write carries the next number of the commit index, and no error of the driver gets out as it is.
import { Level } from "level";
import { AssertionFailed } from "../../base/assert.ts";
import { describeError, failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { Logger } from "../../observe/log.ts";
import type { Entry, ScanRange } from "../store.ts";
import { COMMIT_KEYS, CommitIndex, findIndexProblem, lastNumber, trimIndex } from "./commit-index.ts";
import { freeBytes, unopened } from "./directory.ts";
import type { StatFs } from "./directory.ts";
import type { Engine, Operation } from "./group-commit.ts";

type Database = Level<string, Uint8Array>;

const WRITE_BUFFER_BYTES = 4 * 1024 * 1024;
const READ_AHEAD_BYTES = 1024 * 1024;
/** The lowest key that the port allows; what is below is ours. */
const LOWEST_KEY = "!";

export interface EngineOptions {
  readonly statFs: StatFs;
  readonly log: Logger | undefined;
}

/** Opened: `locked` when another process has LevelDB's own lock. */
export type OpenedEngine =
  { readonly kind: "opened"; readonly engine: LevelEngine } | { readonly kind: "locked" };

export class LevelEngine implements Engine {
  readonly #path: string;
  readonly #database: Database;
  readonly #index: CommitIndex;
  readonly #statFs: StatFs;

  private constructor(path: string, database: Database, index: CommitIndex, statFs: StatFs) {
    this.#path = path;
    this.#database = database;
    this.#index = index;
    this.#statFs = statFs;
  }

  /** Never twice for one path in one process: see level-store.ts. Throws store_corrupt or store_unusable. */
  static async open(path: string, options: EngineOptions): Promise<OpenedEngine> {
    const database: Database = new Level(path, {
      keyEncoding: "utf8",
      valueEncoding: "view",
      writeBufferSize: WRITE_BUFFER_BYTES,
    });
    try {
      await database.open();
    } catch (error) {
      if (driverCode(error) === "LEVEL_LOCKED") return { kind: "locked" };
      if (driverCode(error) === "LEVEL_CORRUPTION") throw corrupt(path, "its own files", error);
      const cause = error instanceof Error ? (error.cause ?? error) : error;
      throw await unopened(path, cause, { statFs: options.statFs, needed: WRITE_BUFFER_BYTES });
    }
    try {
      const index = await openIndex(path, database, options.log);
      return { kind: "opened", engine: new LevelEngine(path, database, index, options.statFs) };
    } catch (error) {
      await database.close();
      if (error instanceof AssertionFailed) throw error;
      throw await unopened(path, error, { statFs: options.statFs, needed: WRITE_BUFFER_BYTES });
    }
  }

  get everWritten(): boolean {
    return this.#index.last > 0;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    try {
      // The types of abstract-level 3 promise a value; an absent key gives undefined.
      const value: Uint8Array | undefined = await this.#database.get(key);
      return value;
    } catch (error) {
      throw corrupt(this.#path, key, error);
    }
  }

  async read(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    try {
      return await this.#database.getMany([...keys]);
    } catch (error) {
      throw corrupt(this.#path, keys.length === 1 ? String(keys[0]) : `one of ${keys.join(", ")}`, error);
    }
  }

  async scan({ from, to, limit, bytesMax }: ScanRange): Promise<Entry[]> {
    const gte = from < LOWEST_KEY ? LOWEST_KEY : from;
    const highWaterMarkBytes = bytesMax ?? READ_AHEAD_BYTES;
    try {
      const iterator = this.#database.iterator({ gte, lt: to, limit, highWaterMarkBytes });
      // One reading ends behind the entry that passes the mark; all of them end at the limit.
      const rows = bytesMax === undefined ? await iterator.all() : await iterator.nextv(limit);
      await iterator.close();
      return rows.map(([key, value]) => ({ key, value }));
    } catch (error) {
      throw corrupt(this.#path, `${from} to ${to}`, error);
    }
  }

  // An array, although a chained batch is a third faster: its memory is the driver's and is freed only by the collector,
  // which does not see how much it is.
  async write(operations: Operation[], sync: boolean): Promise<void> {
    this.#index.number(operations);
    try {
      await this.#database.batch(operations, { sync });
    } catch (error) {
      throw await this.#writeFailed(error, operations);
    }
    if (sync) this.#index.noteSynced();
  }

  async close(): Promise<void> {
    await this.#database.close();
    await this.#index.close();
  }

  /** The driver gives a text and no errno. A disk without room for what LevelDB writes next is told apart by looking. */
  async #writeFailed(error: unknown, operations: readonly Operation[]): Promise<RolloutError> {
    const bytes = operations.reduce((sum, op) => sum + (op.type === "put" ? op.value.length : 0), 0);
    const free = await freeBytes(this.#path, this.#statFs);
    const full = free !== undefined && free < bytes + WRITE_BUFFER_BYTES;
    const reason = full ? `no space left on device (ENOSPC): ${describeError(error)}` : describeError(error);
    return failure("store_write_failed", { path: this.#path, reason }, error);
  }
}

async function openIndex(path: string, database: Database, log: Logger | undefined): Promise<CommitIndex> {
  const entries = await commitEntries(path, database);
  const problem = await findIndexProblem(entries, path);
  if (problem !== undefined) throw failure("store_corrupt", { path, ...problem });
  // Not more than tidying, so not synced: when it is lost, the same is found again.
  await database.batch(trimIndex(entries));
  const last = lastNumber(entries);
  return CommitIndex.open(last, { directory: path, writeBufferBytes: WRITE_BUFFER_BYTES, log });
}

async function commitEntries(path: string, database: Database): Promise<Entry[]> {
  try {
    return (await database.iterator(COMMIT_KEYS).all()).map(([key, value]) => ({ key, value }));
  } catch (error) {
    throw corrupt(path, "its commits", error);
  }
}

/** The driver's own code: when opening fails it is that of the cause. */
function driverCode(error: unknown): unknown {
  if (!(error instanceof Error)) return undefined;
  return driverCode(error.cause) ?? ("code" in error ? error.code : undefined);
}

/** A read that fails is damage too: the key is there or not, and this store cannot say. */
function corrupt(path: string, key: string, error: unknown): Error {
  if (error instanceof AssertionFailed) return error;
  return failure("store_corrupt", { path, key, reason: describeError(error) }, error);
}
