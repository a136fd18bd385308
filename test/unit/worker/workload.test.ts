// A whole worker and its items, against a coordinator that follows a script, over mutual TLS.
import { expect } from "chai";
import { createHash } from "node:crypto";
import { systemClock } from "../../../src/base/clock.ts";
import { WorkerState } from "../../../src/gen/rollout/v1/common_pb.ts";
import { BeatVerdict } from "../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { HeldPhase, OutcomeClass } from "../../../src/gen/rollout/v1/work_pb.ts";
import { openLevelStore } from "../../../src/storage/level/level-store.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../src/storage/store.ts";
import { AT_ONCE } from "../../../src/worker/backends/backend.ts";
import type { DrainRequest } from "../../../src/worker/life/drain.ts";
import type { WorkSettings } from "../../../src/worker/workload.ts";
import { newWorkerId } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import { HeldBackend } from "../../support/held-backend.ts";
import { pace } from "../../support/pace.ts";
import type { ScriptedCoordinator, ScriptedSession } from "../../support/scripted-coordinator.ts";
import { assignment, itemId, startScriptedCoordinator } from "../../support/scripted-coordinator.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import type { StartedWorker, WorkerTestOptions } from "../../support/test-worker.ts";
import { startWorker } from "../../support/test-worker.ts";

/** How often a worker of these tests beats; see test-worker.ts. */
const BEAT_MS = 20;
/** A worker that fences itself soon, and not for want of a processor. */
const soonFenced = (): { readonly selfFenceTimeoutMs: number; readonly failureTimeoutMs: number } => ({
  selfFenceTimeoutMs: 150 * pace(),
  failureTimeoutMs: 10_000,
});

const inMs = (budgetMs: number): DrainRequest => ({
  cause: "sigterm",
  deadlineMs: systemClock.monotonicMs() + budgetMs,
});

describe("a worker at work", () => {
  const closeLater = useClosers();
  let coordinator: ScriptedCoordinator;
  let backend: HeldBackend;

  beforeEach(async () => {
    coordinator = await startScriptedCoordinator();
    closeLater(() => coordinator.close());
    backend = new HeldBackend();
  });

  async function start(options: Partial<WorkerTestOptions> = {}): Promise<StartedWorker> {
    const { runId, ca, server } = coordinator;
    const id = options.workerId ?? newWorkerId();
    const work: WorkSettings = { plugins: fixedPlugins(backend), prefetch: 3 };
    const started = await startWorker(
      { runId, ca, store: new MemoryStore() },
      {
        address: server.address,
        workerId: id,
        credentials: { kind: "own", credentials: await ca.issue({ runId, role: "worker", id }) },
        work,
        ...options,
      },
    );
    closeLater(() => started.worker.stop());
    return started;
  }

  /** A worker with two items running and two that have not started. */
  async function startBusy(options?: Partial<WorkerTestOptions>): Promise<[StartedWorker, ScriptedSession]> {
    const started = await start(options);
    const session = await coordinator.session(0);
    await session.reconcile();
    session.assign(...[1, 2, 3, 4].map((number) => assignment(number)));
    await eventually("two run", () => backend.started.length === 2);
    return [started, session];
  }

  /** Acknowledges every batch of results, as they come. */
  async function acknowledgeAll(session: ScriptedSession): Promise<void> {
    while (!session.isOver) {
      const batch = await session.next("results").catch(() => undefined);
      if (batch === undefined) return;
      session.acknowledge(batch.number);
    }
  }

  const states = (): WorkerState[] =>
    coordinator.beats.map(({ state }) => state).filter((state, at, all) => state !== all[at - 1]);

  it("says in its beats how busy it is and what it holds", async () => {
    await startBusy();
    const digest = createHash("sha256");
    for (const number of [1, 2, 3, 4]) digest.update(itemId(number)).update(Uint8Array.of(0, 0, 0, 1));
    const expected = digest.digest("hex");
    const beat = await eventually("a beat of it", () => {
      const last = coordinator.beats.at(-1);
      return last?.ackedAssignment === 4n && last;
    });
    expect([beat.load, Buffer.from(beat.heldDigest ?? []).toString("hex")]).to.deep.equal([1, expected]);
    expect(coordinator.beats[0]?.heldDigest?.length).to.equal(0);
  });

  it("sends results that follow each other together while items wait, and the last at once", async () => {
    const standing = systemClock.monotonicMs();
    await start({ clock: { ...systemClock, monotonicMs: () => standing } });
    const session = await coordinator.session(0);
    await session.reconcile();
    session.assign(...[1, 2, 3, 4, 5].map((number) => assignment(number)));
    const ends = async (item: number, begun: number): Promise<void> => {
      await eventually(`${item} runs`, () => backend.started.includes(item));
      backend.succeed(item);
      await eventually("the next one runs", () => backend.started.length === begun);
      // Time enough to send it.
      const beats = coordinator.beats.length;
      await eventually("it has beaten again", () => coordinator.beats.length >= beats + 2);
    };
    await ends(1, 3);
    await ends(2, 4);
    await ends(3, 5);
    const itemsOfNext = async (): Promise<number[]> =>
      (await session.next("results")).results.map(({ output }) => output[0] ?? -1);
    expect([await itemsOfNext(), await itemsOfNext()]).to.deep.equal([[1], [2, 3]]);
  });

  it("that aborts when it is fenced kills what runs, and says so of each attempt when it is heard again", async () => {
    const work: WorkSettings = { plugins: fixedPlugins(backend), prefetch: 3, onFence: "abort" };
    const [, session] = await startBusy({ work, ...soonFenced() });
    for (const one of backend.executions)
      one.signal.addEventListener("abort", () => one.end({ kind: "preempted" }));
    coordinator.answersBeats = false;
    await eventually("both are killed", () => backend.executions.every(({ signal }) => signal.aborted));
    expect(backend.executions.map(({ signal }) => signal.reason as unknown)).to.deep.equal([
      AT_ONCE,
      AT_ONCE,
    ]);
    await eventually("it is said", () => session.results.length === 2);
    expect(session.results.map(({ outcome }) => outcome)).to.deep.equal([
      OutcomeClass.FENCED,
      OutcomeClass.FENCED,
    ]);
    expect(backend.started).to.deep.equal([1, 2]);

    coordinator.answersBeats = true;
    const next = await coordinator.session(1);
    const { held } = await next.reconcile();
    expect(held.map(({ attempt, phase }) => [attempt?.itemId[0], phase])).to.deep.equal([
      [1, HeldPhase.FINISHED],
      [2, HeldPhase.FINISHED],
      [3, HeldPhase.UNSTARTED],
      [4, HeldPhase.UNSTARTED],
    ]);
    await eventually("it goes on", () => backend.started.length === 4);
  });

  it("that fences itself starts nothing, finishes what runs, and asks what is still its own before it goes on", async () => {
    const fence = soonFenced();
    const [, session] = await startBusy(fence);
    coordinator.answersBeats = false;
    const heard = coordinator.beats.length;
    const enough = heard + (2 * fence.selfFenceTimeoutMs) / BEAT_MS;
    await eventually("it has beaten for longer than that", () => coordinator.beats.length > enough);
    backend.succeed(1);
    await eventually("its result comes", () => session.results.length === 1);
    expect(backend.started).to.deep.equal([1, 2]);
    coordinator.answersBeats = true;
    const anew = await coordinator.session(1);
    await eventually("it says what it has", () => anew.requests.length > 0);
    expect(backend.started).to.deep.equal([1, 2]);
    const { held } = await anew.reconcile();
    expect(held.map(({ phase }) => phase)).to.have.members([3, 2, 1, 1]);
    await eventually("the next is started", () => backend.started.length === 3);
  });

  it("sends checkpoints of what runs, the newest, and anew on another stream", async () => {
    const work: WorkSettings = { plugins: fixedPlugins(backend), prefetch: 3, checkpointIntervalMs: 30 };
    const [, session] = await startBusy({ work });
    backend.of(2).report({ kind: "checkpoint", checkpoint: Uint8Array.of(7) });
    const { checkpoints } = await session.next("checkpoints");
    expect(
      checkpoints.map(({ attempt, checkpoint }) => [attempt?.itemId[0], attempt?.attempt, ...checkpoint]),
    ).to.deep.equal([[2, 1, 7]]);
    expect(checkpoints[0]?.epoch).to.equal(1n);
    backend.of(2).report({ kind: "checkpoint", checkpoint: Uint8Array.of(8) });
    const next = await session.next("checkpoints");
    expect([...(next.checkpoints[0]?.checkpoint ?? [])]).to.deep.equal([8]);
    session.end();
    const anew = await coordinator.session(1);
    await anew.reconcile();
    const again = await anew.next("checkpoints");
    expect([...(again.checkpoints[0]?.checkpoint ?? [])]).to.deep.equal([8]);
  });

  it("is told once that an operator wants it to drain", async () => {
    let asked = 0;
    await start({ onDrainAsked: () => asked++ });
    coordinator.beatVerdict = BeatVerdict.DRAIN;
    const heard = coordinator.beats.length;
    await eventually("some beats", () => coordinator.beats.length > heard + 3);
    expect(asked).to.equal(1);
  });

  describe("drains", () => {
    it("and hands back at once, finishes what runs, delivers, and only then is gone", async () => {
      const [{ worker, events }, session] = await startBusy();
      const draining = worker.drain(inMs(15_000));
      await eventually("the backlog is back", () => session.handedBack.length === 2);
      expect(session.handedBack).to.deep.equal([3, 4]);
      await eventually("it says so", () => states().at(-1) === WorkerState.DRAINING);
      backend.succeed(1, 2);
      await eventually("both results", () => session.results.length === 2);
      const { length } = coordinator.beats;
      await eventually("it still beats", () => coordinator.beats.length > length + 3);
      expect(states()).to.not.include(WorkerState.GONE);
      acknowledgeCome(session);
      await draining;
      expect([backend.started, states()]).to.deep.equal([
        [1, 2],
        [WorkerState.INIT, WorkerState.READY, WorkerState.DRAINING, WorkerState.GONE],
      ]);
      expect(events.events.map(({ topic }) => topic)).to.deep.equal(["drain_started", "drain_completed"]);
    });

    it("and gives up at the deadline what still runs, with its checkpoint and without a charge", async () => {
      const [{ worker }, session] = await startBusy();
      void acknowledgeAll(session);
      backend.of(2).report({ kind: "checkpoint", checkpoint: Uint8Array.of(42) });
      for (const one of backend.executions)
        one.signal.addEventListener("abort", () => one.end({ kind: "crash", message: "killed" }));
      await worker.drain(inMs(100));
      const results = session.results.map(({ attempt, outcome, checkpoint }) => [
        attempt?.itemId[0],
        outcome,
        [...checkpoint],
      ]);
      expect(results).to.deep.equal([
        [1, OutcomeClass.PREEMPTED, []],
        [2, OutcomeClass.PREEMPTED, [42]],
      ]);
      expect(states().at(-1)).to.equal(WorkerState.GONE);
    });

    it("and is hurried by a second request", async () => {
      const [{ worker }, session] = await startBusy();
      void acknowledgeAll(session);
      for (const one of backend.executions)
        one.signal.addEventListener("abort", () => one.end({ kind: "preempted" }));
      const draining = worker.drain({ ...inMs(60_000), cause: "aws" });
      await worker.drain(inMs(50));
      await draining;
      expect(session.results.map(({ outcome }) => outcome)).to.deep.equal([
        OutcomeClass.PREEMPTED,
        OutcomeClass.PREEMPTED,
      ]);
    });

    it("and is killed in the middle: the next process holds and delivers only what had ended", async () => {
      const [first, session] = await startBusy();
      void first.worker.drain(inMs(15_000));
      await eventually("the backlog is back", () => session.handedBack.length === 2);
      backend.succeed(1);
      await eventually("a result", () => session.results.length === 1);
      const copy = new MemoryStore(await first.store.scan({ from: "!", to: "~", limit: 1_000 }));
      await first.worker.stop();

      await start({ store: copy, workerId: first.id });
      const next = await coordinator.session(1);
      const { held } = await next.reconcile();
      expect(held.map(({ attempt, phase }) => [attempt?.itemId[0], phase])).to.deep.equal([[1, 3]]);
      const { results } = await next.next("results");
      expect(results.map(({ attempt }) => attempt?.itemId[0])).to.deep.equal([1]);
      next.acknowledge(1n);
      next.assign(assignment(5));
      await eventually("it works again", () => backend.started.includes(5));
      expect(backend.started).to.deep.equal([1, 2, 5]);
      expect(states().at(-1)).to.equal(WorkerState.READY);
    });
  });

  describe("on a disk", () => {
    const directory = useTemporaryDirectory();
    const open = (): Promise<Store> =>
      openLevelStore({ path: directory.file("own"), holderName: "a test", clock: systemClock });

    it("delivers after a restart what was not acknowledged before, byte for byte", async () => {
      const store = await open();
      const [first, session] = await startBusy({ store });
      const output = Uint8Array.from({ length: 100_000 }, (_, at) => at % 251);
      backend.of(1).end({ kind: "success", output });
      await eventually("the result", () => session.results.length === 1);
      await first.worker.stop();
      await store.close();

      const reopened = await open();
      closeLater(() => reopened.close());
      await start({ store: reopened, workerId: first.id });
      const next = await coordinator.session(1);
      await next.reconcile();
      const [result] = (await next.next("results")).results;
      const digest = createHash("sha256").update(output).digest();
      expect(Buffer.compare(result?.output ?? Buffer.alloc(0), output)).to.equal(0);
      expect(Buffer.compare(result?.outputDigest ?? Buffer.alloc(0), digest)).to.equal(0);
    });
  });
});

/** Acknowledges every batch of results that has come. */
function acknowledgeCome(session: ScriptedSession): void {
  const last = session.requests.findLast(({ frame }) => frame.case === "results");
  if (last?.frame.case === "results") session.acknowledge(last.frame.value.number);
}
