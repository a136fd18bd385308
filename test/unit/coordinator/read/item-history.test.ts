// The history of an item: its attempts, their logs, its checkpoint; and how an operator finds it.
import { expect } from "chai";
import type { Report } from "../../../../src/coordinator/turn/session-frame.ts";
import type { GetItemResponse, Item } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { ItemState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { ATTEMPT_LOGS_PREFIX, ATTEMPTS_PREFIX, CHECKPOINTS_PREFIX } from "../../../../src/storage/keys.ts";
import { TASK_DIGEST, World } from "../../../support/world.ts";
import { hexOf, WorldOperator } from "../../../support/world-operator.ts";
import { ERROR, reportOf, workerId } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { failureOf } from "../../../support/rejection.ts";

const FAILURE_MS = 6_250;
const BACKOFF_MS = 61_000;
const PREEMPTED = { kind: "preempted" } as const;

describe("what is remembered of an item", () => {
  let ledger: World;
  let operator: WorldOperator;
  let worker: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start();
    operator = new WorldOperator(ledger);
    worker = await ledger.worker(1, { slots: 1, credit: 1 });
  });

  const ask = (name: string): Promise<GetItemResponse> => operator.ask((run) => run.getItem({ name }));
  const get = async (name: string): Promise<Item> => {
    const { item } = await ask(name);
    if (item === undefined) throw new Error("an answer without the item");
    return item;
  };
  const log = async (text: string, attempt = 0): Promise<[number, string]> => {
    const found = await operator.ask((run) => run.getAttemptLog({ item: hexOf(text), attempt }));
    return [found.attempt, Buffer.from(found.log).toString()];
  };

  /** The one item that is held ends like this. */
  async function end(parts: Partial<Report> = {}): Promise<void> {
    const [item] = worker.held;
    if (item === undefined) throw new Error("nothing is held");
    await worker.send([{ ...reportOf(item), ...parts }]);
    worker.forget([item]);
    await ledger.settle();
  }

  describe("of its attempts", () => {
    it("is nothing beside the result when the first succeeds", async () => {
      await operator.submit(["a"]);
      await end({ log: new Uint8Array() });
      expect([
        await ledger.countUnder(ATTEMPTS_PREFIX),
        await ledger.countUnder(ATTEMPT_LOGS_PREFIX),
      ]).to.deep.equal([0, 0]);
      expect(ledger.written.deletes.filter((key) => key.startsWith(CHECKPOINTS_PREFIX))).to.deep.equal([]);
      const { attempts } = await get(hexOf("a"));
      expect(attempts.map(({ attempt, outcome }) => [attempt, outcome])).to.deep.equal([
        [1, OutcomeClass.SUCCESS],
      ]);
    });

    it("is how each ended, by whom, when and where", async () => {
      await operator.submit(["a"]);
      const execution = { pluginVersion: "7", startedAtWallMs: 11, durationMs: 12 };
      await end({ outcome: ERROR, execution, log: Buffer.from("oh") });
      const endedAtMs = ledger.wallMs;
      await ledger.watch(BACKOFF_MS, [worker]);
      await worker.ask(1);
      const { attempts, charged, maxAttempts, attempt } = await get(hexOf("a"));
      expect([charged, maxAttempts, attempt]).to.deep.equal([1, 3, 2]);
      expect(attempts).to.have.length(1);
      expect(attempts[0]).to.deep.include({
        ...{ attempt: 1, outcome: OutcomeClass.ERROR, message: "it broke", endedAtMs },
        ...{ startedAtMs: 11, durationMs: 12, logBytes: 2, pluginVersion: "7" },
      });
      expect(attempts[0]?.worker).to.equal(workerId(1));
    });

    it("is also those that nobody reported: lost, handed back, given up", async () => {
      await operator.submit(["a"]);
      await ledger.watch(FAILURE_MS);
      await worker.rejoin([]);
      await worker.ask(1);
      await worker.handBack([...worker.held]);
      await worker.hello([]);
      await worker.ask(1);
      await end({ outcome: PREEMPTED });
      const { attempts } = await get(hexOf("a"));
      expect(attempts.map(({ outcome }) => outcome)).to.deep.equal([
        OutcomeClass.LOST,
        OutcomeClass.PREEMPTED,
        OutcomeClass.PREEMPTED,
      ]);
      expect(attempts[0]?.message).to.equal("its worker fell silent while running it");
    });

    it("is the last sixteen, oldest first", async () => {
      await operator.submit(["a"]);
      for (let attempt = 1; attempt <= 20; attempt++) {
        if (worker.held.length === 0) {
          await ledger.watch(BACKOFF_MS, [worker]);
          await worker.ask(1);
        }
        await end({ outcome: PREEMPTED, log: Buffer.from(`log ${attempt}`) });
      }
      const { attempts } = await get(hexOf("a"));
      expect(attempts.map(({ attempt }) => attempt)).to.deep.equal(
        Array.from({ length: 16 }, (_, at) => at + 5),
      );
      expect(await ledger.countUnder(ATTEMPTS_PREFIX)).to.equal(16);
      expect(await log("a", 4)).to.deep.equal([4, ""]);
      expect(await log("a", 5)).to.deep.equal([5, "log 5"]);
      expect(await log("a")).to.deep.equal([20, "log 20"]);
    });

    it("is what each wrote to its standard error, successes too", async () => {
      await operator.submit(["a"]);
      await end({ outcome: PREEMPTED, log: Buffer.from("first") });
      await worker.ask(1);
      await end({ log: Buffer.from("second") });
      expect(await log("a", 1)).to.deep.equal([1, "first"]);
      expect(await log("a")).to.deep.equal([2, "second"]);
      const { attempts } = await get(hexOf("a"));
      expect(attempts.map(({ logBytes }) => logBytes)).to.deep.equal([5, 6]);
    });

    it("is nothing of a report that is not current", async () => {
      await operator.submit(["a"]);
      const [item] = worker.held;
      if (item === undefined) return expect.fail("it was given out");
      await end();
      await worker.send([{ ...reportOf(item, ERROR), log: Buffer.from("late") }]);
      await ledger.settle();
      expect(await log("a")).to.deep.equal([0, ""]);
      expect(await ledger.countUnder(ATTEMPTS_PREFIX)).to.equal(0);
    });
  });

  describe("its checkpoint", () => {
    const checkpoint = Buffer.from("half way");
    const given = (): string[] => worker.held.map((item) => Buffer.from(item.checkpoint ?? []).toString());

    it("is given with the next attempt, also by another leader", async () => {
      await operator.submit(["a"]);
      expect(given()).to.deep.equal([""]);
      await end({ outcome: PREEMPTED, checkpoint });
      expect((await get(hexOf("a"))).checkpointBytes).to.equal(8);
      await ledger.lead();
      await worker.rejoin([]);
      await worker.ask(1);
      expect(given()).to.deep.equal(["half way"]);
    });

    it("stays when a later attempt leaves none, and is replaced when it leaves one", async () => {
      await operator.submit(["a"]);
      await end({ outcome: PREEMPTED, checkpoint });
      await worker.ask(1);
      await end({ outcome: ERROR });
      await ledger.watch(BACKOFF_MS, [worker]);
      await worker.ask(1);
      expect(given()).to.deep.equal(["half way"]);
      await end({ outcome: PREEMPTED, checkpoint: Buffer.from("nearly") });
      await worker.ask(1);
      expect(given()).to.deep.equal(["nearly"]);
    });

    it("is gone when the item is done", async () => {
      await operator.submit(["a"]);
      await end({ outcome: PREEMPTED, checkpoint });
      await worker.ask(1);
      await end({ checkpoint });
      expect(await ledger.countUnder(CHECKPOINTS_PREFIX)).to.equal(0);
    });

    for (const kind of ["error", "timeout", "crash", "crash_shared"] as const)
      it(`is given with the next attempt also after one that ends as ${kind}`, async () => {
        await operator.submit(["a"]);
        await end({ outcome: { kind, message: "" }, checkpoint });
        await ledger.watch(BACKOFF_MS, [worker]);
        await worker.ask(1);
        expect(given()).to.deep.equal(["half way"]);
      });

    it("stays with an item that failed, for an operator who takes it back, until it is done", async () => {
      await operator.submit(["a"]);
      await end({ outcome: { kind: "too_large", message: "" }, checkpoint });
      expect(await get(hexOf("a"))).to.deep.include({ state: ItemState.FAILED, checkpointBytes: 8 });
      await operator.ask((run) => run.retry({ items: [hexOf("a")] }));
      await worker.ask(1);
      expect(given()).to.deep.equal(["half way"]);
      await end();
      expect(await ledger.countUnder(CHECKPOINTS_PREFIX)).to.equal(0);
    });

    it("is gone when a late result makes the item done", async () => {
      await operator.submit(["a"]);
      const [item] = worker.held;
      if (item === undefined) return expect.fail("it was given out");
      await end({ outcome: PREEMPTED, checkpoint });
      await worker.send([{ ...reportOf(item), log: Buffer.from("late") }]);
      await ledger.settle();
      expect((await get(hexOf("a"))).state).to.equal(ItemState.DONE);
      expect(await ledger.countUnder(CHECKPOINTS_PREFIX)).to.equal(0);
      expect(await log("a")).to.deep.equal([1, "late"]);
    });

    it("weighs in the window that it waits in", async () => {
      const large = Buffer.alloc(2 ** 20);
      await operator.submit(["a"]);
      await end({ outcome: PREEMPTED, checkpoint: large });
      expect(ledger.state.ledger.returned.peek()?.weight).to.be.above(large.length);
    });
  });

  describe("where it stands:", () => {
    it("never given out, with how many before it", async () => {
      await operator.submit(["a", "b", "c", "d"]);
      const fresh = await get(hexOf("d"));
      expect(fresh).to.deep.include({ state: ItemState.FRESH, attempt: 0, ahead: 2, sequence: 3 });
      await operator.submit(["urgent", "more urgent"], { priority: 9 });
      expect(await get(hexOf("d"))).to.deep.include({ ahead: 4, priority: 0 });
      expect(await get(hexOf("more urgent"))).to.deep.include({ ahead: 1, priority: 9 });
      await worker.handBack([...worker.held]);
      expect(await get(hexOf("d"))).to.deep.include({ ahead: 5 });
    });

    it("given back, waiting, running, done and failed", async () => {
      await operator.submit(["a"]);
      const running = await get(hexOf("a"));
      expect(running).to.deep.include({ state: ItemState.RUNNING, attempt: 1 });
      expect((await ask(hexOf("a"))).assignedAgeMs).to.equal(0);
      expect(running.worker).to.equal(workerId(1));
      await end({ outcome: PREEMPTED });
      expect(await get(hexOf("a"))).to.deep.include({ state: ItemState.RETURNED, attempt: 1, ahead: 0 });
      await worker.ask(1);
      await end({ outcome: ERROR });
      const delayed = await get(hexOf("a"));
      expect(delayed).to.deep.include({ state: ItemState.DELAYED, charged: 1 });
      expect(delayed.ahead).to.equal(undefined);
      expect(delayed.dueAtMs).to.be.above(ledger.wallMs);
      await ledger.watch(BACKOFF_MS, [worker]);
      await worker.ask(1);
      await end({ outcome: { kind: "too_large", message: "why" } });
      const failed = await get(hexOf("a"));
      expect(failed).to.deep.include({ state: ItemState.FAILED, attempt: 3, charged: 1 });
      expect(failed.error).to.include({ class: "too_large", message: "why" });
      expect((await ask(hexOf("a"))).result).to.deep.include({
        failureClass: "too_large",
        errorMessage: "why",
      });
    });

    it("with a worker that an earlier leader gave it to: for how long is not known", async () => {
      await operator.submit(["a"]);
      await ledger.lead();
      const { item, assignedAgeMs } = await ask(hexOf("a"));
      expect([item?.state, assignedAgeMs]).to.deep.equal([ItemState.RUNNING, undefined]);
    });
  });

  describe("under the name of", () => {
    beforeEach(() => operator.submit(["a", "b"], { isLabelled: true }));

    it("its id, in any case, and the first digits of it", async () => {
      for (const name of [
        hexOf("a"),
        hexOf("a").toUpperCase(),
        ...[6, 7, 8, 9, 63].map((n) => hexOf("a").slice(0, n)),
      ])
        expect((await get(name)).item, name).to.equal(hexOf("a"));
    });

    it("the label that its input gave it", async () => {
      const { item, payload } = await ask("label of b");
      expect(item).to.include({ id: "label of b", sequence: 1 });
      expect(Buffer.from(payload).toString()).to.equal("b");
    });

    it("nothing else", async () => {
      for (const name of ["label of c", "label", "abcdef", hexOf("a").slice(0, 5), hexOf("z")]) {
        const failure = await failureOf(get(name));
        expect([failure.code, failure.params["name"]]).to.deep.equal(["item_unknown", name]);
      }
      expect((await failureOf(get(""))).code).to.equal("request_invalid");
    });

    it("a label that several have: which, is said", async () => {
      await operator.submit(["a"], { isLabelled: true });
      const items = ["x", "y"].map((text) => ({ payload: Buffer.from(text), label: "twin" }));
      const submissionId = new Uint8Array(16).fill(9);
      await operator.ask((run) =>
        run.submit({ submissionId, batchNumber: 1n, taskDigest: TASK_DIGEST, items }),
      );
      const failure = await failureOf(get("twin"));
      expect(failure.code).to.equal("item_ambiguous");
      for (const text of ["x", "y"]) expect(failure.params["items"]).to.include(hexOf(text).slice(0, 16));
    });

    it("a number: the label before the beginning of an id", async () => {
      const digits = await itemWithNumber();
      const submissionId = new Uint8Array(16).fill(8);
      const items = [{ payload: Buffer.from("labelled"), label: digits }];
      await operator.ask((run) =>
        run.submit({ submissionId, batchNumber: 1n, taskDigest: TASK_DIGEST, items }),
      );
      expect((await get(digits)).id).to.equal(digits);
    });

    /** Submits an item whose id begins with six decimal digits, and says them. */
    async function itemWithNumber(): Promise<string> {
      for (let at = 0; ; at++) {
        const text = `numbered ${at}`;
        if (!/^\d{6}/.test(hexOf(text))) continue;
        await operator.submit([text]);
        return hexOf(text).slice(0, 6);
      }
    }
  });
});
