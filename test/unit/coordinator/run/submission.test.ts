import { expect } from "chai";
import type { CoordinatorState } from "../../../../src/coordinator/turn/state.ts";
import { meaningOf } from "../../../../src/coordinator/run/run.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import { ITEM_INDEX_PREFIX } from "../../../../src/storage/keys.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { batchOf } from "../../../support/batch.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { linesOf, World } from "../../../support/world.ts";
import fc from "fast-check";

const A = "01SVBM1SS10N0000000000000A";
const B = "01SVBM1SS10N0000000000000B";

describe("a submission", () => {
  let ledger: World;

  beforeEach(async () => {
    ledger = await World.start();
  });

  const itemsOf = ({ ledger: { tally } }: CoordinatorState): number => tally.count("items");

  const idsOf = async (harness: World): Promise<string[]> => {
    const rows = await harness.store.scan({ ...prefixRange(ITEM_INDEX_PREFIX), limit: 100_000 });
    return rows.map(({ key }) => key);
  };

  it("adds an item for each line, and keeps equal lines distinct", async () => {
    const verdict = await ledger.submit(["a", "b", "a", "a"]);
    expect(verdict).to.deep.equal({ kind: "taken", added: 4, known: 0, duplicates: 2 });
    expect(await idsOf(ledger)).to.have.length(4);
  });

  it("is on stable storage when it is answered", async () => {
    await ledger.offer(["a"]);
    expect(ledger.written.durability).to.equal("sync");
  });

  it("adds nothing when the same file is submitted again", async () => {
    await ledger.submit(["a", "b", "a"], { submission: A });
    const verdict = await ledger.submit(["a", "b", "a"], { submission: B });
    expect(verdict).to.deep.equal({ kind: "taken", added: 0, known: 3, duplicates: 1 });
  });

  it("adds only what is new when the file was edited", async () => {
    await ledger.submit(["a", "b", "a"], { submission: A });
    const verdict = await ledger.submit(["a", "c", "a", "a", "b"], { submission: B });
    expect(verdict).to.deep.equal({ kind: "taken", added: 2, known: 3, duplicates: 2 });
  });

  it("counts equal lines on from batch to batch", async () => {
    await ledger.submit(["a", "a"], { batchNumber: 1 });
    expect(await ledger.submit(["a", "b"], { batchNumber: 2 })).to.include({ added: 2, known: 0 });
    expect(await ledger.submit(["b", "a"], { batchNumber: 3 })).to.include({ added: 2, known: 0 });
  });

  it("answers a batch that comes again as it did, the last and any before it", async () => {
    await ledger.submit(["a", "b"], { batchNumber: 1 });
    await ledger.submit(["a", "b", "c"], { batchNumber: 2 });
    expect(await ledger.submit(["a", "b", "c"], { batchNumber: 2 })).to.include({ added: 3, known: 0 });
    expect(await ledger.submit(["a", "b"], { batchNumber: 1 })).to.include({ added: 2, known: 0 });
    await ledger.lead();
    expect(await ledger.submit(["a", "b"], { batchNumber: 1 })).to.include({ added: 2, known: 0 });
    expect(itemsOf(ledger.state)).to.equal(5);
  });

  it("ends the leader when the store has lost an item that a worker has: it went back, and the item would run twice", async () => {
    const world = await World.start({ isChecked: false });
    await world.submit(["a"], { submission: A });
    await world.worker(1, { credit: 1 });
    expect(world.state.ledger.running.size).to.equal(1);
    await world.store.commit(batchOf({ deletes: await idsOf(world) }));
    const planned = await planSubmission(world.store, linesOf(["a", "b"], { submission: B }));
    if (planned.kind !== "planned") expect.fail("the store knows none of them");
    const answers: unknown[] = [];
    await world.step({
      kind: "submit",
      batch: planned.batch,
      answer: (given) => void answers.push(given),
    });
    expect(world.fatal).to.have.length(1);
    expect(world.fatal[0]).to.include({ code: "store_corrupt" });
    expect(answers, "nobody is told that it was taken").to.deep.equal([]);
    expect(itemsOf(world.state)).to.equal(1);
  });

  it("is refused when the batch before it has not come", async () => {
    for (const batchNumber of [2, 3])
      expect(await planSubmission(ledger.store, linesOf(["a"], { batchNumber }))).to.deep.equal({
        kind: "gap",
      });
  });

  it("is looked up in one reading: each is a way to a thread and back, or to another machine", async () => {
    await ledger.submit(["a"], { batchNumber: 1 });
    const store = new WatchedStore(ledger.store);
    const planned = await planSubmission(store, linesOf(["a", "b"], { batchNumber: 2 }));
    // The second `a` of the submission is looked for by itself.
    expect([planned.kind, store.gets, store.scans.length, store.lookUps]).to.deep.equal(["planned", 0, 0, 2]);
  });

  it("is the same set of items however its lines are cut into batches", async () => {
    const lines = fc.array(fc.constantFrom("a", "b", "c", "d"), { minLength: 1, maxLength: 12 });
    await fc.assert(
      fc.asyncProperty(lines, fc.array(fc.integer({ min: 1, max: 4 })), async (texts, cuts) => {
        const [whole, cut] = [await World.start(), await World.start()];
        await whole.submit(texts);
        let batchNumber = 0;
        for (let rest = texts; rest.length > 0;) {
          const size = cuts[batchNumber] ?? 2;
          await cut.submit(rest.slice(0, size), { batchNumber: ++batchNumber });
          rest = rest.slice(size);
        }
        expect(await idsOf(cut)).to.deep.equal(await idsOf(whole));
        expect(itemsOf(cut.state)).to.equal(texts.length);
      }),
      { numRuns: 60 },
    );
  });

  it("counts its own lines, whatever others submit between its batches", async () => {
    const lines = fc.array(fc.constantFrom("a", "b"), { maxLength: 3 });
    const turns = fc.array(fc.tuple(fc.constantFrom(A, B), lines), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(turns, async (batches) => {
        const harness = await World.start();
        const numbers = new Map([A, B].map((submission) => [submission, 0]));
        const most = new Map<string, Map<string, number>>();
        for (const [submission, texts] of batches) {
          const batchNumber = (numbers.get(submission) ?? 0) + 1;
          numbers.set(submission, batchNumber);
          await harness.submit(texts, { submission, batchNumber });
          const counts = most.get(submission) ?? new Map<string, number>();
          for (const text of texts) counts.set(text, (counts.get(text) ?? 0) + 1);
          most.set(submission, counts);
        }
        // A line that one file has twice and the other three times is three items.
        const expected = ["a", "b"].map((text) =>
          Math.max(0, ...[...most.values()].map((counts) => counts.get(text) ?? 0)),
        );
        expect(itemsOf(harness.state)).to.equal(expected.reduce((sum, count) => sum + count, 0));
      }),
      { numRuns: 100 },
    );
  });

  it("keeps the priority that an item was submitted with first", async () => {
    await ledger.submit(["a"], { submission: A, priority: 5 });
    await ledger.submit(["a"], { submission: B, priority: -5 });
    const worker = await ledger.worker(1, { credit: 1 });
    expect(worker.held.map(({ priority }) => priority)).to.deep.equal([5]);
  });

  it("is refused once the run is sealed, and a batch that was taken before is still answered", async () => {
    await ledger.submit(["a"], { submission: A });
    await ledger.seal();
    expect(await ledger.submit(["b"], { submission: B })).to.deep.equal({ kind: "sealed" });
    expect(await ledger.submit(["a"], { submission: A })).to.include({ added: 1, known: 0 });
    expect(await ledger.submit(["a"], { submission: B }), "nothing of it is new").to.include({
      ...{ kind: "taken", added: 0, known: 1 },
    });
    expect(itemsOf(ledger.state)).to.equal(1);
  });

  it("opens a sealed run, and a complete one, when it asks for that and has something new", async () => {
    const states = (): string => meaningOf(ledger.state).name;
    await ledger.submit(["a"], { submission: A });
    await ledger.seal();
    expect(await ledger.submit(["a"], { submission: B, reopen: true })).to.include({ added: 0, known: 1 });
    expect(states(), "nothing is new").to.equal("Sealed.Active");
    expect(await ledger.submit(["a", "b"], { submission: B, batchNumber: 2, reopen: true })).to.include({
      added: 2,
    });
    expect(states()).to.equal("Open.Active");
    await ledger.seal();

    const worker = await ledger.worker(1, { slots: 4, credit: 4 });
    await worker.report(worker.held);
    await ledger.watch(1_000, [worker]);
    expect(states()).to.equal("Complete");
    expect(await ledger.submit(["c"], { submission: B, batchNumber: 3, reopen: true })).to.include({
      added: 1,
    });
    expect(states()).to.equal("Open.Active");
  });
});
