// The shared database as one process has it: two connections that write, one for the lease and one for all else, and reads beside them.
import { failure } from "../../src/base/errors.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import { COORDINATOR_LEASE_KEY } from "../../src/storage/keys.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import { delayMs, NOTICED_MAX_MS, PATIENCE_MS } from "./database-way.ts";
import type { DatabaseWay } from "./database-way.ts";
import { DatabaseWriter } from "./database-writer.ts";
import { between } from "./world.ts";

export class DatabaseStore implements Store {
  readonly location = "shared";
  readonly supports = { multiProcess: true };
  readonly #options: DatabaseWay;
  readonly #writers: readonly [DatabaseWriter, DatabaseWriter];
  #generation: string;
  #everWritten: boolean;
  #losses = 0;
  /** Rows that batches have expected and not changed, with their bytes. */
  readonly #relied = new Set<string>();
  /** The same, of batches from before something was lost. */
  readonly #doubted = new Set<string>();

  constructor(options: DatabaseWay) {
    this.#options = options;
    const isDoubted = (batch: Batch): boolean => this.#isDoubted(batch);
    this.#writers = [new DatabaseWriter(options, undefined), new DatabaseWriter(options, isDoubted)];
    this.#generation = options.database.generation;
    this.#everWritten = options.database.rows.everWritten;
  }

  /** As of the last answer. */
  get generation(): string {
    return this.#generation;
  }

  /** As it was opened, or since this process has written. */
  get everWritten(): boolean {
    return this.#everWritten;
  }

  /** Nothing is on its way. */
  get isIdle(): boolean {
    return this.#writers.every(({ isIdle }) => isIdle);
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#read((rows) => rows.get(key));
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#read((rows) => rows.getMany(keys));
  }

  scan(range: ScanRange): Promise<Entry[]> {
    return this.#read((rows) => rows.scan(range));
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    const { puts, deletes } = batch;
    const isOfLease =
      puts.length > 0 && deletes.length === 0 && puts.every(({ key }) => key === COORDINATOR_LEASE_KEY);
    for (const fence of fencesOf(batch)) this.#relied.add(fence);
    const outcome = await this.#writers[isOfLease ? 0 : 1].commit(batch);
    if (outcome.kind !== "unknown") this.#heard();
    this.#everWritten ||= outcome.kind === "committed";
    return outcome;
  }

  async close(): Promise<void> {
    // The database is everybody's.
  }

  async #read<T>(read: (rows: Store) => Promise<T>): Promise<T> {
    const { process, database, world } = this.#options;
    const found = Promise.withResolvers<T>();
    const giveUp = process.after(between(process.random, ...PATIENCE_MS), () =>
      found.reject(unread("nobody answers")),
    );
    world.after(delayMs(this.#options), () =>
      this.#pass(() => {
        if (!database.isUp) return process.after(NOTICED_MAX_MS, () => found.reject(unread("it is down")));
        return void read(database.rows).then((value) =>
          world.after(delayMs(this.#options), () =>
            this.#pass(() => process.receive(() => void (giveUp.cancel(), found.resolve(value)))),
          ),
        );
      }),
    );
    const value = await found.promise;
    this.#heard();
    return value;
  }

  /** Whether it must not be written any more. */
  #isDoubted(batch: Batch): boolean {
    const { database, process, afterLoss } = this.#options;
    const losses = database.lossesOf(process);
    if (afterLoss === "trusts blindly" || losses === 0) return false;
    if (afterLoss === "is silent") return true;
    if (losses > this.#losses) for (const fence of this.#relied) this.#doubted.add(fence);
    this.#losses = losses;
    return fencesOf(batch).some((fence) => this.#doubted.has(fence));
  }

  #pass(run: () => void): void {
    const { cuts, process } = this.#options;
    cuts.pass(process.machine.name, run);
  }

  #heard(): void {
    this.#generation = this.#options.database.generation;
  }
}

/** Rows that it expects and does not change, with their bytes. */
function fencesOf({ expect, puts, deletes }: Batch): string[] {
  const kept = expect.filter(({ key }) => !deletes.includes(key) && puts.every((put) => put.key !== key));
  return kept.map(({ key, value }) => `${key} ${Buffer.from(value ?? []).toString("hex")}`);
}

function unread(reason: string): RolloutError {
  return failure("store_unreachable", { path: "shared", reason });
}
