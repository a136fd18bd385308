// The contract of every store as a suite, run against each implementation by a file of two lines.
import { expect } from "chai";
import fc from "fast-check";
import { nextKey, prefixRange } from "../../src/storage/store.ts";
import type { Batch, CommitOutcome, Durability, Entry, Expectation, Store } from "../../src/storage/store.ts";

import {
  batchOf as batch,
  bytesOf as bytes,
  EVERYTHING,
  putOf as put,
  textOf as text,
} from "../support/batch.ts";
import { rejectionOf } from "../support/rejection.ts";

export interface StoreFactory {
  /** An empty store that shares nothing with any other. */
  open(): Promise<Store>;
}

const rows = (entries: readonly Entry[]): string[] =>
  entries.map(({ key, value }) => `${key}=${text(value)}`);
const durabilities: readonly Durability[] = ["sync", "flush"];

export function storeContract(name: string, factory: StoreFactory): void {
  describe(`store contract: ${name}`, () => {
    let store: Store;
    beforeEach(async () => {
      store = await factory.open();
    });
    afterEach(() => store.close());

    const committed = async (parts: Partial<Batch>): Promise<void> => {
      expect(await store.commit(batch(parts))).to.deep.equal({ kind: "committed" });
    };

    readingTests(() => store, committed);
    batchTests(() => store, committed);
    expectationTests(() => store, committed);
    orderTests(() => store);
    closingTests(() => store);
    modelTest(factory);
  });
}

type Committed = (parts: Partial<Batch>) => Promise<void>;

function readingTests(store: () => Store, committed: Committed): void {
  it("an absent key is undefined", async () => {
    expect(await store().get("items/1")).to.equal(undefined);
  });

  it("gives many values in the order of their keys, whatever that is", async () => {
    await store().commit(batch({ puts: [put("a", "1"), put("b", "2"), put("c", "3")] }));
    const values = await store().getMany(["c", "nothing", "a", "c"]);
    expect(values.map((value) => value && Buffer.from(value).toString())).to.deep.equal([
      "3",
      undefined,
      "1",
      "3",
    ]);
    expect(await store().getMany([])).to.deep.equal([]);
    expect(await rejectionOf(store().getMany(["a", "a key"]))).to.be.an("error");
  });

  it("is new until something was committed, and never again", async () => {
    expect(store().everWritten).to.equal(false);
    await store().commit(batch({ puts: [put("a", "")], expect: [{ key: "a", value: bytes("other") }] }));
    expect(store().everWritten).to.equal(false);
    await committed({ puts: [put("a", "")] });
    await committed({ deletes: ["a"] });
    expect(store().everWritten).to.equal(true);
  });

  it("names itself for messages", () => {
    expect(store().location).to.match(/./);
  });

  it("scans in ascending order of key, whatever the order of writing", async () => {
    await committed({ puts: ["b", "a", "c/2", "c/10", "B", "~", "!"].map((key) => put(key, "x")) });
    const keys = (await store().scan(EVERYTHING)).map(({ key }) => key);
    expect(keys).to.deep.equal(["!", "B", "a", "b", "c/10", "c/2", "~"]);
  });

  it("the start of a range belongs to it, its end does not", async () => {
    await committed({ puts: [put("a", "1"), put("b", "2"), put("c", "3")] });
    expect(rows(await store().scan({ from: "a", to: "c", limit: 9 }))).to.deep.equal(["a=1", "b=2"]);
    expect(await store().scan({ from: "b", to: "b", limit: 9 })).to.deep.equal([]);
    expect(await store().scan({ from: "c", to: "a", limit: 9 })).to.deep.equal([]);
  });

  it("a prefix holds its own keys and no neighbour's", async () => {
    await committed({
      puts: ["item/1", "items", "items-a/1", "items/", "items/~", "items0"].map((k) => put(k, "")),
    });
    const found = await store().scan({ ...prefixRange("items/"), limit: 9 });
    expect(found.map(({ key }) => key)).to.deep.equal(["items/", "items/~"]);
  });

  it("pages of any size give each entry once", async () => {
    const puts = Array.from({ length: 25 }, (_, at) => put(`k/${String(at).padStart(2, "0")}`, `${at}`));
    await committed({ puts });
    for (const limit of [1, 7, 25, 26]) {
      const found: string[] = [];
      let from = "k/";
      for (;;) {
        const page = await store().scan({ from, to: "k0", limit });
        expect(page.length).to.be.at.most(limit);
        found.push(...rows(page));
        const last = page.at(-1);
        if (last === undefined) break;
        from = nextKey(last.key);
      }
      expect(found).to.deep.equal(rows(puts));
    }
  });

  it("pages of so many bytes give each entry once, and end behind the one that is too much", async () => {
    const puts = Array.from({ length: 10 }, (_, at) => put(`k/${at}`, "x".repeat(at === 4 ? 5_000 : 100)));
    await committed({ puts });
    const sizes: number[] = [];
    const found: string[] = [];
    for (let from = "k/"; ;) {
      const page = await store().scan({ from, to: "k0", limit: 4, bytesMax: 200 });
      const last = page.at(-1);
      if (last === undefined) break;
      sizes.push(page.length);
      found.push(...rows(page));
      from = nextKey(last.key);
    }
    expect(found).to.deep.equal(rows(puts));
    expect(sizes, "two of 103 bytes are over the bound, and so is the large one").to.deep.equal([
      2, 2, 1, 2, 2, 1,
    ]);
  });

  it("a scan without the lowest key still starts at the first of the store", async () => {
    await committed({ puts: [put("!", "1")] });
    expect(rows(await store().scan({ from: "", to: "\u007f", limit: 9 }))).to.deep.equal(["!=1"]);
  });

  it("what was read is the reader's own", async () => {
    await committed({ puts: [put("a", "one")] });
    (await store().get("a"))?.fill(0);
    (await store().scan(EVERYTHING))[0]?.value.fill(0);
    expect(text(await store().get("a"))).to.equal("one");
  });

  it("keeps empty, binary and large values to the byte", async () => {
    const large = new Uint8Array(5 * 1024 * 1024).map((_, at) => (at * 31) % 251);
    const every = Uint8Array.from({ length: 256 }, (_, at) => at);
    await committed({
      puts: [
        { key: "empty", value: new Uint8Array(0) },
        { key: "every", value: every },
        { key: "large", value: large },
      ],
    });
    expect((await store().get("empty"))?.length).to.equal(0);
    expect(Buffer.compare(every, (await store().get("every")) ?? bytes("none"))).to.equal(0);
    expect(Buffer.compare(large, (await store().get("large")) ?? bytes("none"))).to.equal(0);
  });
}

function batchTests(store: () => Store, committed: Committed): void {
  for (const durability of durabilities) {
    it(`a ${durability} batch is readable when it is answered`, async () => {
      await committed({ puts: [put("a", "1"), put("b", "2")], durability });
      expect(rows(await store().scan(EVERYTHING))).to.deep.equal(["a=1", "b=2"]);
    });
  }

  it("puts and deletes of one batch take effect together, deletes first", async () => {
    await committed({ puts: [put("a", "1"), put("b", "1")] });
    await committed({ puts: [put("b", "2"), put("c", "2"), put("c", "3")], deletes: ["a", "b", "absent"] });
    expect(rows(await store().scan(EVERYTHING))).to.deep.equal(["b=2", "c=3"]);
  });

  it("the bytes may be changed after the answer", async () => {
    const value = bytes("one");
    await committed({ puts: [{ key: "a", value }], expect: [{ key: "a", value: null }] });
    value.fill(0);
    expect(text(await store().get("a"))).to.equal("one");
    await committed({ puts: [put("a", "two")], expect: [{ key: "a", value: bytes("one") }] });
  });

  for (const durability of durabilities) {
    it(`an empty ${durability} batch commits`, async () => {
      await committed({ durability });
      expect(await store().scan(EVERYTHING)).to.deep.equal([]);
    });
  }

  it("a key with a space, a control character or another alphabet is the caller's bug", async () => {
    for (const key of ["", "a b", "a\u0000", "\u0001commits/1", "é"]) {
      expect(await rejectionOf(store().commit(batch({ puts: [put(key, "")] }))), key).to.be.an("error");
      expect(await rejectionOf(store().commit(batch({ deletes: [key] }))), key).to.be.an("error");
      expect(await rejectionOf(store().get(key)), key).to.be.an("error");
    }
    expect(await rejectionOf(store().scan({ ...EVERYTHING, limit: 0 }))).to.be.an("error");
  });
}

function expectationTests(store: () => Store, committed: Committed): void {
  const conflict = async (expectation: Expectation, durability: Durability): Promise<CommitOutcome> =>
    store().commit(batch({ puts: [put("new", "x")], deletes: ["old"], expect: [expectation], durability }));

  for (const durability of durabilities) {
    it(`a ${durability} batch whose expectation fails names the key and writes nothing`, async () => {
      await committed({ puts: [put("old", "1")] });
      const cases: readonly Expectation[] = [
        { key: "old", value: null },
        { key: "old", value: bytes("2") },
        { key: "old", value: bytes("") },
        { key: "old", value: bytes("11") },
        { key: "absent", value: bytes("1") },
        { key: "absent", value: bytes("") },
      ];
      for (const expectation of cases) {
        const outcome = await conflict(expectation, durability);
        expect(outcome).to.deep.equal({ kind: "conflict", key: expectation.key });
      }
      expect(rows(await store().scan(EVERYTHING))).to.deep.equal(["old=1"]);
    });
  }

  it("absent and exact values may be expected, of keys that the batch writes and of others", async () => {
    await committed({ puts: [put("epoch", "7")], expect: [{ key: "epoch", value: null }] });
    await committed({
      puts: [put("item", "1"), put("epoch", "8")],
      expect: [
        { key: "epoch", value: bytes("7") },
        { key: "item", value: null },
      ],
    });
    await committed({ deletes: ["epoch"], expect: [{ key: "epoch", value: bytes("8") }] });
    await committed({ puts: [put("epoch", "9")], expect: [{ key: "epoch", value: null }] });
    expect(rows(await store().scan(EVERYTHING))).to.deep.equal(["epoch=9", "item=1"]);
  });

  it("an empty value is not an absent key", async () => {
    await committed({ puts: [put("a", "")] });
    await committed({ expect: [{ key: "a", value: bytes("") }] });
    expect((await store().commit(batch({ expect: [{ key: "a", value: null }] }))).kind).to.equal("conflict");
  });

  it("the first expectation that fails is the one that is named", async () => {
    const outcome = await store().commit(
      batch({
        expect: [
          { key: "a", value: null },
          { key: "b", value: bytes("") },
          { key: "c", value: bytes("") },
        ],
      }),
    );
    expect(outcome).to.deep.equal({ kind: "conflict", key: "b" });
  });

  it("a batch sees what the batches before it will write, though they are not answered yet", async () => {
    const steps = Array.from({ length: 50 }, (_, at) =>
      store().commit(
        batch({
          puts: [put("counter", `${at + 1}`)],
          expect: [{ key: "counter", value: at === 0 ? null : bytes(`${at}`) }],
          durability: at % 3 === 0 ? "sync" : "flush",
        }),
      ),
    );
    expect((await Promise.all(steps)).map(({ kind }) => kind)).to.deep.equal(steps.map(() => "committed"));
    expect(text(await store().get("counter"))).to.equal("50");
  });

  it("a batch in conflict is left out, and those around it go through", async () => {
    const claims = ["one", "two", "three"].map((claimant) =>
      store().commit(
        batch({
          puts: [put("lease", claimant), put(`was/${claimant}`, "")],
          expect: [{ key: "lease", value: null }],
        }),
      ),
    );
    const after = store().commit(
      batch({ puts: [put("after", "1")], expect: [{ key: "lease", value: bytes("one") }] }),
    );
    expect((await Promise.all([...claims, after])).map(({ kind }) => kind)).to.deep.equal([
      "committed",
      "conflict",
      "conflict",
      "committed",
    ]);
    expect(rows(await store().scan(EVERYTHING))).to.deep.equal(["after=1", "lease=one", "was/one="]);
  });
}

function orderTests(store: () => Store): void {
  it("concurrent commits take effect and are answered in the order of the calls", async () => {
    const answered: number[] = [];
    const commits = Array.from({ length: 300 }, async (_, at) => {
      await store().commit(
        batch({ puts: [put("last", `${at}`)], durability: at % 7 === 0 ? "sync" : "flush" }),
      );
      answered.push(at);
    });
    await Promise.all(commits);
    expect(answered).to.deep.equal(commits.map((_, at) => at));
    expect(text(await store().get("last"))).to.equal("299");
  });

  it("a scan beside commits never sees a batch in half", async () => {
    const commits: Promise<CommitOutcome>[] = [];
    for (let round = 0; round < 100; round++) {
      const puts = ["a", "b", "c"].map((key) => put(`pair/${key}`, `${round}`));
      commits.push(store().commit(batch({ puts, durability: "flush" })));
      const seen = await store().scan({ ...prefixRange("pair/"), limit: 9 });
      expect(new Set(seen.map(({ value }) => text(value))).size).to.be.at.most(1);
      expect([0, 3]).to.include(seen.length);
    }
    await Promise.all(commits);
  });
}

function closingTests(store: () => Store): void {
  it("close waits for commits that are on their way", async () => {
    const commits = Array.from({ length: 20 }, (_, at) =>
      store().commit(batch({ puts: [put(`k/${at}`, "")], durability: "sync" })),
    );
    let answered = 0;
    for (const commit of commits) void commit.then(() => answered++);
    await store().close();
    expect(answered).to.equal(20);
    expect(new Set((await Promise.all(commits)).map(({ kind }) => kind))).to.deep.equal(
      new Set(["committed"]),
    );
  });

  it("close may be called again, at once and later", async () => {
    await Promise.all([store().close(), store().close()]);
    await store().close();
  });

  it("every other call after close is refused and says why", async () => {
    await store().close();
    for (const call of [store().get("a"), store().scan(EVERYTHING), store().commit(batch({}))]) {
      const error = await rejectionOf(call);
      expect(error).to.have.property("name", "AssertionFailed");
      expect(error).to.have.property("message").that.includes("after it was closed");
    }
  });
}

interface Step {
  readonly puts: readonly (readonly [string, string])[];
  readonly deletes: readonly string[];
  readonly expect: readonly (readonly [string, string | null])[];
  readonly durability: Durability;
}

/** The contract again, in the fewest words. */
function applyToModel(model: Map<string, string>, step: Step): CommitOutcome {
  for (const [key, value] of step.expect) {
    if ((model.get(key) ?? null) !== value) return { kind: "conflict", key };
  }
  for (const key of step.deletes) model.delete(key);
  for (const [key, value] of step.puts) model.set(key, value);
  return { kind: "committed" };
}

const SEED = 20_261_118;

function modelTest(factory: StoreFactory): void {
  // Few keys and values, so that expectations hold about as often as not.
  const key = fc.constantFrom<string[]>("a", "a/", "a/1", "a0", "b", "lease/x");
  const value = fc.constantFrom<string[]>("", "0", "1", "long".repeat(40));
  const step: fc.Arbitrary<Step> = fc.record({
    puts: fc.array(fc.tuple(key, value), { maxLength: 3 }),
    deletes: fc.array(key, { maxLength: 2 }),
    expect: fc.array(fc.tuple(key, fc.option(value, { freq: 2, nil: null })), { maxLength: 2 }),
    durability: fc.constantFrom(...durabilities),
  });
  // Steps of one inner list are asked for at once, without waiting for answers.
  const commands = fc.array(fc.array(step, { minLength: 1, maxLength: 6 }), { maxLength: 12 });

  it("any sequence of batches gives what a map would give", async () => {
    await fc.assert(
      fc.asyncProperty(commands, async (turns) => {
        const store = await factory.open();
        const model = new Map<string, string>();
        for (const turn of turns) {
          const outcomes = await Promise.all(turn.map((one) => store.commit(asBatch(one))));
          expect(outcomes).to.deep.equal(turn.map((one) => applyToModel(model, one)));
          const sorted = [...model].sort(([one], [other]) => (one < other ? -1 : 1));
          expect(rows(await store.scan(EVERYTHING))).to.deep.equal(sorted.map(([k, v]) => `${k}=${v}`));
        }
        await store.close();
      }),
      { numRuns: 60, seed: SEED },
    );
  });
}

function asBatch(step: Step): Batch {
  return {
    puts: step.puts.map(([key, value]) => put(key, value)),
    deletes: step.deletes,
    expect: step.expect.map(([key, value]) => ({ key, value: value === null ? null : bytes(value) })),
    durability: step.durability,
  };
}
