import { expect } from "chai";
import { createHash } from "node:crypto";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import { AT_ONCE } from "../../../../src/worker/backends/backend.ts";
import type { Backend, Outcome } from "../../../../src/worker/backends/backend.ts";
import { BacklogPace } from "../../../../src/worker/work/backlog-pace.ts";
import type { Ending, Finished } from "../../../../src/worker/work/execution.ts";
import type { Executor } from "../../../../src/worker/work/executor.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { executorOf, give } from "./held-executor.ts";

describe("the executor", () => {
  let backend: HeldBackend;
  let clock: VirtualClock;
  let finished: Finished[];
  let log: RecordingLogger;
  let mayStart: boolean;
  let room: number;
  let handedBack: Assigned[];

  beforeEach(() => {
    backend = new HeldBackend();
    clock = new VirtualClock();
    log = new RecordingLogger();
    finished = [];
    mayStart = true;
    room = 0;
    handedBack = [];
  });

  function make(options: Parameters<typeof executorOf>[2] = {}): Executor {
    return executorOf(backend, clock, {
      env: { ROLLOUT_RUN_ID: "the run" },
      log,
      mayStart: () => mayStart,
      onFinished: (one) => void finished.push(one),
      onHandedBack: (unstarted) => void handedBack.push(...unstarted),
      onRoom: () => room++,
      ...options,
    });
  }

  const outcomes = (): [number | undefined, Ending][] =>
    finished.map(({ assigned, outcome }) => [assigned.itemId[0], outcome]);

  /** For each, how it ended, and the checkpoint that the next attempt gets. */
  const left = (): [number | undefined, string, number[]][] =>
    finished.map(({ assigned, outcome, checkpoint }) => [assigned.itemId[0], outcome.kind, [...checkpoint]]);

  describe("that has more than it gets through soon", () => {
    it("gives up what would start last, and nothing before items have become slow for good", async () => {
      const surplus: (number | undefined)[][] = [];
      const pace = new BacklogPace({ timeMs: 250, slots: 1, least: 1, most: 100 });
      const executor = make({
        ...{ slots: 1, pace, capacity: 200 },
        onSurplus: (unstarted) => void surplus.push(unstarted.map(({ itemId }) => itemId[0])),
      });
      let next = 0;
      for (; next < 200; next++) {
        give(executor, next);
        await clock.advance(1);
        backend.succeed(next);
        await clock.advance();
      }
      const { room, worthwhileRoom } = executor;
      expect([room > 40, worthwhileRoom], "as many as one slot ends in 250 ms, and the slot").to.deep.equal([
        true,
        Math.floor((room - 1) / 2),
      ]);
      give(executor, ...Array.from({ length: 40 }, (_, at) => 200 + at));
      await clock.advance(250);
      expect(surplus).to.deep.equal([]);
      await clock.advance(250);
      expect(surplus).to.deep.equal([Array.from({ length: 38 }, (_, at) => 202 + at)]);
      expect([executor.room, executor.counts]).to.deep.equal([0, { executing: 1, waiting: 1 }]);
      expect([clock.armed, handedBack], "of one that waits nothing is too much").to.deep.equal([0, []]);
    });

    it("has the lowest of priority handed back first", async () => {
      const surplus: Assigned[] = [];
      const pace = new BacklogPace({ timeMs: 250, slots: 1, least: 1, most: 100 });
      const onSurplus = (unstarted: readonly Assigned[]): void => void surplus.push(...unstarted);
      const executor = make({ slots: 1, pace, capacity: 200, onSurplus });
      give(executor, assignedItem(1, { priority: 9 }), 2, assignedItem(3, { priority: 5 }), 4);
      await clock.advance(500);
      expect(surplus.map(({ itemId }) => itemId[0])).to.deep.equal([2, 4]);
    });

    it("takes no more than it has room for at all", () => {
      const executor = make({ slots: 1, prefetch: 1 });
      expect([1, 2, 3].map((number) => executor.take(assignedItem(number)))).to.deep.equal([
        true,
        true,
        false,
      ]);
      expect(executor.take(assignedItem(2)), "it is here already").to.equal(true);
    });
  });

  describe("fenced", () => {
    const preempted = { kind: "preempted", checkpoint: Uint8Array.of(7) } as const;

    it("kills what runs at once, and each leaves a result with its checkpoint", async () => {
      const executor = make();
      give(executor, 1, 2, 3);
      backend.of(1).report({ kind: "checkpoint", checkpoint: Uint8Array.of(4) });
      mayStart = false;
      executor.fence();
      expect(backend.executions.map(({ signal }) => signal.reason as unknown)).to.deep.equal([
        AT_ONCE,
        AT_ONCE,
      ]);
      backend.of(1).end({ kind: "crash", message: "killed" });
      backend.of(2).end(preempted);
      await clock.advance();
      expect(left()).to.deep.equal([
        [1, "fenced", [4]],
        [2, "fenced", [7]],
      ]);
      expect(backend.started).to.deep.equal([1, 2]);
      mayStart = true;
      executor.pump();
      expect(backend.started).to.deep.equal([1, 2, 3]);
    });

    it("takes a success that comes at that moment, and forgets what was dropped before", async () => {
      const executor = make();
      give(executor, 1, 2);
      executor.drop(assignedItem(2).key);
      executor.fence();
      executor.fence();
      backend.succeed(1);
      backend.of(2).end(preempted);
      await clock.advance();
      expect(outcomes()).to.deep.equal([[1, { kind: "success", output: Uint8Array.of(1) }]]);
    });

    it("does not wait for a backend that does not end, and keeps its slot taken", async () => {
      const executor = make({ slots: 1 });
      give(executor, 1, 2);
      executor.fence();
      await clock.advance(10_000);
      expect(finished.map(({ outcome }) => outcome.kind)).to.deep.equal(["fenced"]);
      expect(backend.started).to.deep.equal([1]);
    });
  });

  describe("with an attempt that may not begin any more when its turn has come", () => {
    let mayBegin: boolean;

    beforeEach(() => (mayBegin = false));

    /** A backend asks whether it may begin, and ends what it may not. */
    async function refuse(executor: Executor, ...items: (number | Assigned)[]): Promise<void> {
      give(executor, ...items);
      mayStart = false;
      for (const execution of backend.executions)
        if (execution.attempt.mayBegin?.() === false) execution.end({ kind: "preempted" });
      await clock.advance();
    }

    const unstarted = (executor: Executor): (number | undefined)[] =>
      [...executor.unstarted].map(({ itemId }) => itemId[0]);

    it("has not started it: it is the next to start, and leaves no result", async () => {
      const executor = make({ slots: 1, mayBegin: () => mayBegin });
      await refuse(executor, 1, 2);
      expect([unstarted(executor), executor.load, finished]).to.deep.equal([[1, 2], 0, []]);
      [mayStart, mayBegin] = [true, true];
      executor.pump();
      backend.executions.at(-1)?.attempt.mayBegin?.();
      backend.executions.at(-1)?.end({ kind: "success", output: Uint8Array.of(1) });
      await clock.advance();
      expect([backend.started, outcomes()]).to.deep.equal([
        [1, 1, 2],
        [[1, { kind: "success", output: Uint8Array.of(1) }]],
      ]);
    });

    it("forgets it when it is dropped meanwhile", async () => {
      const executor = make({ mayBegin: () => mayBegin });
      await refuse(executor, 1);
      executor.drop(assignedItem(1).key);
      expect([unstarted(executor), executor.load, finished]).to.deep.equal([[], 0, []]);
    });

    it("gives it back when it drains", async () => {
      const executor = make({ mayBegin: () => mayBegin });
      give(executor, 1);
      expect(executor.drain()).to.deep.equal([]);
      await refuse(executor);
      expect(outcomes()).to.deep.equal([[1, { kind: "preempted" }]]);
      await executor.whenIdle();
    });
  });

  describe("with an attempt that does not end", () => {
    const alone = (item: number): Assigned => assignedItem(item, { alone: true });
    const backNow = (): (number | undefined)[] => handedBack.map(({ itemId }) => itemId[0]);

    /** It was told to, and was given up. */
    async function giveUp(executor: Executor, ...items: (number | Assigned)[]): Promise<void> {
      give(executor, ...items);
      executor.fence();
      await clock.advance(10_000);
      expect(finished.map(({ outcome }) => outcome.kind)).to.deep.equal(items.map(() => "fenced"));
    }

    it("goes on in its other slots, and hands back what has to be alone", async () => {
      const executor = make();
      await giveUp(executor, 1);
      give(executor, 2, alone(3), 4);
      expect([backend.started, backNow(), executor.room]).to.deep.equal([[1, 2], [], 1]);
      backend.succeed(2);
      await clock.advance();
      expect([backend.started, backNow()]).to.deep.equal([[1, 2, 4], [3]]);
    });

    it("has no room and hands back what waits when it has no other slot, until the attempt ends", async () => {
      const executor = make({ slots: 1 });
      give(executor, 1, 2, 3);
      executor.fence();
      await clock.advance(10_000);
      expect([backNow(), executor.room, backend.started]).to.deep.equal([[2, 3], 0, [1]]);
      give(executor, 4);
      expect([backNow(), backend.started]).to.deep.equal([[2, 3, 4], [1]]);
      const before = room;
      backend.succeed(1);
      await clock.advance();
      expect([executor.room, room]).to.deep.equal([4, before + 1]);
      give(executor, 5);
      expect(backend.started).to.deep.equal([1, 5]);
    });

    it("starts nothing beside one that has to be alone, however many slots there are", async () => {
      const executor = make();
      await giveUp(executor, alone(1));
      expect(executor.room).to.equal(0);
      give(executor, 2);
      expect([backend.started, backNow()]).to.deep.equal([[1], [2]]);
      backend.succeed(1);
      await clock.advance();
      give(executor, 3);
      expect(backend.started).to.deep.equal([1, 3]);
    });
  });

  describe("starts", () => {
    it("as many as there are slots, and the next when one ends", async () => {
      const executor = make();
      give(executor, 1, 2, 3);
      expect([backend.started, executor.room, executor.load]).to.deep.equal([[1, 2], 2, 1]);
      backend.succeed(2);
      await clock.advance();
      expect([backend.started, executor.room, room]).to.deep.equal([[1, 2, 3], 3, 1]);
    });

    it("the highest priority first", async () => {
      const executor = make({ slots: 1 });
      give(executor, 1, 2, assignedItem(3, { priority: 7 }));
      backend.succeed(3);
      await clock.advance();
      expect(backend.started).to.deep.equal([3, 1]);
    });

    it("nothing while it may not, which is asked before each start", () => {
      let asked = 0;
      const executor = make({ mayStart: () => ++asked === 1 });
      give(executor, 1, 2);
      expect([backend.started, asked]).to.deep.equal([[1], 2]);
    });

    it("waiting items, when it may start again", () => {
      const executor = make();
      mayStart = false;
      give(executor, 1);
      expect([backend.started, executor.isHungry]).to.deep.equal([[], false]);
      mayStart = true;
      executor.pump();
      expect([backend.started, executor.isHungry]).to.deep.equal([[1], true]);
    });

    it("no attempt that it has already", () => {
      const executor = make();
      give(executor, 1, 2, 3);
      give(executor, 1, 3);
      expect([backend.started, executor.room]).to.deep.equal([[1, 2], 2]);
    });

    it("with all that the backend is to know", () => {
      const checkpoint = Uint8Array.of(9);
      give(make(), assignedItem(0xab, { attempt: 4, checkpoint }));
      const { attempt } = backend.of(0xab);
      expect([attempt.attempt, attempt.payload, attempt.checkpoint]).to.deep.equal([
        4,
        Uint8Array.of(0xab),
        checkpoint,
      ]);
      expect(attempt.env).to.deep.equal({
        ROLLOUT_RUN_ID: "the run",
        ROLLOUT_ITEM_ID: `ab${"00".repeat(31)}`,
        ROLLOUT_ATTEMPT: "4",
        ROLLOUT_SLOT: "0",
      });
    });
  });

  describe("says how an attempt ended", () => {
    async function endOf(outcome: Outcome): Promise<Finished | undefined> {
      give(make(), 1);
      backend.of(1).end(outcome);
      await clock.advance();
      return finished[0];
    }

    it("a success with the digest of its output", async () => {
      const output = Uint8Array.of(1, 2, 3);
      const end = await endOf({ kind: "success", output });
      expect(end?.outcome).to.deep.equal({ kind: "success", output });
      expect(Buffer.from(end?.outputDigest ?? [])).to.deep.equal(
        createHash("sha256").update(output).digest(),
      );
    });

    it("an output of the limit is one, and a byte more is too large and not kept", async () => {
      expect((await endOf({ kind: "success", output: new Uint8Array(8) }))?.outcome.kind).to.equal("success");
      finished = [];
      const end = await endOf({ kind: "success", output: new Uint8Array(9) });
      const message = "the output is 9 bytes; the limit is 8 (limits.output of the worker)";
      expect([end?.outcome, end?.outputDigest.length]).to.deep.equal([{ kind: "too_large", message }, 0]);
    });

    for (const outcome of [
      { kind: "timeout", message: "no byte for 30s" },
      { kind: "too_large", message: "it is over 8 bytes" },
      { kind: "error", message: "no" },
      { kind: "crash", message: "signal 9" },
    ] as const)
      it(`${outcome.kind}, as the backend says it`, async () => {
        expect((await endOf(outcome))?.outcome).to.deep.equal(outcome);
      });

    it("a message that is too long is cut, and is still text", async () => {
      const end = await endOf({ kind: "error", message: `${"x".repeat(8_191)}😀` });
      assertKind(end?.outcome, "error");
      expect([end.outcome.message.length, end.outcome.message.isWellFormed()]).to.deep.equal([8_192, true]);
    });

    it("preempted with the last checkpoint that was reported", async () => {
      give(make(), 1);
      backend.of(1).report({ kind: "checkpoint", checkpoint: Uint8Array.of(1) });
      backend.of(1).report({ kind: "checkpoint", checkpoint: Uint8Array.of(2) });
      backend.of(1).report({ kind: "checkpoint", checkpoint: new Uint8Array(5) });
      backend.of(1).end({ kind: "preempted" });
      await clock.advance();
      expect(left()).to.deep.equal([[1, "preempted", [2]]]);
      expect(log.lines.map(({ message }) => message)).to.deep.equal([
        "a checkpoint over the limit was left out",
      ]);
    });

    for (const kind of ["error", "timeout", "crash", "crash_shared"] as const)
      it(`${kind}, with the last checkpoint that was reported, or the one that it was given`, async () => {
        give(make(), assignedItem(1, { checkpoint: Uint8Array.of(5) }), 2);
        backend.of(2).report({ kind: "checkpoint", checkpoint: Uint8Array.of(1) });
        backend.of(2).report({ kind: "checkpoint", checkpoint: Uint8Array.of(2) });
        for (const item of [1, 2]) backend.of(item).end({ kind, message: "no" });
        await clock.advance();
        expect(left()).to.deep.equal([
          [1, kind, [5]],
          [2, kind, [2]],
        ]);
      });

    it("a success without a checkpoint", async () => {
      give(make(), 1);
      backend.of(1).report({ kind: "checkpoint", checkpoint: Uint8Array.of(1) });
      backend.succeed(1);
      await clock.advance();
      expect(left()).to.deep.equal([[1, "success", []]]);
    });

    it("an error when the backend throws, at once or later, and goes on", async () => {
      let calls = 0;
      const throwing: Backend = {
        execute: () => {
          if (++calls === 1) throw new Error("broken at once");
          return Promise.reject(new Error("broken later"));
        },
        close: () => Promise.resolve(),
      };
      const executor = make({ plugins: fixedPlugins(throwing) });
      give(executor, 1, 2, 3);
      await clock.advance();
      expect(outcomes()).to.deep.equal([
        [1, { kind: "error", message: "broken at once" }],
        [2, { kind: "error", message: "broken later" }],
        [3, { kind: "error", message: "broken later" }],
      ]);
      expect(executor.room).to.equal(5);
    });
  });

  describe("gives up", () => {
    it("what has not started and is asked for, and nothing else", () => {
      const executor = make();
      give(executor, 1, 2, 3);
      expect(executor.recall(assignedItem(3).key)?.itemId[0]).to.equal(3);
      expect(executor.recall(assignedItem(3).key)).to.equal(undefined);
      expect(executor.recall(assignedItem(1).key)).to.equal(undefined);
      expect([...executor.unstarted]).to.deep.equal([]);
    });

    it("what is dropped: unstarted is forgotten, running is killed, and neither has a result", async () => {
      const executor = make();
      give(executor, 1, 2, 3);
      executor.drop(assignedItem(3).key);
      executor.drop(assignedItem(1).key);
      expect([backend.of(1).signal.aborted, backend.of(2).signal.aborted]).to.deep.equal([true, false]);
      expect(executor.running.map(({ itemId }) => itemId[0])).to.deep.equal([2]);
      backend.succeed(1);
      await clock.advance();
      expect([finished, executor.room, backend.started]).to.deep.equal([[], 4, [1, 2]]);
    });

    it("a slot only when the backend has ended what was dropped", async () => {
      const executor = make({ slots: 1 });
      give(executor, 1, 2);
      executor.drop(assignedItem(1).key);
      executor.pump();
      expect(backend.started).to.deep.equal([1]);
      backend.of(1).end({ kind: "preempted" });
      await clock.advance();
      expect(backend.started).to.deep.equal([1, 2]);
    });
  });

  describe("that drains", () => {
    it("gives back what has not started, takes and starts nothing, and finishes what runs", async () => {
      const executor = make();
      give(executor, 1, 2, 3, 4);
      expect(executor.drain().map(({ itemId }) => itemId[0])).to.deep.equal([3, 4]);
      expect([executor.drain(), executor.room]).to.deep.equal([[], 0]);
      expect(executor.take(assignedItem(5))).to.equal(false);
      let idle = false;
      void executor.whenIdle().then(() => (idle = true));
      backend.succeed(1);
      await clock.advance();
      expect(idle).to.equal(false);
      backend.succeed(2);
      await clock.advance();
      expect([idle, backend.started, finished.length]).to.deep.equal([true, [1, 2], 2]);
    });

    it("is idle at once when nothing runs", async () => {
      const executor = make();
      executor.drain();
      await executor.whenIdle();
    });

    it("abandons what runs: preempted with its checkpoint however it dies, but a success is one", async () => {
      const executor = make({ slots: 4 });
      give(executor, 1, 2, 3, 4);
      executor.drain();
      backend.of(1).report({ kind: "checkpoint", checkpoint: Uint8Array.of(7) });
      const abandoned = executor.abandon(1_000);
      expect(backend.executions.every(({ signal }) => signal.aborted)).to.equal(true);
      expect(executor.running.length, "they are its own until they have ended").to.equal(4);
      backend.of(1).end({ kind: "crash", message: "killed" });
      backend.of(2).end({ kind: "preempted", checkpoint: Uint8Array.of(8) });
      backend.succeed(3);
      backend.of(4).fail(new Error("killed"));
      await clock.advance();
      await abandoned;
      expect(left()).to.deep.equal([
        [1, "preempted", [7]],
        [2, "preempted", [8]],
        [3, "success", []],
        [4, "preempted", []],
      ]);
      expect(clock.armed).to.equal(0);
    });

    it("does not wait for a backend that ignores the end, nor for what it says later", async () => {
      const executor = make();
      give(executor, 1);
      executor.drain();
      let over = false;
      void executor.abandon(1_000).then(() => (over = true));
      await clock.advance(999);
      expect([over, finished]).to.deep.equal([false, []]);
      await clock.advance(1);
      expect(over).to.equal(true);
      backend.succeed(1);
      await clock.advance();
      expect(left()).to.deep.equal([[1, "preempted", []]]);
    });

    it("killed, it leaves no result at all", async () => {
      const executor = make();
      give(executor, 1, 2, 3);
      executor.kill();
      backend.succeed(1);
      backend.of(2).end({ kind: "preempted" });
      await clock.advance();
      expect([finished, backend.started]).to.deep.equal([[], [1, 2]]);
    });
  });
});

function assertKind<Kind extends Ending["kind"]>(
  outcome: Ending | undefined,
  kind: Kind,
): asserts outcome is Extract<Ending, { kind: Kind }> {
  expect(outcome?.kind).to.equal(kind);
}
