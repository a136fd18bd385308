import { expect } from "chai";
import { failure } from "../../../../src/base/errors.ts";
import type { Result, ResultBatch } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { OUTBOX_PREFIX } from "../../../../src/storage/keys.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Entry, Store } from "../../../../src/storage/store.ts";
import { prefixRange } from "../../../../src/storage/store.ts";
import type { Ending, Finished } from "../../../../src/worker/work/execution.ts";
import type { OutboxOptions } from "../../../../src/worker/work/outbox.ts";
import { Outbox } from "../../../../src/worker/work/outbox.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { HeldStore } from "../../../support/held-store.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { WatchedStore } from "../../../support/watched-store.ts";

describe("the outbox", () => {
  let clock: VirtualClock;
  let batches: number;
  let fatal: unknown[];

  beforeEach(() => {
    clock = new VirtualClock();
    batches = 0;
    fatal = [];
  });

  function open(store: Store, options: Partial<OutboxOptions> = {}): Promise<Outbox> {
    return Outbox.open({
      store,
      incarnation: incarnationId(1),
      clock,
      maxUnackedResults: 100,
      maxUnackedBytes: 1_000_000,
      onBatch: () => batches++,
      onFatal: (error) => void fatal.push(error),
      ...options,
    });
  }

  /** The end of item `number`: a success with its number for output, unless `outcome` says otherwise. */
  function end(number: number, outcome?: Ending, ...checkpoint: number[]): Finished {
    return {
      assigned: assignedItem(number),
      outcome: outcome ?? { kind: "success", output: Uint8Array.of(number) },
      checkpoint: Uint8Array.from(checkpoint),
      outputDigest: Uint8Array.of(0xd1, number),
      pluginVersion: "7",
      startedAtMs: 1_000.4,
      durationMs: 25.3,
      log: Buffer.from(`says ${number}`),
    };
  }

  /** As long as results gather, or what is to be deleted waits for some. */
  const moment = (): Promise<void> => clock.advance(10);
  const itemsOf = (batch: ResultBatch | undefined): number[] | undefined =>
    batch?.results.map(({ attempt }) => attempt?.itemId[0] ?? -1);
  const stored = (store: Store): Promise<Entry[]> =>
    store.scan({ ...prefixRange(OUTBOX_PREFIX), limit: 100 });

  it("says of an output that the coordinator would not take that it is too large, and keeps what it has", async () => {
    const outbox = await open(new MemoryStore());
    outbox.add(end(1, { kind: "success", output: new Uint8Array(2_000) }));
    outbox.add(end(2));
    await clock.advance();
    const [large, small] = outbox.next(0, 1_999)?.results ?? [];
    expect(large).to.deep.include({
      outcome: OutcomeClass.TOO_LARGE,
      output: new Uint8Array(),
      outputDigest: new Uint8Array(),
      errorMessage: "the output is 2000 bytes; the limit is 1999 (limits.output of the coordinator)",
    });
    expect([large?.attempt?.itemId[0], large?.pluginVersion]).to.deep.equal([1, "7"]);
    expect(small?.outcome).to.equal(OutcomeClass.SUCCESS);
    expect(outbox.next(0, 2_000)?.results[0]?.output).to.have.length(2_000);
  });

  it("has a batch to send only when it is synced, with what ended in the same turn in one", async () => {
    const store = new HeldStore();
    const outbox = await open(store);
    outbox.add(end(1));
    outbox.add(end(2));
    await clock.advance();
    expect([outbox.next(0), store.batches.map(({ durability }) => durability)]).to.deep.equal([
      undefined,
      ["sync"],
    ]);
    outbox.add(end(3));
    await clock.advance();
    expect(store.held).to.equal(1);
    await store.release();
    await clock.advance();
    expect([itemsOf(outbox.next(0)), outbox.next(1), batches]).to.deep.equal([[1, 2], undefined, 1]);
    await store.release();
    await clock.advance();
    expect([itemsOf(outbox.next(1)), outbox.next(1)?.number, batches]).to.deep.equal([[3], 2n, 2]);
  });

  it("says of each result all that the coordinator matches it by", async () => {
    const outbox = await open(new MemoryStore());
    outbox.add(end(1));
    outbox.add(end(2, { kind: "error", message: "no", response: Uint8Array.of(4, 0) }));
    outbox.add(end(3, { kind: "preempted" }, 7));
    outbox.add(end(4, { kind: "timeout", message: "too long" }, 8));
    await clock.advance();
    const results = outbox.next(0)?.results ?? [];
    expect(results.map(plain)).to.deep.equal([
      { ...plainResult(1), outcome: OutcomeClass.SUCCESS, output: [1] },
      { ...plainResult(2), outcome: OutcomeClass.ERROR, message: "no", response: [4, 0] },
      { ...plainResult(3), outcome: OutcomeClass.PREEMPTED, checkpoint: [7] },
      { ...plainResult(4), outcome: OutcomeClass.TIMEOUT, message: "too long", checkpoint: [8] },
    ]);
  });

  it("says what people want to know of it: by what, when, how long, and what it wrote", async () => {
    const outbox = await open(new MemoryStore());
    outbox.add(end(1));
    await clock.advance();
    const [result] = outbox.next(0)?.results ?? [];
    expect([result?.pluginVersion, result?.startedAtMs, result?.durationMs]).to.deep.equal([
      "7",
      1_000n,
      25n,
    ]);
    expect(Buffer.from(result?.log ?? []).toString()).to.equal("says 1");
  });

  it("keeps a batch until it is acknowledged, and then not even on the disk", async () => {
    const store = new MemoryStore();
    const outbox = await open(store);
    outbox.add(end(1));
    await clock.advance();
    outbox.add(end(2));
    await clock.advance();
    expect([itemsOf(outbox.next(0)), itemsOf(outbox.next(0)), itemsOf(outbox.next(1))]).to.deep.equal([
      [1],
      [1],
      [2],
    ]);
    expect(outbox.acknowledge(1)).to.equal(true);
    await moment();
    expect([itemsOf(outbox.next(0)), (await stored(store)).length]).to.deep.equal([[2], 1]);
    expect(outbox.acknowledge(1)).to.equal(true);
    expect(outbox.acknowledge(2)).to.equal(true);
    await moment();
    expect([outbox.next(0), await stored(store), [...outbox.finished]]).to.deep.equal([undefined, [], []]);
    outbox.add(end(3));
    await clock.advance();
    expect(outbox.next(2)?.number).to.equal(3n);
  });

  it("gathers results while two batches are on their way, until one of them is acknowledged, and deletes with the next", async () => {
    const store = new WatchedStore(new MemoryStore());
    const outbox = await open(store);
    for (let number = 1; number <= 6; number++) {
      outbox.add(end(number));
      await clock.advance();
    }
    expect([1, 2, 3].map((number) => itemsOf(outbox.next(number - 1)))).to.deep.equal([[1], [2], undefined]);
    outbox.acknowledge(1);
    await clock.advance();
    expect([itemsOf(outbox.next(2)), batches]).to.deep.equal([[3, 4, 5, 6], 3]);
    expect(store.commits.map(({ puts, deletes }) => [puts.length, deletes.length])).to.deep.equal([
      [1, 0],
      [1, 0],
      [1, 1],
    ]);
  });

  it("gathers no longer than a moment while nobody acknowledges, and not at all for a full batch or its end", async () => {
    const outbox = await open(new MemoryStore(), { maxUnackedResults: 10_000 });
    for (let number = 1; number <= 3; number++) {
      outbox.add(end(number));
      await clock.advance();
    }
    expect(itemsOf(outbox.next(2))).to.equal(undefined);
    await moment();
    expect(itemsOf(outbox.next(2))).to.deep.equal([3]);
    for (let number = 0; number < 1_024; number++) outbox.add(end(number % 256));
    await clock.advance();
    expect(outbox.next(3)?.results.length).to.equal(1_024);
    outbox.add(end(4));
    await clock.advance();
    expect(itemsOf(outbox.next(4))).to.equal(undefined);
    const closed = outbox.close();
    await clock.advance();
    await closed;
    expect([itemsOf(outbox.next(4)), clock.armed]).to.deep.equal([[4], 0]);
  });

  describe("where more items wait behind those that execute", () => {
    let waiting: boolean;
    let outbox: Outbox;

    beforeEach(async () => {
      waiting = true;
      outbox = await open(new MemoryStore(), { mayFollow: () => waiting });
    });

    /** Another end, so long after the one before; then what can be sent at once is. */
    async function endAfter(pauseMs: number, number: number, took?: Partial<Finished>): Promise<void> {
      await clock.advance(pauseMs);
      outbox.add({ ...end(number), ...took });
      await clock.advance();
    }

    const keyed = (number: number): Finished["assigned"] =>
      assignedItem(number, { keyed: { key: "k", commit: 1n, state: undefined, origin: undefined } });
    const sent = (): (number[] | undefined)[] =>
      Array.from({ length: batches }, (_, at) => itemsOf(outbox.next(at)));

    it("sends the first end at once, and gathers those that follow it quickly for a while", async () => {
      for (const number of [1, 2, 3, 4]) await endAfter(10, number);
      expect(sent()).to.deep.equal([[1]]);
      await clock.advance(179);
      expect(sent()).to.deep.equal([[1]]);
      await clock.advance(1);
      expect(sent()).to.deep.equal([[1], [2, 3, 4]]);
    });

    it("gathers for less long what the next item of a key waits for, with all that has gathered", async () => {
      for (const number of [1, 2]) await endAfter(10, number);
      await endAfter(10, 3, { assigned: keyed(3) });
      await clock.advance(39);
      expect(sent()).to.deep.equal([[1]]);
      await clock.advance(1);
      expect(sent()).to.deep.equal([[1], [2, 3]]);
      outbox.acknowledge(2);
      for (const number of [4, 5, 6]) await endAfter(10, number);
      await clock.advance(189);
      expect(itemsOf(outbox.next(3))).to.equal(undefined);
      await clock.advance(1);
      expect([2, 3].map((at) => itemsOf(outbox.next(at)))).to.deep.equal([[4], [5, 6]]);
    });

    it("gathers no longer than until there are some", async () => {
      for (let number = 1; number <= 129; number++) await endAfter(1, number);
      expect(sent().map((batch) => batch?.length)).to.deep.equal([1, 128]);
    });

    it("sends ends that are far between at once, and what took long with all that has gathered", async () => {
      for (const number of [1, 2]) {
        await endAfter(60, number);
        expect(itemsOf(outbox.next(number - 1))).to.deep.equal([number]);
        outbox.acknowledge(number);
      }
      await endAfter(10, 3);
      expect(outbox.next(2)).to.equal(undefined);
      await endAfter(1, 4, { durationMs: 60_000 });
      expect(itemsOf(outbox.next(2))).to.deep.equal([3, 4]);
    });

    it("sends the last ends at once: nothing waits any more", async () => {
      for (const number of [1, 2]) await endAfter(10, number);
      waiting = false;
      await endAfter(1, 3);
      expect(sent()).to.deep.equal([[1], [2, 3]]);
    });

    it("goes on gathering when a batch before is acknowledged, and deletes that one with the next", async () => {
      const store = new WatchedStore(new MemoryStore());
      outbox = await open(store, { mayFollow: () => true });
      await endAfter(10, 1);
      outbox.acknowledge(1);
      await endAfter(5, 2);
      await endAfter(30, 3);
      expect(outbox.next(1)).to.equal(undefined);
      await clock.advance(170);
      expect(itemsOf(outbox.next(1))).to.deep.equal([2, 3]);
      expect(store.commits.map(({ puts, deletes }) => [puts.length, deletes.length])).to.deep.equal([
        [1, 0],
        [1, 1],
      ]);
    });
  });

  it("knows an acknowledgement of what was never sent", async () => {
    const outbox = await open(new MemoryStore());
    expect([outbox.acknowledge(0), outbox.acknowledge(1)]).to.deep.equal([true, false]);
  });

  it("delivers after a restart what an earlier process could not, as that one's, and before its own", async () => {
    const store = new MemoryStore();
    const first = await open(store);
    for (const number of [1, 2]) {
      first.add(end(number));
      await clock.advance();
    }
    first.acknowledge(1);
    await moment();

    const second = await open(store, { incarnation: incarnationId(2) });
    expect(
      [...second.finished].map(({ itemId: [number], attempt, epoch }) => [number, attempt, epoch]),
    ).to.deep.equal([[2, 1, 1n]]);
    const [old] = second.next(0)?.results ?? [];
    expect(old && plain(old)).to.deep.include({ item: 2, incarnation: [...ulidToBytes(incarnationId(1))] });
    second.add(end(3));
    await clock.advance();
    expect([second.next(0)?.number, itemsOf(second.next(0)), itemsOf(second.next(1))]).to.deep.equal([
      1n,
      [2],
      [3],
    ]);

    const third = await open(store, { incarnation: incarnationId(3) });
    expect([itemsOf(third.next(0)), itemsOf(third.next(1))]).to.deep.equal([[2], [3]]);
    third.acknowledge(2);
    await moment();
    expect(await stored(store)).to.deep.equal([]);
  });

  it("says after a restart which version the assignment named of what an earlier process has finished", async () => {
    const store = new MemoryStore();
    const first = await open(store);
    first.add({ ...end(1), assigned: { ...assignedItem(1), version: "7" } });
    first.add(end(2));
    await clock.advance();
    const second = await open(store, { incarnation: incarnationId(2) });
    expect([...first.finished, ...second.finished].map(({ version }) => version)).to.deep.equal([
      "7",
      "",
      "7",
      "",
    ]);
  });

  it("says which record of an earlier process is damaged", async () => {
    const store = new MemoryStore();
    const outbox = await open(store);
    outbox.add(end(1));
    await clock.advance();
    const [{ key, value } = { key: "", value: new Uint8Array() }] = await stored(store);
    const damaged = value.with(value.length - 1, (value.at(-1) ?? 0) ^ 1);
    const failed = await failureOf(open(new MemoryStore([{ key, value: damaged }])));
    expect([failed.code, failed.params["key"]]).to.deep.equal(["store_corrupt", key]);
  });

  it("splits what does not fit in a frame, and sends what is larger alone", async () => {
    const outbox = await open(new MemoryStore(), { maxUnackedBytes: 2 ** 30 });
    const large = (number: number, bytes: number): Finished =>
      end(number, { kind: "success", output: new Uint8Array(bytes) });
    for (const one of [large(1, 600_000), large(2, 600_000), large(3, 2_000_000), large(4, 1)])
      outbox.add(one);
    for (let number = 0; number < 1_025; number++) outbox.add(end(number % 256));
    await moment();
    const sizes = Array.from({ length: 6 }, (_, at) => outbox.next(at)?.results.length);
    expect(sizes).to.deep.equal([1, 1, 1, 1_024, 2, undefined]);
  });

  it("is full by number or by bytes, on the disk or not, until enough is acknowledged", async () => {
    const store = new HeldStore();
    const byNumber = await open(store, { maxUnackedResults: 2 });
    byNumber.add(end(1));
    expect(byNumber.isFull).to.equal(false);
    byNumber.add(end(2));
    expect(byNumber.isFull).to.equal(true);
    await clock.advance();
    await store.release();
    await clock.advance();
    expect(byNumber.isFull).to.equal(true);
    byNumber.acknowledge(1);
    expect(byNumber.isFull).to.equal(false);

    const byBytes = await open(new MemoryStore(), { maxUnackedBytes: 1_000 });
    byBytes.add(end(1, { kind: "success", output: new Uint8Array(900) }));
    expect(byBytes.isFull).to.equal(true);
    const restored = await open(store.inner, { maxUnackedResults: 2 });
    expect(restored.isFull).to.equal(true);
  });

  it("leaves out what the coordinator does not want, and counts the batch all the same", async () => {
    const outbox = await open(new MemoryStore());
    outbox.add(end(1));
    outbox.add(end(2));
    outbox.drop(assignedItem(1).key);
    outbox.drop(assignedItem(9).key);
    await clock.advance();
    expect(itemsOf(outbox.next(0))).to.deep.equal([2]);
    outbox.drop(assignedItem(2).key);
    expect([itemsOf(outbox.next(0)), outbox.next(0)?.number]).to.deep.equal([[], 1n]);
    expect(outbox.acknowledge(1)).to.equal(true);
    outbox.add(end(1));
    await clock.advance();
    expect(itemsOf(outbox.next(1))).to.deep.equal([1]);
  });

  it("is flushed when everything is acknowledged, and at once when there is nothing", async () => {
    const outbox = await open(new MemoryStore());
    await outbox.flushed();
    outbox.add(end(1));
    let flushed = false;
    void outbox.flushed().then(() => (flushed = true));
    await clock.advance();
    expect(flushed).to.equal(false);
    outbox.acknowledge(1);
    await clock.advance();
    expect(flushed).to.equal(true);
  });

  it("ends the process when the store breaks, and sends nothing that may not be on the disk", async () => {
    const store = new HeldStore();
    const outbox = await open(store);
    outbox.add(end(1));
    await clock.advance();
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    store.answer({ kind: "unknown", cause });
    await clock.advance();
    outbox.add(end(2));
    await clock.advance();
    await outbox.close();
    expect([fatal, outbox.next(0), store.held]).to.deep.equal([[cause], undefined, 0]);
  });
});

interface PlainResult {
  readonly item: number;
  readonly attempt: number;
  readonly epoch: number;
  readonly incarnation: readonly number[];
  readonly digest: readonly number[];
  readonly outcome: OutcomeClass;
  readonly output: readonly number[];
  readonly message: string;
  readonly response: readonly number[];
  readonly checkpoint: readonly number[];
}

function plain(result: Result): PlainResult {
  return {
    item: result.attempt?.itemId[0] ?? -1,
    attempt: result.attempt?.attempt ?? -1,
    epoch: Number(result.epoch),
    incarnation: [...result.incarnation],
    digest: [...result.outputDigest],
    outcome: result.outcome,
    output: [...result.output],
    message: result.errorMessage,
    response: [...result.response],
    checkpoint: [...result.checkpoint],
  };
}

function plainResult(item: number): PlainResult {
  return {
    item,
    attempt: 1,
    epoch: 1,
    incarnation: [...ulidToBytes(incarnationId(1))],
    digest: [0xd1, item],
    outcome: OutcomeClass.UNSPECIFIED,
    output: [],
    message: "",
    response: [],
    checkpoint: [],
  };
}
