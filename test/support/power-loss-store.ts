// A store whose machine can lose its power: in memory, with what is on the disk kept apart from what the operating
// system has only been handed. For simulation: `kill -9` never shows what a missing sync loses (docs/adr/0009).
//
// Keeps true: after the power is lost, everything up to the last synced commit is there, and of the flushed ones behind
// it a first part, as long as chance has it; no batch is there in half, and none is missing from the middle.
import type { Random } from "../../src/base/random.ts";
import { failure } from "../../src/base/errors.ts";
import type { RolloutError } from "../../src/base/errors.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";

/** Everything that was not synced is lost. */
const NOTHING_SURVIVES: Random = { unit: () => 0, bytes: (count) => new Uint8Array(count) };

export class PowerLossStore implements Store {
  readonly location = "memory";
  readonly supports = { multiProcess: false };
  readonly #live: MemoryStore;
  /** Entries that a reopen finds for certain. */
  readonly #durable: Map<string, Uint8Array>;
  /** Committed since the last sync, in order. */
  #flushed: Batch[];
  #gone: RolloutError | undefined;

  /** A machine whose disk holds `entries`; `flushed` are commits that were handed to its operating system since. */
  constructor(entries: Iterable<Entry> = [], flushed: readonly Batch[] = []) {
    this.#durable = new Map(Array.from(entries, ({ key, value }) => [key, Uint8Array.from(value)]));
    this.#flushed = [...flushed];
    const present = new Map(this.#durable);
    for (const batch of flushed) apply(present, batch);
    this.#live = new MemoryStore(entriesOf(present));
  }

  get everWritten(): boolean {
    return this.#live.everWritten;
  }

  get generation(): string {
    return this.#live.generation;
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    if (this.#gone !== undefined) throw this.#gone;
    return this.#live.get(key);
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    if (this.#gone !== undefined) throw this.#gone;
    return this.#live.getMany(keys);
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    if (this.#gone !== undefined) throw this.#gone;
    return this.#live.scan(range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    if (this.#gone !== undefined) return { kind: "unknown", cause: this.#gone };
    const own = copy(batch);
    const outcome = await this.#live.commit(own);
    return this.#settle(own, outcome);
  }

  async close(): Promise<void> {
    await this.#live.close();
  }

  /**
   * The power is lost. This handle is dead (`unknown`, reads throw); what comes back is the store as the next start finds
   * it. `random` decides how many of the flushed commits made it to the disk; none of them, unless it is given.
   */
  losePower(random: Random = NOTHING_SURVIVES): PowerLossStore {
    const survivors = Math.floor(random.unit() * (this.#flushed.length + 1));
    for (const batch of this.#flushed.slice(0, survivors)) apply(this.#durable, batch);
    return this.#restart([], "injected: the power was lost");
  }

  /** Only the process ends: what was flushed is all there, and still at risk. */
  killProcess(): PowerLossStore {
    return this.#restart(this.#flushed, "injected: the process was killed");
  }

  /** How many commits a power loss may take. */
  get atRisk(): number {
    return this.#flushed.length;
  }

  #restart(flushed: readonly Batch[], reason: string): PowerLossStore {
    this.#gone = failure("store_write_failed", { path: this.location, reason });
    return new PowerLossStore(entriesOf(this.#durable), flushed);
  }

  /** When the power went between the write and its answer, it is not in the image, and nobody is told that it is. */
  #settle(batch: Batch, outcome: CommitOutcome): CommitOutcome {
    if (this.#gone !== undefined) return { kind: "unknown", cause: this.#gone };
    if (outcome.kind !== "committed") return outcome;
    this.#flushed.push(batch);
    if (batch.durability === "sync") this.#sync();
    return outcome;
  }

  #sync(): void {
    for (const batch of this.#flushed) apply(this.#durable, batch);
    this.#flushed = [];
  }
}

function apply(values: Map<string, Uint8Array>, batch: Batch): void {
  for (const key of batch.deletes) values.delete(key);
  for (const { key, value } of batch.puts) values.set(key, value);
}

function entriesOf(values: ReadonlyMap<string, Uint8Array>): Entry[] {
  return Array.from(values, ([key, value]) => ({ key, value }));
}

/** The caller may change its bytes after the answer. */
function copy(batch: Batch): Batch {
  return {
    ...batch,
    puts: batch.puts.map(({ key, value }) => ({ key, value: Uint8Array.from(value) })),
  };
}
