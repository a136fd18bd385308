import { expect } from "chai";
import fc from "fast-check";
import { decodeRecord, encodeRecord, okOrFailure, recordChecksum } from "../../../../src/storage/codec.ts";
import type { Damage, RecordType } from "../../../../src/storage/codec.ts";
import { readScrubPage } from "../../../../src/coordinator/read/verify-ledger.ts";
import { Scrub } from "../../../../src/coordinator/ledger/scrub.ts";
import { disagreement, SEGMENT_ROWS, SEGMENTS, Tally } from "../../../../src/coordinator/ledger/tally.ts";
import type { SegmentName } from "../../../../src/coordinator/ledger/tally.ts";
import { doneRecord, itemIndexRecord } from "../../../../src/coordinator/ledger/records.ts";
import {
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  LEDGER_KEY,
} from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Entry } from "../../../../src/storage/store.ts";
import { nextKey } from "../../../../src/storage/store.ts";
import { batchOf } from "../../../support/batch.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";

const SEED = 20261118;
const KEYS = 12;

/** A segment by hand: rows that come and go in memory first and in the store when they are committed. */
function comparison(tally: Tally): Parameters<Scrub["take"]>[1] {
  return (segment, found) => disagreement(tally, segment as SegmentName, found);
}

class Rows {
  readonly scrub: Scrub;
  readonly tally = new Tally();
  readonly #inMemory = new Map<string, Entry>();
  #committed = new Map<string, Entry>();
  #made = 0;

  constructor(rowsPerPage: number) {
    this.scrub = new Scrub(rowsPerPage);
  }

  /** The row comes if it is not there, and goes if it is. */
  toggle(segment: SegmentName, number: number): void {
    const key = `${SEGMENT_ROWS[segment].prefix}${String(number).padStart(2, "0")}`;
    const before = this.#inMemory.get(key);
    if (before === undefined) {
      const value = this.#record(segment, key);
      this.#inMemory.set(key, { key, value });
      this.tally.added(segment, value);
      this.scrub.came(segment, key, recordChecksum(value));
    } else {
      const checksum = recordChecksum(before.value);
      this.#inMemory.delete(key);
      this.tally.removed(segment, checksum);
      this.scrub.went(segment, key, checksum);
    }
  }

  commit(): void {
    this.#committed = new Map(this.#inMemory);
  }

  /** Behind everybody's back. */
  lose(): boolean {
    const [key] = [...this.#committed.keys()].sort();
    if (key === undefined) return false;
    this.#committed.delete(key);
    return this.#inMemory.delete(key);
  }

  async store(): Promise<MemoryStore> {
    const store = new MemoryStore();
    await store.commit(batchOf({ puts: [...this.#committed.values()] }));
    return store;
  }

  /** No two are alike, so that one that was replaced is another one. */
  #record(segment: SegmentName, key: string): Uint8Array {
    return recordOf(SEGMENT_ROWS[segment].record, key, ++this.#made);
  }
}

/** Whole as far as a walk looks at it. */
function recordOf<T>(type: RecordType<T>, key: string, content: number | Uint8Array): Uint8Array {
  return encodeRecord({ ...type, encode: () => [content] }, key, undefined);
}

/** A whole record under this key, of the place that another one names. */
function recordOfPlace(key: string, { key: otherKey, value }: Entry): Uint8Array {
  return encodeRecord(itemIndexRecord, key, okOrFailure("", decodeRecord(itemIndexRecord, otherKey, value)));
}

type Step =
  | { readonly kind: "toggle"; readonly segment: SegmentName; readonly number: number }
  | { readonly kind: "commit" | "ask" | "read" | "answer" };

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant("toggle" as const),
      segment: fc.constantFrom("items" as const, "returned" as const, "done" as const),
      number: fc.nat(KEYS),
    }),
  },
  {
    weight: 5,
    arbitrary: fc.constantFrom("commit", "ask", "read", "answer").map((kind) => ({ kind })),
  },
);

/** Runs the steps, each as far as it may be taken then, and reads the rest. */
async function run(rows: Rows, steps: readonly Step[]): Promise<Damage | undefined> {
  let asked: ReturnType<Scrub["wants"]>;
  let page: Awaited<ReturnType<typeof readScrubPage>> | undefined;
  const go = async ({ kind }: Pick<Step, "kind">): Promise<Damage | undefined> => {
    if (kind === "commit") rows.commit();
    // A question leaves behind its turn's batch (C2).
    if (kind === "ask" && asked === undefined) {
      rows.commit();
      asked = rows.scrub.wants();
    }
    if (kind === "read" && asked !== undefined) page = await readScrubPage(await rows.store(), asked);
    if (kind !== "answer" || page === undefined) return undefined;
    const read = page;
    [asked, page] = [undefined, undefined];
    return rows.scrub.take(read, comparison(rows.tally));
  };
  for (const next of steps) {
    if (next.kind === "toggle") rows.toggle(next.segment, next.number);
    const damage = await go(next);
    if (damage !== undefined) return damage;
  }
  while (!rows.scrub.isOver)
    for (const kind of ["ask", "read", "answer"] as const) {
      const damage = await go({ kind });
      if (damage !== undefined) return damage;
    }
  return undefined;
}

describe("the scrub of the ledger", () => {
  const [pageOf, steps] = [fc.integer({ min: 1, max: 5 }), fc.array(step, { maxLength: 120, size: "max" })];

  it("finds nothing wrong in rows that come and go before, while and after their page is read", async () => {
    await fc.assert(
      fc.asyncProperty(pageOf, steps, async (limit, all) => {
        expect(await run(new Rows(limit), all)).to.equal(undefined);
      }),
      { numRuns: 2_000, seed: SEED },
    );
  });

  it("finds a row that is gone and was counted, whatever came and went before", async () => {
    await fc.assert(
      fc.asyncProperty(pageOf, steps, async (limit, all) => {
        const rows = new Rows(limit);
        for (const next of all) if (next.kind === "toggle") rows.toggle(next.segment, next.number);
        rows.commit();
        const isLost = rows.lose();
        const damage = await run(rows, []);
        expect(damage?.key).to.equal(isLost ? LEDGER_KEY : undefined);
      }),
      { numRuns: 300, seed: SEED },
    );
  });

  it("reads a page again when more has changed meanwhile than it remembers", async () => {
    const rows = new Rows(3);
    const first = rows.scrub.wants();
    expect(first).to.deep.equal({ segment: "items", from: ITEMS_PREFIX, limit: 3 });
    if (first === undefined) return expect.fail("it wants no page");
    const page = await readScrubPage(await rows.store(), first);
    for (let number = 0; number < 20_000; number++) rows.toggle("items", number);
    rows.commit();
    expect(rows.scrub.take(page, comparison(rows.tally))).to.equal(undefined);
    expect(rows.scrub.wants()).to.deep.equal(first);
  });

  it("asks for one page at a time, and for nothing when it is over", async () => {
    const rows = new Rows(3);
    const store = await rows.store();
    for (const segment of SEGMENTS) {
      const asked = rows.scrub.wants();
      expect(asked?.segment).to.equal(segment);
      expect(rows.scrub.wants()).to.equal(undefined);
      if (asked !== undefined) rows.scrub.take(await readScrubPage(store, asked), comparison(rows.tally));
    }
    expect([rows.scrub.isOver, rows.scrub.wants()]).to.deep.equal([true, undefined]);
  });

  it("passes over scans while items come and go in numbers, but not for ever", async () => {
    const rows = new Rows(3);
    const store = await rows.store();
    /** Which of the scans had a page, when so many items moved before each. */
    const scans = async (count: number, moved: number): Promise<number[]> => {
      const paged: number[] = [];
      for (let scan = 0; scan < count; scan++) {
        const asked = rows.scrub.wantsAtScan((total += moved));
        if (asked === undefined) continue;
        paged.push(scan);
        rows.scrub.take(await readScrubPage(store, asked), comparison(rows.tally));
      }
      return paged;
    };
    let total = 0;
    expect(await scans(90, 1_000)).to.deep.equal([0, 40, 80]);
    expect(await scans(3, 3), "slow items leave it time enough").to.deep.equal([0, 1, 2]);
  });

  describe("reads a page", () => {
    async function storeOf(count: number, bytes: number): Promise<WatchedStore> {
      const store = new WatchedStore(new MemoryStore());
      const puts = Array.from({ length: count }, (_, at) => {
        const key = `${DONE_PREFIX}${String(at).padStart(4, "0")}`;
        return { key, value: recordOf(doneRecord, key, Buffer.alloc(bytes)) };
      });
      await store.commit(batchOf({ puts }));
      return store;
    }
    it("in steps that grow, up to its limit", async () => {
      const store = await storeOf(300, 1);
      const page = await readScrubPage(store, { segment: "done", from: DONE_PREFIX, limit: 200 });
      expect(page.rows).to.have.length(200);
      expect(page.next).to.equal(nextKey(`${DONE_PREFIX}0199`));
      expect(store.scans.map(({ range }) => range.limit)).to.deep.equal([
        4,
        ...Array<number>(12).fill(16),
        4,
      ]);
      const rest = await readScrubPage(store, { segment: "done", from: page.next ?? "", limit: 200 });
      expect([rest.rows.length, rest.next, rest.damage]).to.deep.equal([100, null, undefined]);
    });

    it("and ends it early where rows are heavy", async () => {
      const store = await storeOf(40, 2 ** 20);
      const page = await readScrubPage(store, { segment: "done", from: DONE_PREFIX, limit: 200 });
      expect(page.rows).to.have.length(8);
      expect(Math.max(...store.scans.map(({ range }) => range.limit))).to.equal(4);
    });
  });

  describe("of a leader", () => {
    const PER_PAGE_MS = 250;
    let ledger: World;

    beforeEach(async () => {
      ledger = await World.start({ isChecked: false, budgets: { maxAttempts: 1 } });
      const worker = await ledger.worker(1, { slots: 20, credit: 20 });
      await ledger.submit(["a", "b", "c", "d", "e", "f", "g", "h"]);
      await worker.report(worker.held.slice(0, 5));
      await worker.report(worker.held.slice(0, 1), ERROR);
    });

    const named = (): unknown =>
      ledger.fatal.map((error) => [
        (error as { code: string }).code,
        (error as { params: { key: string } }).params.key,
      ]);

    /** Another coordinator, over what the first has left; nobody works and nobody asks it for anything. */
    async function followed(): Promise<void> {
      await ledger.lead();
      await ledger.watch(40 * PER_PAGE_MS);
    }

    it("reads every row once after its start, a page for each scan, and is quiet then", async () => {
      await ledger.lead();
      expect(ledger.state.ledger.scrub.isOver).to.equal(false);
      await ledger.watch(PER_PAGE_MS);
      expect(ledger.state.ledger.scrub.isOver).to.equal(false);
      await ledger.watch(40 * PER_PAGE_MS);
      expect(ledger.state.ledger.scrub.isOver).to.equal(true);
      expect(ledger.fatal).to.deep.equal([]);
    });

    for (const prefix of [ITEMS_PREFIX, DONE_PREFIX, FAILED_PREFIX]) {
      it(`ends it over a row that is not whole under ${prefix}, and names it`, async () => {
        // The record of a done item: nobody would read it again.
        const key = await ledger.damage(prefix);
        await followed();
        expect(named()).to.deep.equal([["store_corrupt", key]]);
      });

      it(`ends it over a row that is gone under ${prefix}`, async () => {
        await ledger.damage(prefix, 0, "gone");
        await followed();
        expect(named()).to.deep.equal([["store_corrupt", LEDGER_KEY]]);
        expect((ledger.fatal[0] as Error).message).to.contain(`rows were counted under ${prefix}`);
      });
    }

    const INDEX_TROUBLES: readonly [
      what: string,
      puts: (key: string, other: Entry) => Entry[],
      reason: string,
    ][] = [
      ["is gone", () => [], "is not found by its id"],
      [
        "is another item's",
        (key, other) => [{ key, value: recordOfPlace(key, other) }],
        "and the item is at",
      ],
    ];
    for (const [what, puts, reason] of INDEX_TROUBLES) {
      it(`ends it when the row that finds an item by its id ${what}: its line would be executed again`, async () => {
        const [row, other] = await ledger.rowsUnder(ITEM_INDEX_PREFIX);
        if (row === undefined || other === undefined) throw new Error("every item has one");
        await ledger.store.commit(batchOf({ deletes: [row.key], puts: puts(row.key, other) }));
        await followed();
        expect(named()).to.deep.equal([["store_corrupt", row.key]]);
        expect((ledger.fatal[0] as Error).message).to.contain(reason);
      });
    }

    it("says what is wrong in a turn that writes, so that whoever leads no more says nothing", async () => {
      await ledger.damage(DONE_PREFIX, 0, "gone");
      await ledger.lead();
      while (ledger.fatal.length === 0) await ledger.watch(PER_PAGE_MS);
      const [written] = ledger.written.puts;
      expect(written?.key).to.equal(LEDGER_KEY);
    });
  });
});
