// Every row of the ledger, read once in each leadership and compared with the ledger's numbers while items come and go: a row
// that is not whole, or is not there although it was counted, is found although nobody asks for its item. A start reads the
// items in flight and nothing else, so finished ones would only be looked at when they are exported.
//
// Segment after segment, in order of key. Rows before the next page are counted, and stay counted right: each one that comes or
// goes there is told. So is each one that does while a page is being read, for the page may have been read before or after it.
// At the end of a segment the count has to be the tally's.
//
// Keeps true: nothing is read unless it is asked for, one page at a time; memory is bounded (C8).
import type { Damage } from "../../storage/codec.ts";
import { addToSum, removeFromSum, SEGMENT_ROWS, SEGMENTS } from "./tally.ts";

/** A segment of rows that are counted. */
export interface ScrubbedSegment {
  readonly name: string;
  readonly prefix: string;
}

export interface ScrubRequest {
  readonly segment: string;
  /** Read from here, this key included. */
  readonly from: string;
  /** Rows, at most. */
  readonly limit: number;
}

export interface ScrubbedPage {
  readonly segment: string;
  /** In order of key. */
  readonly rows: readonly { readonly key: string; readonly checksum: number }[];
  /** Where to go on; null when this was the end of the segment. */
  readonly next: string | null;
  /** The first row that is not whole; what comes behind it was not looked at. */
  readonly damage: Damage | undefined;
}

/** The damage when a whole segment has these rows; undefined when it was counted so. */
type Comparison = (
  segment: string,
  found: { readonly count: number; readonly sum: number },
) => Damage | undefined;

const LEDGER_SEGMENTS = SEGMENTS.map((name): ScrubbedSegment => ({
  name,
  prefix: SEGMENT_ROWS[name].prefix,
}));

/** In one page. With a page for each scan for failures a million items that are done take a quarter of an hour. */
const SCRUB_ROWS = 512;
/** So many changes are remembered while a page is being read; with more it is read again. */
const TOUCHED_MAX = 16_384;
/** With more items that come or become final between two scans for failures, the time is theirs. */
const MOVED_CALMLY_MAX = 64;
/** So many scans without a page at most, while items come and go in numbers: a page in ten seconds. */
const PASSED_MAX = 39;

export class Scrub {
  readonly #rowsPerPage: number;
  /** The first of them is being read. */
  #segments: readonly ScrubbedSegment[];
  /** Where the next page begins: all rows before it are in `#count` and `#sum`. */
  #next: string;
  #count = 0;
  #sum = 0;
  /** Rows from there on that have come or gone since the page was asked for, with their checksums; undefined while none is. */
  #touched: Map<string, number | null> | undefined;
  #movedBefore = Infinity;
  #passed = 0;

  /** `segments` come behind those of the ledger. */
  constructor(rowsPerPage = SCRUB_ROWS, segments: readonly ScrubbedSegment[] = []) {
    this.#rowsPerPage = rowsPerPage;
    this.#segments = [...LEDGER_SEGMENTS, ...segments];
    this.#next = startOf(this.#segments);
  }

  /** Everything was read and counted, or something wrong was found. */
  get isOver(): boolean {
    return this.#segments.length === 0;
  }

  came(segment: string, key: string, checksum: number): void {
    if (segment !== this.#segments[0]?.name) return;
    if (key < this.#next) this.#add(checksum);
    else this.#touch(key, checksum);
  }

  went(segment: string, key: string, checksum: number): void {
    if (segment !== this.#segments[0]?.name) return;
    if (key >= this.#next) return this.#touch(key, null);
    this.#count--;
    this.#sum = removeFromSum(this.#sum, checksum);
  }

  /** At a scan for failures: `moved` items have ever come or become final. The same as `wants`, but seldom while these are many. */
  wantsAtScan(moved: number): ScrubRequest | undefined {
    const isBusy = moved - this.#movedBefore > MOVED_CALMLY_MAX;
    this.#movedBefore = moved;
    this.#passed = isBusy && this.#passed < PASSED_MAX ? this.#passed + 1 : 0;
    return this.#passed === 0 ? this.wants() : undefined;
  }

  /** The page to read now, if any is left. The caller answers with `take`. */
  wants(): ScrubRequest | undefined {
    const [segment] = this.#segments;
    if (segment === undefined || this.#touched !== undefined) return undefined;
    this.#touched = new Map();
    return { segment: segment.name, from: this.#next, limit: this.#rowsPerPage };
  }

  /** The answer to `wants`, read after all that had changed before was committed. Returns what is wrong, if anything is. */
  take({ segment, rows, next, damage }: ScrubbedPage, compare: Comparison): Damage | undefined {
    const touched = this.#touched ?? new Map<string, number | null>();
    this.#touched = undefined;
    if (damage !== undefined) return this.#end(damage);
    if (touched.size >= TOUCHED_MAX) return undefined;
    for (const { key, checksum } of rows) if (!touched.has(key)) this.#add(checksum);
    for (const [key, checksum] of touched)
      if (checksum !== null && (next === null || key < next)) this.#add(checksum);
    if (next !== null) {
      this.#next = next;
      return undefined;
    }
    const found = { count: this.#count, sum: this.#sum };
    this.#begin(this.#segments.slice(1));
    const wrong = compare(segment, found);
    return wrong && this.#end(wrong);
  }

  #begin(segments: readonly ScrubbedSegment[]): void {
    this.#segments = segments;
    this.#next = startOf(segments);
    this.#count = 0;
    this.#sum = 0;
  }

  #end(damage: Damage): Damage {
    this.#begin([]);
    return damage;
  }

  #add(checksum: number): void {
    this.#count++;
    this.#sum = addToSum(this.#sum, checksum);
  }

  #touch(key: string, checksum: number | null): void {
    if (this.#touched !== undefined && this.#touched.size < TOUCHED_MAX) this.#touched.set(key, checksum);
  }
}

function startOf([segment]: readonly ScrubbedSegment[]): string {
  return segment?.prefix ?? "";
}
