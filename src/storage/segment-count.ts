// How many records a segment (the keys under one prefix) holds, and the sum of their checksums, kept in one record of
// its own that is written in the same batch as the records. LevelDB can lose a key, or serve an older value of it, to
// one flipped byte without a word: then the count or the sum does not agree any more.
//
// Keeps true, together with its writer: in every committed state the record equals what a walk over the segment finds.
import type { Damage, Decoded, RecordType } from "./codec.ts";
import { decodeRecord, encodeRecord, findDamage, okOrFailure, recordChecksum } from "./codec.ts";
import { countKey, RECORD_KIND } from "./keys.ts";
import { pagesUnder } from "./records.ts";
import type { Entry, Store } from "./store.ts";

/** Records of one type under one prefix, which ends in `/`. `name` stands in the key of the count. */
export interface Segment {
  readonly name: string;
  readonly prefix: string;
  readonly record: RecordType<unknown>;
}

interface Tally {
  readonly count: number;
  /** The sum of the records' checksums, modulo `SUM_MODULUS`. */
  readonly sum: number;
}

const SUM_MODULUS = 2 ** 48;
/** Values may be a mebibyte each, and a page is in memory at once. */
const PAGE = 256;
const NOTHING = new Uint8Array(0);

const tallyRecord: RecordType<Tally> = {
  kind: RECORD_KIND.segmentCount,
  name: "segment count",
  encode: (tally) => [tally.count, tally.sum],
  decode: (fields) => ({ count: fields.integer(0), sum: fields.integer(1) }),
};

/**
 * The writer's side, kept in memory by the one who writes the segment: a few additions per record and one put per batch.
 * Tell it of every record of a batch, then put `entry()` in that same batch. When a batch does not commit, what the
 * writer holds in memory is void, this included: load it again.
 */
export class SegmentCount {
  readonly #segment: Segment;
  #count: number;
  #sum: number;

  private constructor(segment: Segment, tally: Tally) {
    this.#segment = segment;
    this.#count = tally.count;
    this.#sum = tally.sum;
  }

  /** As the store has it; 0 when the store was not claimed with this segment. Throws store_corrupt or store_newer. */
  static async load(store: Store, segment: Segment): Promise<SegmentCount> {
    return new SegmentCount(segment, okOrFailure(store.location, await readTally(store, segment)));
  }

  get count(): number {
    return this.#count;
  }

  /** A record came under a key that had none. */
  added(record: Uint8Array): void {
    this.#count++;
    this.#sum = (this.#sum + recordChecksum(record)) % SUM_MODULUS;
  }

  /** The record of a key went away. */
  removed(record: Uint8Array): void {
    this.#count--;
    this.#sum = (this.#sum - recordChecksum(record) + SUM_MODULUS) % SUM_MODULUS;
  }

  /** The record of a key was overwritten: `before` are the exact bytes that stood there. */
  replaced(before: Uint8Array, after: Uint8Array): void {
    this.removed(before);
    this.added(after);
  }

  /** To be put in the batch that holds what was told. */
  entry(): Entry {
    const key = countKey(this.#segment.name);
    return { key, value: encodeRecord(tallyRecord, key, { count: this.#count, sum: this.#sum }) };
  }
}

/** The count of a segment that holds nothing yet. `claimStore` puts it, so that a count that is missing was lost. */
export function zeroCount(segment: Segment): Entry {
  const key = countKey(segment.name);
  return { key, value: encodeRecord(tallyRecord, key, { count: 0, sum: 0 }) };
}

/**
 * `walk` passes over the records in order. `walk_and_get` also reads each of them by its key, at three times the cost: one
 * flipped bit can lead LevelDB's search to an older value where a walk finds the last one.
 */
export type Thoroughness = "walk" | "walk_and_get";

/**
 * Goes over a segment that nobody writes meanwhile: every record must be whole, and all together must be what was
 * counted. `ok` says how many; else the first key that is wrong, or the key of the count when one is missing.
 */
export async function verifySegment(
  store: Store,
  segment: Segment,
  thoroughness: Thoroughness = "walk_and_get",
): Promise<Decoded<number>> {
  const counted = await readTally(store, segment);
  if (counted.kind !== "ok") return counted;
  const found = await walk(store, segment, thoroughness);
  if (found.kind !== "ok") return found;
  const corrupt = (reason: string): Damage => ({ kind: "corrupt", key: countKey(segment.name), reason });
  const [expected, actual] = [counted.value, found.value];
  if (actual.count !== expected.count) {
    return corrupt(
      `${expected.count} records were counted under ${segment.prefix}, and ${actual.count} are there`,
    );
  }
  if (actual.sum !== expected.sum)
    return corrupt(`a record under ${segment.prefix} is not the last that was written`);
  return { kind: "ok", value: actual.count };
}

async function walk(store: Store, segment: Segment, thoroughness: Thoroughness): Promise<Decoded<Tally>> {
  let [count, sum] = [0, 0];
  for await (const page of pagesUnder(store, segment.prefix, PAGE)) {
    for (const { key, value } of page) {
      const damage = findDamage(segment.record, key, value);
      if (damage !== undefined) return damage;
      sum = (sum + recordChecksum(value)) % SUM_MODULUS;
    }
    const astray = thoroughness === "walk_and_get" ? await findAstray(store, page) : undefined;
    if (astray !== undefined) return astray;
    count += page.length;
  }
  return { kind: "ok", value: { count, sum } };
}

async function findAstray(store: Store, page: readonly Entry[]): Promise<Damage | undefined> {
  const values = await store.getMany(page.map(({ key }) => key));
  const wrong = page.find(({ value }, at) => Buffer.compare(value, values[at] ?? NOTHING) !== 0);
  if (wrong === undefined) return undefined;
  return { kind: "corrupt", key: wrong.key, reason: "read by its key it is not what stands there" };
}

async function readTally(store: Store, segment: Segment): Promise<Decoded<Tally>> {
  const key = countKey(segment.name);
  const bytes = await store.get(key);
  return bytes === undefined
    ? { kind: "ok", value: { count: 0, sum: 0 } }
    : decodeRecord(tallyRecord, key, bytes);
}
