import { expect } from "chai";
import fc from "fast-check";
import type { LoadRequest } from "../../../../src/coordinator/ledger/window.ts";
import { Window } from "../../../../src/coordinator/ledger/window.ts";
import { nextKey } from "../../../../src/storage/store.ts";

const MIB = 2 ** 20;

interface Entry {
  readonly key: string;
  readonly weight: number;
}

function keyOf(number: number): string {
  return String(number).padStart(6, "0");
}

/** A segment of a store, a window over it, and the loads that are under way between them. */
class Segment {
  readonly window: Window<Entry>;
  readonly rows = new Map<string, Entry>();
  readonly taken: string[] = [];
  /** Rows that scans have read and nobody has handed over. */
  readonly answers: { readonly entries: Entry[]; readonly hasMore: string | null }[] = [];
  largestPage = 0;
  readonly #pageMax: number;
  #last = 100_000;

  /** Scans answer with so many rows at most, as if they were large. */
  constructor(pageMax = 10_000, isEmpty = false) {
    this.#pageMax = pageMax;
    this.window = new Window<Entry>(isEmpty ? null : "");
  }

  put(number: number, weight = 1): void {
    const key = keyOf(number);
    this.rows.set(key, { key, weight });
    this.window.offer(key);
  }

  /** Behind all that there is and has been. */
  append(weight = 1): void {
    const entry = { key: keyOf(++this.#last), weight };
    this.rows.set(entry.key, entry);
    if (this.window.admits(weight)) this.window.admit(entry);
    else this.window.offer(entry.key);
  }

  take(): string | undefined {
    const entry = this.window.take();
    if (entry === undefined) return undefined;
    expect(this.rows.delete(entry.key), `${entry.key} was there and had not been taken`).to.equal(true);
    this.taken.push(entry.key);
    return entry.key;
  }

  remove(number: number): void {
    const key = keyOf(number);
    if (this.rows.delete(key)) this.window.remove(key);
  }

  /** Asks, and reads at once. */
  scan(): boolean {
    const request = this.window.wants();
    if (request === undefined) return false;
    this.answers.push(this.read(request));
    return true;
  }

  read({ from, limit, weightMax }: LoadRequest): { entries: Entry[]; hasMore: string | null } {
    const after = [...this.rows.values()]
      .filter(({ key }) => key >= from)
      .sort((one, other) => (one.key < other.key ? -1 : 1));
    const entries: Entry[] = [];
    let weight = 0;
    for (const entry of after) {
      if (entries.length >= Math.min(limit, this.#pageMax) || weight >= weightMax) break;
      entries.push(entry);
      weight += entry.weight;
    }
    this.largestPage = Math.max(this.largestPage, entries.length);
    const last = entries.at(-1);
    return {
      entries,
      hasMore: last === undefined || entries.length === after.length ? null : nextKey(last.key),
    };
  }

  /** The scan's answer arrives. */
  deliver(): void {
    const answer = this.answers.shift();
    if (answer !== undefined) this.window.load(answer.entries, answer.hasMore);
  }

  settle(): void {
    do this.deliver();
    while (this.scan() || this.answers.length > 0);
  }

  drain(): string[] {
    const drained: string[] = [];
    for (;;) {
      this.settle();
      const key = this.take();
      if (key === undefined) return drained;
      drained.push(key);
    }
  }
}

type Step =
  | { readonly kind: "put" | "remove"; readonly number: number }
  | { readonly kind: "append" | "take" | "scan" | "deliver" };

const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 3, arbitrary: fc.record({ kind: fc.constant("put" as const), number: fc.nat(60) }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant("remove" as const), number: fc.nat(60) }) },
  {
    weight: 6,
    arbitrary: fc.constantFrom("append", "take", "scan", "deliver").map((kind) => ({ kind })),
  },
);

describe("a window over a segment", () => {
  const pages = fc.integer({ min: 1, max: 5 });

  it("gives out every entry once, whatever comes while a load is under way, and the rest in order", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 80 }), pages, fc.boolean(), (steps, pageMax, isEmpty) => {
        const segment = new Segment(pageMax, isEmpty);
        for (const next of steps) {
          if (next.kind === "put") {
            if (!segment.rows.has(keyOf(next.number))) segment.put(next.number);
          } else if (next.kind === "remove") segment.remove(next.number);
          else segment[next.kind]();
        }
        const left = [...segment.rows.keys()].sort();
        expect(segment.drain()).to.deep.equal(left);
      }),
      { numRuns: 3_000 },
    );
  });

  it("takes in what is written behind all that it has, and does not read it back", () => {
    const segment = new Segment(10_000, true);
    for (let number = 0; number < 20_000; number++) segment.append();
    expect(segment.scan()).to.equal(false);
    expect(segment.window.size).to.equal(20_000);
    expect(segment.drain()).to.have.length(20_000);
    expect(segment.taken).to.deep.equal([...segment.taken].sort());
    segment.append();
    expect(segment.window.size, "empty again, it has still everything").to.equal(1);
  });

  it("takes in no more than its bounds, and reads the rest when it is next", () => {
    for (const [weight, most] of [
      [1, 65_536],
      [MIB, 24],
    ] as const) {
      const segment = new Segment(10_000, true);
      for (let number = 0; number < most + 100; number++) segment.append(weight);
      expect(segment.window.size).to.equal(most);
      expect(segment.drain()).to.have.length(most + 100);
      expect(segment.taken).to.deep.equal([...segment.taken].sort());
    }
  });

  it("takes in nothing while something before it is not there", () => {
    const segment = new Segment();
    segment.append();
    expect(segment.window.size).to.equal(0);
    segment.scan();
    segment.append();
    expect(segment.window.size, "while it reads, it does not know").to.equal(0);
    expect(segment.drain()).to.have.length(2);
  });

  it("reports that it is low, and asks for more, until it has everything", () => {
    const segment = new Segment();
    for (let number = 0; number < 3; number++) segment.put(number);
    expect(segment.window.peek()).to.equal(undefined);
    expect(segment.window.wants()).to.deep.include({ from: "" });
    expect(segment.window.wants(), "one load at a time").to.equal(undefined);
  });

  it("does not ask while it has everything", () => {
    const segment = new Segment();
    segment.settle();
    expect(segment.window.wants()).to.equal(undefined);
    segment.put(1);
    expect(segment.window.wants()).to.deep.include({ from: keyOf(1) });
  });

  it("holds a bounded number of entries, of however many there are", () => {
    const segment = new Segment();
    for (let number = 0; number < 20_000; number++) segment.put(number);
    segment.settle();
    expect(segment.window.size).to.be.within(1, 8_192);
    expect(segment.largestPage).to.be.at.most(2_048);
    expect(segment.drain()).to.have.length(20_000);
    expect(segment.taken).to.deep.equal([...segment.taken].sort());
  });

  it("holds a bounded number of bytes, and goes on", () => {
    const segment = new Segment();
    for (let number = 0; number < 300; number++) segment.put(number, MIB);
    segment.settle();
    expect(segment.window.size).to.be.within(1, 65);
    expect(segment.drain()).to.have.length(300);
  });

  it("gives out an entry that is larger than all its room", () => {
    const segment = new Segment();
    segment.put(1, 100 * MIB);
    segment.put(2, 100 * MIB);
    expect(segment.drain()).to.deep.equal([keyOf(1), keyOf(2)]);
  });

  it("loads what belongs before its entries at once, however many these are", () => {
    const segment = new Segment();
    for (let number = 10; number < 6_000; number++) segment.put(number);
    segment.settle();
    expect(segment.window.size).to.be.above(2_048);
    segment.put(3);
    segment.settle();
    expect(segment.take()).to.equal(keyOf(3));
  });

  it("stays within its bounds when thousands of entries are put before its first one", () => {
    const segment = new Segment();
    for (let number = 50_000; number < 58_000; number++) segment.put(number);
    segment.settle();
    for (let number = 0; number < 30_000; number++) segment.put(number);
    segment.settle();
    expect(segment.window.size).to.be.at.most(8_192);
    expect(segment.drain()).to.have.length(38_000);
    expect(segment.taken).to.deep.equal([...segment.taken].sort());
  });

  it("forgets an entry that left by another way, in memory or not", () => {
    const segment = new Segment();
    for (let number = 0; number < 4; number++) segment.put(number);
    segment.settle();
    segment.remove(2);
    segment.put(9);
    segment.scan();
    segment.remove(9);
    expect(segment.drain()).to.deep.equal([0, 1, 3].map(keyOf));
  });

  it("does not give again what was set aside and has left while a load was under way", () => {
    const segment = new Segment();
    segment.put(1);
    segment.put(2);
    segment.scan();
    segment.window.load(segment.answers.shift()?.entries ?? [], null);
    // Taken out of the window, and still there in the store.
    expect(segment.window.take()?.key).to.equal(keyOf(1));
    segment.put(0);
    expect(segment.scan()).to.equal(true);
    expect(segment.answers[0]?.entries.map(({ key }) => key)).to.include(keyOf(1));
    segment.window.left(keyOf(1));
    segment.rows.delete(keyOf(1));
    segment.window.load(segment.answers[0]?.entries ?? [], null);
    expect([segment.take(), segment.take(), segment.take()]).to.deep.equal([keyOf(0), keyOf(2), undefined]);
  });

  it("drops all that is before a key, and only that", () => {
    const segment = new Segment();
    for (let number = 0; number < 5; number++) segment.put(number);
    segment.scan();
    segment.window.load(segment.answers.shift()?.entries ?? [], null);
    segment.window.dropBelow(keyOf(3));
    expect([segment.window.peek()?.key, segment.window.size]).to.deep.equal([keyOf(3), 2]);
    segment.window.dropBelow(keyOf(9));
    expect(segment.window.size).to.equal(0);
  });
});
