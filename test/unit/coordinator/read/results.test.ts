// Results as they are listed: in both orders, in pages, while the run goes on, across restarts, over damage.
import { expect } from "chai";
import fc from "fast-check";
import { ResultOrder, RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { doneRecord } from "../../../../src/coordinator/ledger/records.ts";
import { decodeRecord, encodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import { COMPLETIONS_PREFIX, DONE_PREFIX, ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { batchOf } from "../../../support/batch.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { WatchedStore } from "../../../support/watched-store.ts";
import { World } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ERROR, reportOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { seenRun } from "../../../support/worker-client.ts";

const { INPUT, COMPLETION } = ResultOrder;
const nameOf = (order: ResultOrder): string =>
  order === INPUT ? "in order of input" : "in order of completion";

describe("the results of a run", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;

  beforeEach(() => begin());

  async function begin(options: Parameters<typeof World.start>[0] = {}): Promise<void> {
    ledger = await World.start({ budgets: { maxAttempts: 1 }, ...options });
    operator = new WorldOperator(ledger);
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
      if (first === undefined || second === undefined) return expect.fail("they were given out");
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

    it(`are those of one version where that is asked for, page by page (${nameOf(order)})`, async () => {
      await operator.submit(["a", "b", "c", "d", "e"]);
      const by = (version: string): object => ({
        execution: { pluginVersion: version, startedAtWallMs: 0, durationMs: 0 },
      });
      const [a, b, c, d, e] = named("a", "b", "c", "d", "e").map((item) => reportOf(item));
      if (!a || !b || !c || !d || !e) return expect.fail("they were given out");
      await worker.send([
        { ...a, ...by("1") },
        { ...b, ...by("2") },
        { ...c, ...by("1") },
        { ...d, ...by("1"), outcome: ERROR },
        { ...e, ...by("2"), outcome: ERROR },
      ]);
      await ledger.seal();
      const read = async (pluginVersion: string, limit: number): Promise<string[]> => {
        const found: string[] = [];
        for (let after = "", end = false; !end;) {
          const page = await operator.ask((run) => run.listResults({ order, after, limit, pluginVersion }));
          found.push(
            ...page.results.map(
              ({ sequence, outcome }) =>
                `${sequence} ${outcome === OutcomeClass.SUCCESS ? "SUCCESS" : "ERROR"}`,
            ),
          );
          [after, end] = [page.after, page.end];
        }
        return found;
      };
      for (const limit of [1, 2, 10]) {
        expect(await read("1", limit)).to.deep.equal(["0 SUCCESS", "2 SUCCESS", "3 ERROR"]);
        expect(await read("2", limit)).to.deep.equal(["1 SUCCESS", "4 ERROR"]);
        expect(await read("3", limit)).to.deep.equal([]);
        expect(await read("", limit)).to.have.length(5);
      }
    });

    it(`come without payloads unless they are asked for (${nameOf(order)})`, async () => {
      await operator.submit(["a"]);
      await worker.report(worker.held);
      const { results } = await operator.ask((run) => run.listResults({ order }));
      expect(results.map(({ payload }) => payload.length)).to.deep.equal([0]);
    });

    it(`are waited for where none follows yet (${nameOf(order)})`, async () => {
      await operator.submit(["a", "b"]);
      const waiting = operator.ask((run) => run.listResults({ order, waitMs: 4_000 }));
      await eventually("it waits", () => operator.clock.armed > 0);
      await worker.report(named("a"));
      const { results, after, caughtUp } = await waiting;
      expect(results).to.have.length(1);
      expect(caughtUp).to.equal(true);
      const next = operator.ask((run) => run.listResults({ order, after, waitMs: 4_000 }));
      await eventually("it waits", () => operator.clock.armed > 0);
      await operator.clock.advance(3_999);
      expect(operator.clock.armed).to.equal(1);
      await operator.clock.advance(1);
      expect(await next).to.deep.include({ results: [], after, caughtUp: true, end: false });
    });

    it(`are not waited for when the run ends without another one (${nameOf(order)})`, async () => {
      await operator.submit(["a"]);
      await worker.report(named("a"));
      const { after } = await operator.ask((run) => run.listResults({ order }));
      const waiting = operator.ask((run) => run.listResults({ order, after, waitMs: 4_000 }));
      await eventually("it waits", () => operator.clock.armed > 0);
      await ledger.seal();
      expect(await waiting).to.deep.include({ results: [], end: true });
      expect(operator.clock.armed).to.equal(0);
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
      await worker.handBack(named("a"));
      // Taken back at once: it is asked for by nobody.
      await ledger.step({ kind: "pause", reason: "", answer: () => undefined });
      await worker.handBack(worker.held.filter(({ text }) => text === "a"));
      await operator.ask((run) => run.cancel({}));
      const { texts, last } = await operator.readAll(order);
      expect(texts).to.deep.equal(["b", "c"]);
      expect(last.end).to.equal(true);
    });
  }

  it("ask the reactor for nothing, once it has told how far they reach", async () => {
    await operator.submit(["a", "b"]);
    await worker.report(worker.held);
    const waiting = operator.ask((run) =>
      run.listResults({ order: COMPLETION, after: "c1.0", waitMs: 4_000 }),
    );
    await eventually("it waits", () => operator.clock.armed > 0);
    await ledger.seal();
    expect(await waiting).to.deep.include({ results: [], end: true });
    expect((await operator.readAll(INPUT)).texts).to.deep.equal(["a", "b"]);
    expect(operator.pushed).to.not.include("getExtent");
  });

  it("in order of input are waited for until the first of them comes, whatever else becomes final", async () => {
    await operator.submit(["a", "b", "c"]);
    const waiting = operator.ask((run) => run.listResults({ order: INPUT, waitMs: 4_000 }));
    await eventually("it waits", () => operator.clock.armed > 0);
    await worker.report(named("b"));
    await worker.report(named("a"));
    await operator.clock.advance(1_000);
    expect((await waiting).results.map(({ sequence }) => sequence)).to.deep.equal([0n, 1n]);
  });

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
    const store = new WatchedStore(ledger.store);
    const watching = new WorldOperator(ledger, store);
    for (const order of [INPUT, COMPLETION]) {
      const { pages, texts: found } = await watching.readAll(order);
      expect(found).to.deep.equal(texts);
      for (const { results } of pages) {
        const bytes = results.reduce((sum, { output, payload }) => sum + output.length + payload.length, 0);
        expect(bytes).to.be.at.most(2 * 2 ** 20);
      }
    }
    expect(store.largestBytes).to.be.at.most(600_000);
  });

  it("of some size are all read where failures stand between them", async () => {
    const texts = Array.from({ length: 24 }, (_, at) => `${at} ${"x".repeat(100_000)}`);
    await begin({ isChecked: false });
    await operator.submit(texts);
    const isThird = (item: HeldItem): boolean => texts.indexOf(item.text) % 3 === 0;
    const [failing, others] = [worker.held.filter(isThird), worker.held.filter((item) => !isThird(item))];
    await worker.report(failing, { ...ERROR, response: Buffer.alloc(100_000) });
    await worker.report(others);
    expect((await operator.readAll(INPUT)).texts).to.deep.equal(texts);
    const completed = [...failing, ...others].map(({ text }) => text);
    expect((await operator.readAll(COMPLETION)).texts).to.deep.equal(completed);
  });

  for (const order of [INPUT, COMPLETION])
    for (const together of [30, 1])
      it(`are read many at a time, ${together} of which became final at once (${nameOf(order)})`, async () => {
        const texts = Array.from({ length: 60 }, (_, at) => `${at}`);
        await operator.submit(texts);
        while (worker.held.length > 30) await worker.report(worker.held.slice(0, together));
        while (worker.held.length > 0) await worker.report(worker.held.slice(0, together), ERROR);
        const store = new WatchedStore(ledger.store);
        const { texts: found } = await new WorldOperator(ledger, store).readAll(order);
        expect(found).to.deep.equal(texts);
        // Two readings of three kinds of rows, and the records of what became final when.
        expect(store.readings).to.be.at.most(7);
      });

  it("that somebody follows one by one are looked up by their keys, which a store that has just written them knows", async () => {
    await operator.submit(["a"]);
    await worker.report(worker.held);
    const store = new WatchedStore(ledger.store);
    const { texts } = await new WorldOperator(ledger, store).readAll(COMPLETION);
    expect([texts, store.gets, store.lookUps, store.scans.length]).to.deep.equal([["a"], 1, 1, 0]);
  });

  it("that became final far apart are looked up, not all that lie between them", async () => {
    await begin({ isChecked: false });
    await worker.ask(1_000);
    const texts = Array.from({ length: 400 }, (_, at) => `${at}`);
    await operator.submit(texts);
    await worker.report(worker.held.filter((_, at) => at % 100 === 0));
    const store = new WatchedStore(ledger.store);
    const { texts: found } = await new WorldOperator(ledger, store).readAll(COMPLETION);
    expect(found).to.deep.equal(["0", "100", "200", "300"]);
    expect([store.gets, store.lookUps, store.scans.length]).to.deep.equal([1, 1, 0]);
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

    beforeEach(async () => {
      await begin({ isChecked: false });
      await operator.submit(["a", "b", "c"]);
      for (const text of ["a", "b", "c"]) await worker.report(named(text));
      await ledger.seal();
      expect((await operator.ask((run) => seenRun(run))).state).to.equal(RunState.COMPLETE);
    });

    for (const order of [INPUT, COMPLETION]) {
      for (const prefix of [DONE_PREFIX, ITEMS_PREFIX]) {
        it(`a flipped byte under ${prefix} (${nameOf(order)})`, async () => {
          const key = await ledger.damage(prefix, 1);
          expect(await refusedAt(order)).to.equal(key);
        });
        it(`a row that is gone under ${prefix} (${nameOf(order)})`, async () => {
          await ledger.damage(prefix, 1, "gone");
          expect(await refusedAt(order)).to.be.a("string");
        });
      }
    }

    for (const order of [INPUT, COMPLETION])
      it(`a whole row that is another item's (${nameOf(order)})`, async () => {
        const [row] = await ledger.store.scan({ ...prefixRange(DONE_PREFIX), limit: 1 });
        if (row === undefined) return expect.fail("there is no result");
        const { key } = row;
        const record = okOrFailure("", decodeRecord(doneRecord, key, row.value));
        const value = encodeRecord(doneRecord, key, { ...record, id: Buffer.alloc(32, 9) });
        await ledger.store.commit(batchOf({ puts: [{ key, value }] }));
        expect(await refusedAt(order)).to.equal(key);
      });

    it("a record of completions that is gone", async () => {
      const key = await ledger.damage(COMPLETIONS_PREFIX, 1, "gone");
      expect(await refusedAt(COMPLETION)).to.equal(key);
    });
  });
});
