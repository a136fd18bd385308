// A store as one process has it: its machine's disk, with the time that a disk takes, and its faults. Commits under way when
// the process died may have been carried out, a first part of them in order.
import { failure } from "../../src/base/errors.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../../src/storage/store.ts";
import type { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

export interface DiskWeather {
  /** The longest that an ordinary sync takes. */
  syncMaxMs: number;
  /** The chance that a commit takes up to two seconds. */
  slowChance: number;
  /** The chance that nobody can say whether a commit was carried out. */
  unknownChance: number;
}

/** The batch as a disk takes it; another one when a broken disk is tried. */
export type CarriedOut = (batch: Batch) => Batch;

/** Told of each commit when the disk has carried it out, before its process knows. */
export type CommitWitness = (process: SimProcess, batch: Batch, outcome: CommitOutcome) => void;

interface OnItsWay {
  readonly batch: Batch;
  readonly answer: (outcome: CommitOutcome) => void;
}

const READ_MAX_MS = 0.3;
const FLUSH_MAX_MS = 0.2;
const SLOW_MAX_MS = 2_000;

export class ProcessStore implements Store {
  readonly #world: SimWorld;
  readonly #process: SimProcess;
  readonly #weather: DiskWeather;
  readonly #witness: CommitWitness;
  readonly #carriedOut: CarriedOut;
  readonly #onItsWay: OnItsWay[] = [];
  #freeAtMs = 0;
  /** A commit came to an unknown end. Later commits are not carried out: no batch is missing from the middle. */
  #isBroken = false;

  constructor(
    world: SimWorld,
    process: SimProcess,
    weather: DiskWeather,
    witness: CommitWitness,
    carriedOut: CarriedOut = (batch) => batch,
  ) {
    this.#world = world;
    this.#process = process;
    this.#weather = weather;
    this.#witness = witness;
    this.#carriedOut = carriedOut;
    process.onDeath(() => this.#die());
  }

  get location(): string {
    return this.#disk.location;
  }

  get supports(): Store["supports"] {
    return { multiProcess: true };
  }

  get everWritten(): boolean {
    return this.#disk.everWritten;
  }

  get generation(): string {
    return this.#disk.generation;
  }

  /** Everything that was handed over has been carried out. */
  get isIdle(): boolean {
    return this.#onItsWay.length === 0;
  }

  get(key: string): Promise<Uint8Array | undefined> {
    return this.#read(() => this.#disk.get(key));
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return this.#read(() => this.#disk.getMany(keys));
  }

  scan(range: ScanRange): Promise<Entry[]> {
    return this.#read(() => this.#disk.scan(range));
  }

  commit(batch: Batch): Promise<CommitOutcome> {
    const { promise, resolve } = Promise.withResolvers<CommitOutcome>();
    const onItsWay = { batch, answer: resolve };
    this.#onItsWay.push(onItsWay);
    this.#freeAtMs = Math.max(this.#world.nowMs, this.#freeAtMs) + this.#costMs(batch);
    this.#world.at(this.#freeAtMs, () => {
      if (this.#onItsWay[0] !== onItsWay) return;
      this.#onItsWay.shift();
      this.#carryOut(onItsWay);
    });
    return promise;
  }

  async close(): Promise<void> {
    // The disk is the machine's.
  }

  get #disk(): Store {
    return this.#process.machine.disk;
  }

  #costMs({ durability }: Batch): number {
    const { random } = this.#process;
    const { slowChance, syncMaxMs } = this.#weather;
    if (happens(random, slowChance)) return between(random, 0, SLOW_MAX_MS);
    return between(random, 0.01, durability === "sync" ? syncMaxMs : FLUSH_MAX_MS);
  }

  #carryOut({ batch, answer }: OnItsWay): void {
    const { random } = this.#process;
    const wasBroken = this.#isBroken;
    const isUnknown = wasBroken || happens(random, this.#weather.unknownChance);
    const isLost = wasBroken || (isUnknown && happens(random, 0.5));
    this.#isBroken = isUnknown;
    void (isLost ? Promise.resolve(undefined) : this.#disk.commit(this.#carriedOut(batch))).then(
      (outcome) => {
        if (outcome !== undefined) this.#witness(this.#process, batch, outcome);
        const cause = failure("store_write_failed", { path: this.location, reason: "injected" });
        this.#process.receive(() =>
          answer(isUnknown || outcome === undefined ? { kind: "unknown", cause } : outcome),
        );
      },
    );
  }

  async #read<T>(read: () => Promise<T>): Promise<T> {
    await new Promise<void>((resolve) => {
      this.#world.after(between(this.#process.random, 0, READ_MAX_MS), resolve);
    });
    const value = await read();
    await new Promise<void>((resolve) => this.#process.receive(resolve));
    return value;
  }

  #die(): void {
    const survivors = Math.floor(this.#process.random.unit() * (this.#onItsWay.length + 1));
    for (const onItsWay of this.#onItsWay.splice(0).slice(0, survivors)) this.#carryOut(onItsWay);
  }
}
