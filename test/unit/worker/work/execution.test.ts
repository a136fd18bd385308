import { expect } from "chai";
import { LIMITS } from "../../../../src/config/limits.ts";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import type { Finished } from "../../../../src/worker/work/execution.ts";
import type { Executor } from "../../../../src/worker/work/executor.ts";
import { Plugins } from "../../../../src/worker/backends/plugins.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { HeldBackend } from "../../../support/held-backend.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { executorOf, give } from "./held-executor.ts";

describe("an execution", () => {
  let backend: HeldBackend;
  let clock: VirtualClock;
  let finished: Finished[];
  let handedBack: (number | undefined)[];
  let log: RecordingLogger;
  let executor: Executor;

  beforeEach(() => {
    backend = new HeldBackend();
    clock = new VirtualClock();
    log = new RecordingLogger();
    finished = [];
    handedBack = [];
    executor = executorOf(backend, clock, {
      plugins: fixedPlugins(backend, { version: "7" }),
      prefetch: 4,
      log,
      onFinished: (one) => void finished.push(one),
      onHandedBack: (unstarted) => void handedBack.push(...unstarted.map(({ itemId }) => itemId[0])),
    });
  });

  const kinds = (): string[] => finished.map(({ outcome }) => outcome.kind);
  const limited = (timeoutMs: number): Assigned => assignedItem(1, { timeoutMs });

  it("says which version it was, when it began, how long it took and what it wrote", async () => {
    give(executor, 1);
    const beganMs = clock.wallMs();
    backend.of(1).report({ kind: "log", chunk: Buffer.from("half a ") });
    await clock.advance(250);
    backend.of(1).report({ kind: "log", chunk: Buffer.from("line\n") });
    clock.jumpWall(-1_000_000);
    backend.succeed(1);
    await clock.advance();
    const [one] = finished;
    expect([one?.pluginVersion, one?.startedAtMs, one?.durationMs]).to.deep.equal(["7", beganMs, 250]);
    expect(Buffer.from(one?.log ?? []).toString()).to.equal("half a line\n");
  });

  it("of an item without a key fails when it leaves a state: nobody would get it", async () => {
    const keyed = { key: "k", commit: 1n };
    give(executor, assignedItem(1), assignedItem(2, { keyed }));
    for (const item of [1, 2])
      backend.of(item).end({ kind: "success", output: new Uint8Array(), state: Buffer.from("x") });
    await clock.advance();
    expect(finished.map(({ outcome }) => outcome)).to.deep.equal([
      {
        kind: "error",
        message: "it left a state, but the item has no key: submit it with --key-field",
      },
      { kind: "success", output: new Uint8Array(), state: Buffer.from("x") },
    ]);
  });

  it("that a server refused says what it answered, unless that is over its limit", async () => {
    const response = Buffer.alloc(LIMITS.responseBytes, "r");
    give(executor, assignedItem(1), assignedItem(2));
    backend.of(1).end({ kind: "error", message: "no", response });
    backend.of(2).end({ kind: "error", message: "no", response: Buffer.concat([response, response]) });
    await clock.advance();
    expect(finished.map(({ outcome }) => outcome)).to.deep.equal([
      { kind: "error", message: "no", response },
      { kind: "error", message: "no" },
    ]);
  });

  describe("that may take only so long", () => {
    it("is told to end at that moment, and timed out whatever it says then", async () => {
      give(executor, limited(1_000));
      await clock.advance(999);
      expect(backend.of(1).signal.aborted).to.equal(false);
      await clock.advance(1);
      expect([backend.of(1).signal.aborted, kinds()]).to.deep.equal([true, []]);
      backend.of(1).end({ kind: "crash", message: "killed" });
      await clock.advance();
      expect([finished[0]?.outcome, clock.armed]).to.deep.equal([
        { kind: "timeout", message: "took longer than 1s" },
        0,
      ]);
    });

    it("leaves its last checkpoint, also one that it saves when it is told to end", async () => {
      give(executor, limited(1_000), assignedItem(2, { timeoutMs: 1_000 }));
      for (const item of [1, 2])
        backend.of(item).report({ kind: "checkpoint", checkpoint: Uint8Array.of(item) });
      await clock.advance(1_000);
      backend.of(1).end({ kind: "crash", message: "killed" });
      backend.of(2).end({ kind: "preempted", checkpoint: Uint8Array.of(7) });
      await clock.advance();
      expect(finished.map(({ outcome, checkpoint }) => [outcome.kind, [...checkpoint]])).to.deep.equal([
        ["timeout", [1]],
        ["timeout", [7]],
      ]);
    });

    it("is a success when it succeeds at that very moment", async () => {
      give(executor, limited(1_000));
      await clock.advance(1_000);
      backend.succeed(1);
      await clock.advance();
      expect(kinds()).to.deep.equal(["success"]);
    });

    it("leaves no timer when it ends before", async () => {
      give(executor, limited(1_000));
      backend.succeed(1);
      await clock.advance();
      expect(clock.armed).to.equal(0);
    });

    for (const [what, timeoutMs, itemTimeoutMs, endsAfterMs] of [
      ["plugin's limit when the run says nothing", 0, 300, 300],
      ["run's limit when both say something", 500, 300, 500],
      ["run's limit when the plugin says nothing", 500, undefined, 500],
    ] as const)
      it(`has the ${what}`, async () => {
        const known = [{ name: "mock", version: "1", open: () => backend, itemTimeoutMs }];
        const plugins = new Plugins(known, () => undefined);
        give(executorOf(backend, clock, { plugins }), limited(timeoutMs));
        await clock.advance(endsAfterMs - 1);
        expect(backend.of(1).signal.aborted).to.equal(false);
        await clock.advance(1);
        expect(backend.of(1).signal.aborted).to.equal(true);
      });

    it("takes no time while it waits for what executes it", async () => {
      give(executor, limited(1_000));
      backend.of(1).report({ kind: "waiting" });
      await clock.advance(60_000);
      expect(backend.of(1).signal.aborted).to.equal(false);
      const beganMs = clock.wallMs();
      backend.of(1).report({ kind: "executing" });
      await clock.advance(999);
      expect(backend.of(1).signal.aborted).to.equal(false);
      backend.succeed(1);
      await clock.advance();
      expect([finished[0]?.startedAtMs, finished[0]?.durationMs]).to.deep.equal([beganMs, 999]);
    });

    it("still times out when it has waited first", async () => {
      give(executor, limited(1_000));
      backend.of(1).report({ kind: "waiting" });
      backend.of(1).report({ kind: "executing" });
      await clock.advance(1_000);
      expect(backend.of(1).signal.aborted).to.equal(true);
    });

    it("that a drain abandons as well has timed out all the same", async () => {
      give(executor, limited(1_000));
      executor.drain();
      await clock.advance(1_000);
      const abandoned = executor.abandon(500);
      await clock.advance(500);
      await abandoned;
      expect(kinds()).to.deep.equal(["timeout"]);
    });

    it("and does not end: that is said after a while, once, and its slot stays taken until it has", async () => {
      give(executor, limited(1_000), 2, 3);
      await clock.advance(11_000);
      expect([kinds(), backend.started, executor.load]).to.deep.equal([["timeout"], [1, 2], 1]);
      expect(executor.running.map(({ itemId }) => itemId[0])).to.deep.equal([2]);
      expect(log.lines.map(({ message }) => message)).to.deep.equal([
        "an attempt did not end when it was told to; its slot stays taken until it does",
      ]);
      backend.of(1).end({ kind: "preempted" });
      await clock.advance();
      expect([kinds(), backend.started]).to.deep.equal([["timeout"], [1, 2, 3]]);
    });
  });

  describe("that has to be alone", () => {
    const alone = (item: number): Assigned => assignedItem(item, { alone: true });

    it("begins when nothing else runs, and nothing begins beside it", async () => {
      give(executor, 1, alone(2), 3, 4);
      expect(backend.started).to.deep.equal([1]);
      backend.succeed(1);
      await clock.advance();
      expect(backend.started).to.deep.equal([1, 2]);
      expect(backend.of(2).attempt.alone).to.equal(true);
      backend.succeed(2);
      await clock.advance();
      expect(backend.started).to.deep.equal([1, 2, 3, 4]);
    });

    it("is not begun beside one that was dropped and has not ended", async () => {
      give(executor, 1, alone(2));
      executor.drop(assignedItem(1).key);
      executor.pump();
      expect(backend.started).to.deep.equal([1]);
      backend.of(1).end({ kind: "preempted" });
      await clock.advance();
      expect(backend.started).to.deep.equal([1, 2]);
    });

    it("is handed back where something runs that does not end, and what stands behind it begins", async () => {
      give(executor, limited(1_000), alone(2), 3);
      await clock.advance(11_000);
      expect([handedBack, kinds(), backend.started]).to.deep.equal([[2], ["timeout"], [1, 3]]);
    });
  });

  it("of a plugin that is not here is none: it is handed back, which is said once", async () => {
    give(executor, assignedItem(1, { plugin: "other" }), assignedItem(2, { plugin: "other" }), 3);
    await clock.advance();
    expect([handedBack, backend.started, finished]).to.deep.equal([[1, 2], [3], []]);
    expect(log.lines.map(({ message }) => message)).to.deep.equal([
      "items of plugin other, which this worker does not have, are handed back",
    ]);
  });

  it("of no named plugin is the first one's", () => {
    give(executor, assignedItem(1, { plugin: "" }));
    expect(backend.started).to.deep.equal([1]);
  });
});
