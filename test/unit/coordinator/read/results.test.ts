// Results as they are listed: in both orders, in pages, while the run goes on, across restarts, over damage.
import { expect } from "chai";
import fc from "fast-check";
import { ResultOrder, RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { doneRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { COMPLETIONS_PREFIX, DONE_PREFIX, ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { batchOf } from "../../../support/batch.ts";
import { useClosers } from "../../../support/closers.ts";
import { DelegatingStore } from "../../../support/delegating-store.ts";
import { LedgerHarness } from "../../../support/ledger-harness.ts";
import type { HeldItem, LedgerWorker } from "../../../support/ledger-worker.ts";
import { ERROR, reportOf } from "../../../support/ledger-worker.ts";
import { OperatorRig } from "../../../support/operator-rig.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const { INPUT, COMPLETION } = ResultOrder;
const nameOf = (order: ResultOrder): string =>
  order === INPUT ? "in order of input" : "in order of completion";

describe("the results of a run", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let ledger: LedgerHarness;
  let operator: OperatorRig;
  let worker: LedgerWorker;

  beforeEach(() => begin());

  async function begin(options: Parameters<typeof LedgerHarness.start>[0] = {}): Promise<void> {
    ledger = await LedgerHarness.start({ budgets: { maxAttempts: 1 }, ...options });
    operator = new OperatorRig(ledger);
    worker = await ledger.worker(1, { credit: 100 });
  }

  const named = (...texts: string[]): HeldItem[] =>
    texts.map((text) => {
      const item = worker.held.find((held) => held.text === text);
      if (item === undefined) throw new Error(`${text} is not held`);
      return item;
    });

  for (const order of [INPUT, COMPLETION]) {
    it(`say of each item all that is known of it (${nameOf(order)})`, async () => {
      await operator.submit(["a", "b"], { isLabelled: true });
      const [first, second] = named("a", "b");
      if (first === undefined || second === undefined) return;
      const execution = { pluginVersion: "7", startedAtWallMs: 5, durationMs: 6 };
      await worker.send([
        { ...reportOf(first), execution },
        { ...reportOf(second, { ...ERROR, response: Buffer.from("{}") }), execution },
      ]);
      const { pages } = await operator.readAll(order);
      const [one, other] = pages.flatMap(({ results }) => results);
      const common = {
        ...{ attempt: 1, pluginVersion: "7", startedAtMs: 5n, durationMs: 6n },
        ...{ finishedAtMs: BigInt(ledger.wallMs) },
      };
      expect(one).to.deep.include({ ...common, sequence: 0n, label: "label of a" });
      expect(one).to.deep.include({ outcome: OutcomeClass.SUCCESS, failureClass: "" });
      expect(Buffer.from(one?.output ?? []).toString()).to.equal("A");
      expect(one?.outputDigest).to.have.length(32);
      expect(Buffer.from(one?.itemId ?? [])).to.deep.equal(Buffer.from(first.id));
      expect(other).to.deep.include({ ...common, sequence: 1n, label: "label of b" });
      expect(other).to.deep.include({
        ...{ outcome: OutcomeClass.ERROR, failureClass: "error", errorMessage: "it broke" },
      });
      expect(Buffer.from(other?.response ?? []).toString()).to.equal("{}");
      expect(one?.response).to.have.length(0);
    });

    it(`come without payloads unless they are asked for (${nameOf(order)})`, async () => {
      await operator.submit(["a"]);
      await worker.report(worker.held);
      const { results } = await operator.ask((run) => run.listResults({ order }));
      expect(results.map(({ payload }) => payload.length)).to.deep.equal([0]);
    });

    it(`end when the run is complete, and not before (${nameOf(order)})`, async () => {
      expect((await operator.readAll(order)).last).to.deep.include({ caughtUp: true, end: false });
      await operator.submit(["a"]);
      await worker.report(worker.held);
      expect((await operator.readAll(order)).last).to.deep.include({ caughtUp: true, end: false });
      await ledger.seal();
      expect((await operator.readAll(order)).last).to.deep.include({ caughtUp: true, end: true });
    });

    it(`of a cancelled run leave out what never finished, and end (${nameOf(order)})`, async () => {
      await operator.submit(["a", "b", "c"]);
      await worker.report(named("b"));
      await worker.release(named("a"));
      // Taken back at once: it is asked for by nobody.
      await ledger.step({ kind: "pause", reason: "", answer: () => undefined });
      await worker.release(worker.held.filter(({ text }) => text === "a"));
      await operator.ask((run) => run.cancel({}));
      const { texts, last } = await operator.readAll(order);
      expect(texts).to.deep.equal(["b", "c"]);
      expect(last.end).to.equal(true);
    });
  }

  it("in order of input stop at the first item that is not final, and go on from there", async () => {
    await operator.submit(["a", "b", "c", "d"]);
    await worker.report(named("c", "a"));
    const first = await operator.readAll(INPUT);
    expect(first.texts).to.deep.equal(["a"]);
    expect(first.last.caughtUp).to.equal(true);
    const nothing = await operator.readAll(INPUT, { after: first.last.after });
    expect([nothing.texts, nothing.last.after]).to.deep.equal([[], first.last.after]);
    await worker.report(named("b"));
    await ledger.lead();
    const then = await operator.readAll(INPUT, { after: first.last.after });
    expect(then.texts).to.deep.equal(["b", "c"]);
  });

  it("in order of completion come as they became final, and go on from there", async () => {
    await operator.submit(["a", "b", "c", "d"]);
    await worker.report(named("c", "a"));
    const first = await operator.readAll(COMPLETION);
    expect(first.texts).to.deep.equal(["c", "a"]);
    await worker.report(named("d"));
    await ledger.lead();
    const then = await operator.readAll(COMPLETION, { after: first.last.after });
    expect(then.texts).to.deep.equal(["d"]);
  });

  it("are in the order of submission whatever the priorities", async () => {
    const priorities = [0, 5, 0, -3, 5, 5, 0, 100, -100];
    for (const [at, priority] of priorities.entries()) await operator.submit([`${at}`], { priority });
    await worker.report(worker.held);
    for (const limit of [0, 1, 4]) {
      const { texts } = await operator.readAll(INPUT, { limit });
      expect(texts).to.deep.equal(priorities.map((_, at) => `${at}`));
    }
  });

  it("are the same in pages of any size, each of them once", async () => {
    const sizes = fc.array(fc.tuple(fc.nat(20), fc.constantFrom(0, 0, 0, 7, -7)), {
      minLength: 1,
      maxLength: 8,
    });
    await fc.assert(
      fc.asyncProperty(sizes, fc.integer({ min: 1, max: 9 }), async (batches, limit) => {
        await begin({ isChecked: false });
        await worker.ask(1_000);
        const texts: string[] = [];
        for (const [size, priority] of batches) {
          const fresh = Array.from({ length: size }, (_, at) => `${texts.length + at}`);
          texts.push(...fresh);
          if (fresh.length > 0) await operator.submit(fresh, { priority });
        }
        const completed: string[] = [];
        while (worker.held.length > 0) {
          const some = worker.held.slice(-3);
          completed.push(...some.map(({ text }) => text));
          await worker.report(some);
        }
        expect((await operator.readAll(INPUT, { limit })).texts).to.deep.equal(texts);
        expect((await operator.readAll(COMPLETION, { limit })).texts).to.deep.equal(completed);
        const { pages } = await operator.readAll(COMPLETION, { limit });
        for (const { results } of pages) expect(results.length).to.be.at.most(limit);
      }),
      { numRuns: 15 },
    );
  });

  it("of some size make pages of at most 2 MiB, and are read a few at a time", async () => {
    const texts = Array.from({ length: 40 }, (_, at) => `${at} ${"x".repeat(100_000)}`);
    await begin({ isChecked: false });
    for (const part of [texts.slice(0, 20), texts.slice(20)]) await operator.submit(part);
    await worker.report(worker.held);
    const read: number[] = [];
    const watching = new OperatorRig(ledger, new ReadWatch(ledger.store, (bytes) => read.push(bytes)));
    for (const order of [INPUT, COMPLETION]) {
      const { pages, texts: found } = await watching.readAll(order);
      expect(found).to.deep.equal(texts);
      for (const { results } of pages) {
        const bytes = results.reduce((sum, { output, payload }) => sum + output.length + payload.length, 0);
        expect(bytes).to.be.at.most(2 * 2 ** 20);
      }
    }
    expect(Math.max(...read)).to.be.at.most(600_000);
  });

  it("that are larger than a page come alone", async () => {
    const large = "x".repeat(900_000);
    const output = Buffer.alloc(2 ** 20, 1);
    await begin({ isChecked: false });
    await operator.submit(["a", large, "b"]);
    const digest = new Uint8Array(32);
    const outcome = { kind: "success", output, digest } as const;
    await worker.report(worker.held, outcome);
    const { pages, texts } = await operator.readAll(INPUT);
    expect(texts).to.deep.equal(["a", large, "b"]);
    expect(pages.map(({ results }) => results.length)).to.deep.equal([1, 1, 1]);
  });

  it("are the same over a real database", async () => {
    const store = await openLevelStore({
      path: directory.file("db"),
      holderName: "test",
      clock: systemClock,
    });
    closeLater(() => store.close());
    await begin({ store });
    await operator.submit(["a", "b"], { priority: 3 });
    await operator.submit(["c", "d"]);
    await worker.report(named("d", "c"));
    await worker.report(named("a", "b"));
    expect((await operator.readAll(INPUT, { limit: 3 })).texts).to.deep.equal(["a", "b", "c", "d"]);
    expect((await operator.readAll(COMPLETION, { limit: 3 })).texts).to.deep.equal(["d", "c", "a", "b"]);
  });
  it("refuse a cursor of another order, one that is none, and no order", async () => {
    const reasons = [
      { order: INPUT, after: "c1.0" },
      { order: COMPLETION, after: "i1" },
      { order: INPUT, after: "i-1" },
      { order: COMPLETION, after: "x" },
      { order: ResultOrder.UNSPECIFIED, after: "" },
    ].map((request) => failureOf(operator.ask((run) => run.listResults(request))));
    for (const failure of await Promise.all(reasons)) expect(failure.code).to.equal("request_invalid");
  });

  describe("over damage are refused, naming the key", () => {
    async function refusedAt(order: ResultOrder): Promise<string | undefined> {
      const failure = await failureOf(operator.readAll(order));
      expect(failure.code).to.equal("store_corrupt");
      return failure.params["key"];
    }

    async function harm(prefix: string, at: number, value: "flipped" | "gone"): Promise<string> {
      const rows = await ledger.store.scan({ ...prefixRange(prefix), limit: 100 });
      const row = rows[at];
      if (row === undefined) throw new Error(`no row ${at} under ${prefix}`);
      const bytes = Buffer.from(row.value);
      bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
      const { key } = row;
      const batch = value === "gone" ? { deletes: [key] } : { puts: [{ key, value: bytes }] };
      await ledger.store.commit(batchOf(batch));
      return key;
    }

    beforeEach(async () => {
      await begin({ isChecked: false });
      await operator.submit(["a", "b", "c"]);
      for (const text of ["a", "b", "c"]) await worker.report(named(text));
      await ledger.seal();
      expect((await operator.ask((run) => run.getRun({}))).state).to.equal(RunState.COMPLETE);
    });

    for (const order of [INPUT, COMPLETION]) {
      for (const prefix of [DONE_PREFIX, ITEMS_PREFIX]) {
        it(`a flipped byte under ${prefix} (${nameOf(order)})`, async () => {
          expect(await refusedAtAfter(order, harm(prefix, 1, "flipped"))).to.equal(true);
        });
        it(`a row that is gone under ${prefix} (${nameOf(order)})`, async () => {
          await harm(prefix, 1, "gone");
          expect(await refusedAt(order)).to.be.a("string");
        });
      }
    }

    async function refusedAtAfter(order: ResultOrder, key: Promise<string>): Promise<boolean> {
      const harmed = await key;
      return (await refusedAt(order)) === harmed;
    }

    for (const order of [INPUT, COMPLETION])
      it(`a whole row that is another item's (${nameOf(order)})`, async () => {
        const [row] = await ledger.store.scan({ ...prefixRange(DONE_PREFIX), limit: 1 });
        if (row === undefined) return;
        const { key } = row;
        const record = okOrFailure("", decodeRecord(doneRecord, key, row.value));
        const value = encodeRecord(doneRecord, key, { ...record, id: Buffer.alloc(32, 9) });
        await ledger.store.commit(batchOf({ puts: [{ key, value }] }));
        expect(await refusedAt(order)).to.equal(key);
      });

    it("a record of completions that is gone", async () => {
      const key = await harm(COMPLETIONS_PREFIX, 1, "gone");
      expect(await refusedAt(COMPLETION)).to.equal(key);
    });
  });
});

/** Tells how many bytes each scan brings. */
class ReadWatch extends DelegatingStore {
  readonly #onRead: (bytes: number) => void;

  constructor(store: Store, onRead: (bytes: number) => void) {
    super(store);
    this.#onRead = onRead;
  }

  override async scan(range: Parameters<Store["scan"]>[0]): ReturnType<Store["scan"]> {
    const rows = await super.scan(range);
    this.#onRead(rows.reduce((sum, { value }) => sum + value.length, 0));
    return rows;
  }
}
