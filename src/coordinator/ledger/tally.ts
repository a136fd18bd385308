// The ledger in numbers: how many rows each segment has and the sum of their checksums, how far each priority has been given
// out, and the next numbers to give. One record, written in every turn that changes any of it, so that it agrees with the rows
// in every committed state.
import { encodeRecord, recordChecksum } from "../../storage/codec.ts";
import type { Damage, RecordType } from "../../storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  LEDGER_KEY,
  RECORD_KIND,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../storage/keys.ts";
import type { Entry } from "../../storage/store.ts";
import type { FailureClass } from "./records.ts";
import {
  FAILURE_CLASSES,
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "./records.ts";

export const SEGMENTS = ["items", "returned", "delayed", "running", "done", "failed"] as const;
export type SegmentName = (typeof SEGMENTS)[number];

/** `returned` has those that run alone under the same prefix. */
export const SEGMENT_ROWS: Readonly<
  Record<SegmentName, { readonly prefix: string; readonly record: RecordType<unknown> }>
> = {
  items: { prefix: ITEMS_PREFIX, record: itemRecord },
  returned: { prefix: RETURNED_PREFIX, record: returnedRecord },
  delayed: { prefix: DELAYED_PREFIX, record: delayedRecord },
  running: { prefix: RUNNING_PREFIX, record: runningRecord },
  done: { prefix: DONE_PREFIX, record: doneRecord },
  failed: { prefix: FAILED_PREFIX, record: failedRecord },
};

interface SegmentTally {
  count: number;
  /** Sum of the records' checksums, modulo `SUM_MODULUS`. */
  sum: number;
}

export interface LedgerNumbers {
  readonly segments: Readonly<Record<SegmentName, Readonly<SegmentTally>>>;
  readonly nextSequence: number;
  readonly nextCompletion: number;
  /** Priority → the first sequence of it that was never given out. */
  readonly cursors: ReadonlyMap<number, number>;
  /** The failed items that there are. */
  readonly failedByClass: Readonly<Record<FailureClass, number>>;
  /** Failures that there have ever been; never falls, not even when failed items are retried. */
  readonly failures: number;
}

/** The checksum of a row that is not there. */
export const NO_ROW = -1;

const SUM_MODULUS = 2 ** 48;

/** Sums stay exact however many rows there are: unreduced, four million checksums are more than a number holds. */
export function addToSum(sum: number, checksum: number): number {
  return (sum + checksum) % SUM_MODULUS;
}

/** `checksum` is one that was added. */
export function removeFromSum(sum: number, checksum: number): number {
  return addToSum(sum, SUM_MODULUS - checksum);
}

export const ledgerRecord: RecordType<LedgerNumbers> = {
  kind: RECORD_KIND.ledger,
  name: "ledger",
  encode: ({ segments, nextSequence, nextCompletion, cursors, failedByClass, failures }) => [
    SEGMENTS.map((name) => [segments[name].count, segments[name].sum]),
    nextSequence,
    nextCompletion,
    [...cursors],
    FAILURE_CLASSES.map((name) => failedByClass[name]),
    failures,
  ],
  decode: (fields) => {
    const tallies = fields.tuples(0).map((tally) => ({ count: tally.integer(0), sum: tally.integer(1) }));
    return {
      segments: bySegment((_, at) => tallies[at] ?? fields.refuse(0, "misses a segment")),
      nextSequence: fields.integer(1),
      nextCompletion: fields.integer(2),
      cursors: new Map(fields.tuples(3).map((cursor) => [cursor.integer(0), cursor.integer(1)])),
      failedByClass: byClass((_, at) => fields.tuple(4).integer(at)),
      failures: fields.integer(5),
    };
  },
};

/** The live numbers. Told of every row that comes or goes; `entry` goes into the batch with them. */
export class Tally {
  readonly #segments: Record<SegmentName, SegmentTally>;
  readonly #cursors: Map<number, number>;
  #nextSequence: number;
  #nextCompletion: number;
  readonly #failedByClass: Record<FailureClass, number>;
  #failures: number;
  #failedAtFirst: number;
  /** Items that stand in quarantine: they are submitted, and nowhere else. */
  readonly #setAside: number;

  constructor(numbers: LedgerNumbers = EMPTY, setAside = 0) {
    this.#setAside = setAside;
    this.#segments = bySegment((name) => ({ ...numbers.segments[name] }));
    this.#cursors = new Map(numbers.cursors);
    this.#nextSequence = numbers.nextSequence;
    this.#nextCompletion = numbers.nextCompletion;
    this.#failedByClass = { ...numbers.failedByClass };
    this.#failures = numbers.failures;
    this.#failedAtFirst = this.count("done") === 0 ? this.count("failed") : 0;
  }

  count(segment: SegmentName): number {
    return this.#segments[segment].count;
  }

  /** Items that are neither final nor with a worker, nor in quarantine. */
  get pending(): number {
    const elsewhere = this.count("running") + this.count("done") + this.count("failed") + this.#setAside;
    return this.count("items") - elsewhere;
  }

  /** Whether a walk over the segment found what was counted; `sum` is made with `addToSum`. */
  matches(segment: SegmentName, count: number, sum: number): boolean {
    const tally = this.#segments[segment];
    return tally.count === count && tally.sum === sum;
  }

  get nextSequence(): number {
    return this.#nextSequence;
  }

  /** The number under which what becomes final in this turn is recorded. */
  get nextCompletion(): number {
    return this.#nextCompletion;
  }

  get failedByClass(): Readonly<Record<FailureClass, number>> {
    return { ...this.#failedByClass };
  }

  get failures(): number {
    return this.#failures;
  }

  /** How many items had failed when the first was done, or have while none is; 0 when a leader before saw that. */
  get failedAtFirst(): number {
    return this.#failedAtFirst;
  }

  /** Beside `added`: an item has failed. `counts`: towards the limits of the run. */
  hasFailed(as: FailureClass, { counts }: { readonly counts: boolean }): void {
    this.#failedByClass[as]++;
    if (counts) this.#failures++;
  }

  /** Beside `removed`: a failed item is retried. */
  isRetried(from: FailureClass): void {
    this.#failedByClass[from]--;
  }

  get cursors(): ReadonlyMap<number, number> {
    return this.#cursors;
  }

  added(segment: SegmentName, record: Uint8Array): void {
    const tally = this.#segments[segment];
    tally.count++;
    tally.sum = addToSum(tally.sum, recordChecksum(record));
    if (segment === "failed") this.#noteFailed();
  }

  /** `checksum` is that of the record that went away. */
  removed(segment: SegmentName, checksum: number): void {
    const tally = this.#segments[segment];
    tally.count--;
    tally.sum = removeFromSum(tally.sum, checksum);
    if (segment === "failed") this.#noteFailed();
  }

  #noteFailed(): void {
    if (this.count("done") === 0) this.#failedAtFirst = this.count("failed");
  }

  takeSequence(): number {
    return this.#nextSequence++;
  }

  takeCompletion(): number {
    return this.#nextCompletion++;
  }

  /** For the first item of a priority: what is given out of it begins there. A priority that is known stays as it is. */
  openCursor(priority: number, sequence: number): void {
    if (!this.#cursors.has(priority)) this.#cursors.set(priority, sequence);
  }

  moveCursor(priority: number, sequence: number): void {
    this.#cursors.set(priority, sequence);
  }

  /** As they are now; later changes do not show in it. */
  get numbers(): LedgerNumbers {
    return {
      segments: bySegment((name) => ({ ...this.#segments[name] })),
      nextSequence: this.#nextSequence,
      nextCompletion: this.#nextCompletion,
      cursors: new Map(this.#cursors),
      failedByClass: this.failedByClass,
      failures: this.#failures,
    };
  }

  entry(): Entry {
    return { key: LEDGER_KEY, value: encodeRecord(ledgerRecord, LEDGER_KEY, this.numbers) };
  }
}

/** The damage, if a walk over all rows of a segment has found other numbers than were counted. */
export function disagreement(
  tally: Tally,
  segment: SegmentName,
  { count, sum }: { readonly count: number; readonly sum: number },
): Damage | undefined {
  if (tally.matches(segment, count, sum)) return undefined;
  const { prefix } = SEGMENT_ROWS[segment];
  const reason = `${tally.count(segment)} rows were counted under ${prefix}, and other ones are there (${count})`;
  return { kind: "corrupt", key: LEDGER_KEY, reason };
}

function bySegment<Value>(make: (name: SegmentName, at: number) => Value): Record<SegmentName, Value> {
  return Object.fromEntries(SEGMENTS.map((name, at) => [name, make(name, at)])) as Record<SegmentName, Value>;
}

export function byClass(make: (name: FailureClass, at: number) => number): Record<FailureClass, number> {
  return Object.fromEntries(FAILURE_CLASSES.map((name, at) => [name, make(name, at)])) as Record<
    FailureClass,
    number
  >;
}

const EMPTY: LedgerNumbers = {
  segments: bySegment(() => ({ count: 0, sum: 0 })),
  nextSequence: 0,
  nextCompletion: 0,
  cursors: new Map(),
  failedByClass: byClass(() => 0),
  failures: 0,
};
