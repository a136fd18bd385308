// The first part of a segment of the store, in memory: what is to be given out next. The store has all of it; the window has
// the smallest keys, up to its horizon, and is filled again when it runs low, so that a queue of ten million items costs
// as much memory as one of ten thousand (C8).
//
// Keeps true: every committed entry below the horizon is in the window, or is on its way in a load, or was postponed.

interface WindowEntry {
  readonly key: string;
  /** Bytes that the entry holds in memory. */
  readonly weight: number;
}

export interface LoadRequest {
  /** Scan from here, this key included. */
  readonly from: string;
  readonly limit: number;
  /** Bytes in memory after which the reading ends before its limit. */
  readonly weightMax: number;
}

const ENTRIES_MAX = 8_192;
/** Bytes that a window holds, unless said. */
export const WEIGHT_MAX = 64 * 2 ** 20;
export const LOW = ENTRIES_MAX / 4;
const PAGE_MAX = 2_048;
/** Entries that get in as they are written, and their bytes, of all windows that share a room: the rest is read when it is next. */
const ADMITTED_MAX = 65_536;
const ADMITTED_WEIGHT_MAX = 24 * 2 ** 20;
/** A page has room for so much even when the window is full: what belongs before its entries has to get in. */
const PAGE_WEIGHT_PART = 1 / 16;

export class Window<Entry extends WindowEntry> {
  #entries: Entry[] = [];
  #head = 0;
  #weight = 0;
  /** Everything below is in memory. Null: everything there is. */
  #horizon: string | null;
  #loading = false;
  /** The smallest key that was offered while a load was under way. */
  #offeredMeanwhile: string | null = null;
  /** Keys that left while a load was under way: its scan may still have seen them. */
  readonly #goneMeanwhile = new Set<string>();
  /** The smallest key that was postponed. */
  #postponed: string | null = null;
  readonly #weightMax: number;

  /** `from` is where the segment begins, of which nothing is in memory yet; null for one that is still empty. */
  constructor(from: string | null, weightMax = WEIGHT_MAX) {
    this.#horizon = from;
    this.#weightMax = weightMax;
  }

  get size(): number {
    return this.#entries.length - this.#head;
  }

  /** Bytes in memory. */
  get weight(): number {
    return this.#weight;
  }

  get isLoading(): boolean {
    return this.#loading;
  }

  /** Everything there is, but what was postponed, is in memory. */
  get isWhole(): boolean {
    return this.#horizon === null && !this.#loading;
  }

  /** There is nothing, but what was postponed. */
  get isExhausted(): boolean {
    return this.size === 0 && this.isWhole;
  }

  /** An entry is being written to the segment: it is loaded in its turn. */
  offer(key: string): void {
    if (this.#loading && (this.#offeredMeanwhile === null || key < this.#offeredMeanwhile))
      this.#offeredMeanwhile = key;
    this.#lowerHorizon(key);
  }

  /**
   * Whether an entry of this weight that is being written behind all others of the segment may get in as it is: all of these are
   * in memory, and there is room. `others`: bytes that windows hold which share it.
   */
  admits(weight: number, others = 0): boolean {
    if (!this.isWhole || this.size >= ADMITTED_MAX) return false;
    return this.#weight + others + weight <= ADMITTED_WEIGHT_MAX;
  }

  /** An entry that it admits: it is not read back. */
  admit(entry: Entry): void {
    this.#entries.push(entry);
    this.#weight += entry.weight;
  }

  peek(): Entry | undefined {
    return this.#entries[this.#head];
  }

  take(): Entry | undefined {
    const entry = this.#entries[this.#head];
    if (entry === undefined) return undefined;
    this.#head++;
    this.#left(entry.key, entry.weight);
    if (this.#head > PAGE_MAX) this.#compact();
    return entry;
  }

  /** Undefined for one that is not in memory. Looks through all that are. */
  find(isIt: (key: string) => boolean): Entry | undefined {
    this.#compact();
    return this.#entries.find(({ key }) => isIt(key));
  }

  /** An entry leaves the segment by another way than `take`, wherever it stands; it need not be in memory. */
  remove(key: string): void {
    this.#compact();
    const at = this.#entries.findIndex((entry) => entry.key === key);
    const [entry] = at === -1 ? [] : this.#entries.splice(at, 1);
    this.#left(key, entry?.weight ?? 0);
  }

  /** An entry that was taken and has stayed in the segment leaves it now. */
  left(key: string): void {
    this.#left(key, 0);
  }

  /** The first entry is of no use now, and stays in the segment: it is loaded again when it is readmitted. */
  postpone(): void {
    const entry = this.take();
    if (entry !== undefined && (this.#postponed === null || entry.key < this.#postponed))
      this.#postponed = entry.key;
  }

  /** Entries that were postponed are of use again. */
  readmit(): void {
    if (this.#postponed === null) return;
    this.offer(this.#postponed);
    this.#postponed = null;
  }

  /** All entries before `key` leave the segment. */
  dropBelow(key: string): void {
    for (let entry = this.peek(); entry !== undefined && entry.key < key; entry = this.peek()) this.take();
  }

  /**
   * The range to scan now, if the window is low and the store may have more. The caller answers with `load`. `others`: bytes
   * that windows hold which come before this one and share its room.
   */
  wants(others = 0): LoadRequest | undefined {
    if (this.#loading || this.#horizon === null) return undefined;
    const [weight, max] = [this.#weight + others, this.#weightMax];
    const isLow = this.size <= LOW && weight <= max / 2;
    if (!isLow && !this.#hasGap()) return undefined;
    this.#loading = true;
    return {
      from: this.#horizon,
      limit: PAGE_MAX,
      weightMax: Math.max(max * PAGE_WEIGHT_PART, max - weight),
    };
  }

  /** The answer to `wants`: the committed entries from there on, in order; all of them when `hasMore` is null, else those before it. */
  load(entries: readonly Entry[], hasMore: string | null): void {
    this.#loading = false;
    this.#compact();
    const present = new Set(this.#entries.map(({ key }) => key));
    const fresh = entries.filter(({ key }) => !present.has(key) && !this.#goneMeanwhile.has(key));
    this.#goneMeanwhile.clear();
    for (const { weight } of fresh) this.#weight += weight;
    this.#entries = merge(this.#entries, fresh);
    this.#horizon = hasMore;
    this.#trim();
    if (this.#offeredMeanwhile !== null) this.#lowerHorizon(this.#offeredMeanwhile);
    this.#offeredMeanwhile = null;
  }

  /** The last entries leave memory, down to so many bytes; they stay in the segment and are loaded in their turn. */
  shrinkTo(weight: number): void {
    this.#compact();
    this.#shrink(() => this.#weight > weight);
  }

  /** Something was offered that goes out before entries which are here: it cannot wait until these are gone. */
  #hasGap(): boolean {
    const last = this.size === 0 ? undefined : this.#entries.at(-1);
    return last !== undefined && this.#horizon !== null && this.#horizon <= last.key;
  }

  #lowerHorizon(key: string): void {
    if (this.#horizon === null || key < this.#horizon) this.#horizon = key;
  }

  #left(key: string, weight: number): void {
    this.#weight -= weight;
    if (this.#loading) this.#goneMeanwhile.add(key);
  }

  /** Entries that a gap has pushed out stay in the store, beyond the horizon. */
  #trim(): void {
    const max = this.#weightMax;
    this.#shrink((length) => length > ENTRIES_MAX || (this.#weight > max && length > 1));
  }

  #shrink(isTooMuch: (length: number) => boolean): void {
    while (isTooMuch(this.#entries.length)) {
      const last = this.#entries.pop();
      if (last === undefined) return;
      this.#weight -= last.weight;
      this.offer(last.key);
    }
  }

  #compact(): void {
    if (this.#head === 0) return;
    this.#entries = this.#entries.slice(this.#head);
    this.#head = 0;
  }
}

function merge<Entry extends WindowEntry>(left: readonly Entry[], right: readonly Entry[]): Entry[] {
  const last = left.at(-1);
  const [first] = right;
  if (last === undefined || first === undefined || last.key < first.key) return [...left, ...right];
  return [...left, ...right].sort((one, other) => (one.key < other.key ? -1 : 1));
}
