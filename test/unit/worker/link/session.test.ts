// Sessions of a worker with a coordinator that follows a script, over mutual TLS.
import { expect } from "chai";
import { toConnectError } from "../../../../src/transport/errors.ts";
import { failure } from "../../../../src/base/errors.ts";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { create } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import type { Hello, SessionResponse } from "../../../../src/gen/rollout/v1/work_pb.ts";
import {
  HeldPhase,
  HeldVerdict,
  OutcomeClass,
  SessionResponseSchema,
} from "../../../../src/gen/rollout/v1/work_pb.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import type { Backend } from "../../../../src/worker/backends/backend.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { incarnationId } from "../../../support/world-worker.ts";
import type { ScriptedCoordinator, ScriptedSession } from "../../../support/scripted-coordinator.ts";
import { assignment, itemId, startScriptedCoordinator } from "../../../support/scripted-coordinator.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { settle } from "../../../support/settle.ts";
import { startTcpProxy } from "../../../support/tcp-proxy.ts";
import type { StartedWork, WorkTestOptions } from "./test-work.ts";
import { startWork } from "./test-work.ts";

const { KEEP, DROP } = HeldVerdict;

describe("a session", () => {
  const closeLater = useClosers();
  let coordinator: ScriptedCoordinator;

  beforeEach(async () => {
    coordinator = await startScriptedCoordinator();
    closeLater(() => coordinator.close());
  });

  async function start(options: WorkTestOptions = {}): Promise<StartedWork> {
    const started = await startWork(coordinator, options);
    closeLater(() => started.stop());
    return started;
  }

  /** A worker whose first session is reconciled. */
  async function startReconciled(options?: WorkTestOptions): Promise<[StartedWork, ScriptedSession]> {
    const started = await start(options);
    const session = await coordinator.session(0);
    await session.reconcile();
    return [started, session];
  }

  const heldIn = ({ held }: Hello): [number, HeldPhase][] =>
    held.map(({ attempt, phase }) => [attempt?.itemId[0] ?? -1, phase]);

  /** Resolves when the worker has taken in all that was said to it on this session until now. */
  async function settled(session: ScriptedSession): Promise<void> {
    const before = session.requests.length;
    session.say({ frame: { case: "recall", value: { recalled: [{ itemId: itemId(255), attempt: 1 }] } } });
    await eventually("the recall is answered", () =>
      session.requests.slice(before).some(({ frame }) => frame.case === "handBack"),
    );
  }

  const started = ({ backend }: StartedWork, count: number): Promise<number[]> =>
    eventually(`${count} started`, () => backend.started.length >= count && backend.started);

  const resultsOf = (session: ScriptedSession, count: number): Promise<number[]> =>
    eventually(`${count} results`, () => {
      const items = session.results.map(({ attempt }) => attempt?.itemId[0] ?? -1);
      return items.length >= count && items;
    });

  const refusals = ({ log }: StartedWork): string[] =>
    log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);

  describe("that is new", () => {
    it("begins with a hello, and asks for nothing before the verdict", async () => {
      await start();
      const session = await coordinator.session(0);
      expect(heldIn(await session.next("hello"))).to.deep.equal([]);
      expect(session.requests).to.have.length(1);
      session.say({ frame: { case: "verdict", value: { verdicts: [] } } });
      expect((await session.next("credit")).more).to.equal(5);
    });

    it("states what the worker has, with its phase and the epoch that assigned it", async () => {
      const [worker, first] = await startReconciled();
      first.assign(...[1, 2, 3, 4].map((number) => assignment(number)));
      await started(worker, 3);
      worker.backend.succeed(2);
      await resultsOf(first, 1);
      coordinator.epoch = 5n;
      first.end();
      const hello = await (await coordinator.session(1)).next("hello");
      expect(heldIn(hello).sort()).to.deep.equal([
        [1, HeldPhase.RUNNING],
        [2, HeldPhase.FINISHED],
        [3, HeldPhase.RUNNING],
        [4, HeldPhase.RUNNING],
      ]);
      expect(new Set(hello.held.map(({ epoch }) => epoch))).to.deep.equal(new Set([1n]));
      expect(coordinator.sessions[1]?.requests[0]?.ackedAssignment).to.equal(4n);
    });

    it("starts nothing of the backlog until a late verdict, and then goes on", async () => {
      const [worker, first] = await startReconciled({ slots: 1, prefetch: 2 });
      first.assign(assignment(1), assignment(2), assignment(3));
      await started(worker, 1);
      first.end();
      const second = await coordinator.session(1);
      const hello = await second.next("hello");
      expect(heldIn(hello).map(([, phase]) => phase)).to.deep.equal([
        HeldPhase.RUNNING,
        HeldPhase.UNSTARTED,
        HeldPhase.UNSTARTED,
      ]);
      worker.backend.succeed(1);
      await eventually("item 1 is over", () => worker.work.load === 0);
      worker.work.wake();
      expect([worker.backend.started, second.results]).to.deep.equal([[1], []]);
      second.say({ frame: { case: "verdict", value: { verdicts: [KEEP, KEEP, KEEP] } } });
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
      expect(await resultsOf(second, 1)).to.deep.equal([1]);
    });

    it("goes on with the backlog while there is no coordinator to say hello to", async () => {
      const proxy = await startTcpProxy(coordinator.server.port);
      closeLater(() => proxy.close());
      const [worker, first] = await startReconciled({ address: proxy.address, slots: 1, prefetch: 2 });
      first.assign(assignment(1), assignment(2));
      await started(worker, 1);
      await proxy.close();
      await eventually("the loss is noticed", () => worker.failed.length > 0);
      worker.backend.succeed(1);
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
    });

    it("drops and kills quietly what the verdict says, and asks for as much more", async () => {
      const [worker, first] = await startReconciled({ slots: 2, prefetch: 2 });
      first.assign(...[1, 2, 3, 4].map((number) => assignment(number)));
      await started(worker, 2);
      first.end();
      const second = await coordinator.session(1);
      await second.reconcile(({ held }) =>
        held.map(({ attempt }) => (attempt?.itemId[0] === 1 || attempt?.itemId[0] === 3 ? DROP : KEEP)),
      );
      await eventually("item 1 is killed", () => worker.backend.of(1).signal.aborted);
      worker.backend.of(1).end({ kind: "crash", message: "killed" });
      expect(await started(worker, 3)).to.deep.equal([1, 2, 4]);
      worker.backend.succeed(2, 4);
      expect((await resultsOf(second, 2)).sort()).to.deep.equal([2, 4]);
      await eventually("all room is asked for", () => second.credit === 4);
    });

    it("does not send a result that the verdict drops, and has its number acknowledged all the same", async () => {
      const [worker, first] = await startReconciled();
      first.assign(assignment(1), assignment(2));
      await started(worker, 2);
      worker.backend.succeed(1);
      await resultsOf(first, 1);
      first.end();
      const second = await coordinator.session(1);
      await second.reconcile(({ held }) =>
        held.map(({ phase }) => (phase === HeldPhase.FINISHED ? DROP : KEEP)),
      );
      const batch = await second.next("results");
      expect([batch.number, batch.results]).to.deep.equal([1n, []]);
      second.acknowledge(1n);
      worker.backend.succeed(2);
      expect((await second.next("results")).number).to.equal(2n);
    });
  });

  describe("gets results across", () => {
    it("as they are, once, until they are acknowledged", async () => {
      const [worker, session] = await startReconciled();
      session.assign(assignment(7));
      await started(worker, 1);
      worker.backend.succeed(7);
      const { number, results } = await session.next("results");
      expect([number, results.length]).to.deep.equal([1n, 1]);
      const [result] = results;
      expect([result?.outcome, result?.epoch, [...(result?.output ?? [])]]).to.deep.equal([
        OutcomeClass.SUCCESS,
        1n,
        [7],
      ]);
      expect([...(result?.incarnation ?? [])]).to.deep.equal([...ulidToBytes(worker.incarnation)]);
      session.acknowledge(1n);
      await worker.work.flushed();
      await settled(session);
      expect(session.results).to.have.length(1);
    });

    it("before it asks for more, on the next session as well", async () => {
      const [worker, first] = await startReconciled({ slots: 1, prefetch: 1 });
      first.assign(assignment(1), assignment(2));
      await started(worker, 1);
      worker.backend.succeed(1);
      await resultsOf(first, 1);
      first.end();
      const second = await coordinator.session(1);
      await second.reconcile();
      const frames = await eventually("more is asked for", () => {
        const cases = second.requests.map(({ frame }) => frame.case);
        return cases.includes("credit") && cases.filter((one) => one === "results" || one === "credit");
      });
      expect(frames).to.deep.equal(["results", "credit"]);
    });

    it("again on the next session when they were not acknowledged, and then no more", async () => {
      const [worker, first] = await startReconciled();
      first.assign(assignment(1), assignment(2));
      await started(worker, 2);
      worker.backend.succeed(1);
      await resultsOf(first, 1);
      first.acknowledge(1n);
      await worker.work.flushed();
      worker.backend.succeed(2);
      await resultsOf(first, 2);
      first.end();
      const second = await coordinator.session(1);
      await second.reconcile();
      const again = await second.next("results");
      expect([again.number, again.results.map(({ attempt }) => attempt?.itemId[0])]).to.deep.equal([2n, [2]]);
      second.acknowledge(2n);
      await worker.work.flushed();
      second.end();
      const third = await coordinator.session(2);
      expect(heldIn(await third.reconcile())).to.deep.equal([]);
      await settled(third);
      expect(third.results).to.deep.equal([]);
    });

    it("of a process that is gone: the next one states that it has them, and delivers them as that one's", async () => {
      const [first, session] = await startReconciled();
      session.assign(assignment(1), assignment(2));
      await started(first, 2);
      first.backend.succeed(1);
      await resultsOf(session, 1);
      await first.stop();

      const second = await start({ store: first.store, incarnation: incarnationId(2) });
      const next = await coordinator.session(1);
      expect(heldIn(await next.reconcile())).to.deep.equal([[1, HeldPhase.FINISHED]]);
      const { results } = await next.next("results");
      expect(results.map(({ attempt, incarnation }) => [attempt?.itemId[0], [...incarnation]])).to.deep.equal(
        [[1, [...ulidToBytes(incarnationId(1))]]],
      );
      next.acknowledge(1n);
      await second.work.flushed();
      expect(second.backend.started).to.deep.equal([]);
    });

    it("of a megabyte, and says of a larger one that it is too large", async () => {
      const [worker, session] = await startReconciled();
      session.assign(assignment(1), assignment(2));
      await started(worker, 2);
      worker.backend.of(1).end({ kind: "success", output: new Uint8Array(2 ** 20) });
      worker.backend.of(2).end({ kind: "success", output: new Uint8Array(2 ** 20 + 1) });
      await resultsOf(session, 2);
      const byItem = new Map(session.results.map((one) => [one.attempt?.itemId[0], one]));
      expect([byItem.get(1)?.outcome, byItem.get(1)?.output.length]).to.deep.equal([
        OutcomeClass.SUCCESS,
        2 ** 20,
      ]);
      expect([byItem.get(2)?.outcome, byItem.get(2)?.output.length]).to.deep.equal([
        OutcomeClass.TOO_LARGE,
        0,
      ]);
    });

    it("and starts nothing, asks for nothing while too many are not acknowledged", async () => {
      const limits = { maxUnackedResults: 1 };
      const [worker, session] = await startReconciled({ slots: 1, prefetch: 1, limits });
      session.assign(assignment(1), assignment(2));
      await started(worker, 1);
      worker.backend.succeed(1);
      await resultsOf(session, 1);
      await settled(session);
      expect([worker.backend.started, session.credit]).to.deep.equal([[1], 2]);
      session.acknowledge(1n);
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
      await eventually("more is asked for", () => session.credit === 3);
    });
  });

  describe("takes work", () => {
    it("and never asks beyond its room, over a run of it", async () => {
      const [worker, session] = await startReconciled();
      let [given, ended] = [0, 0];
      while (ended < 60) {
        const ask = session.credit - given;
        expect(given - ended + ask).to.be.at.most(5);
        const batch = Array.from({ length: Math.min(ask, 1 + (given % 4)) }, () => assignment(given++ % 250));
        if (batch.length > 0) session.assign(...batch);
        await settled(session);
        const running = worker.backend.executions.slice(ended, ended + 1 + (given % 3));
        for (const { item } of running) worker.backend.succeed(item);
        ended += running.length;
        await resultsOf(session, ended);
        session.acknowledge(latestBatch(session));
      }
      expect(refusals(worker)).to.deep.equal([]);
    });

    it("sent twice only once, and says up to where it has received it", async () => {
      const [worker, session] = await startReconciled();
      session.assign(assignment(1), assignment(2));
      await started(worker, 2);
      const assignments = [assignment(1), assignment(2), assignment(3)];
      session.say({ frame: { case: "assignments", value: { firstNumber: 1n, assignments } } });
      expect(await started(worker, 3)).to.deep.equal([1, 2, 3]);
      await eventually("it is acknowledged", () => session.requests.at(-1)?.ackedAssignment === 3n);
    });

    it("that has ended here already not again, and sends the result that there is", async () => {
      const [worker, first] = await startReconciled();
      first.assign(assignment(1));
      await started(worker, 1);
      worker.backend.succeed(1);
      await resultsOf(first, 1);
      first.assign(assignment(1), assignment(2));
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
      expect(first.results).to.have.length(1);
    });

    it("no more when it fences itself, and again when it does not", async () => {
      const [worker, session] = await startReconciled({ slots: 1, prefetch: 1 });
      session.assign(assignment(1), assignment(2));
      await started(worker, 1);
      worker.isFenced = true;
      worker.backend.succeed(1);
      await resultsOf(session, 1);
      session.acknowledge(1n);
      await settled(session);
      expect([worker.backend.started, session.credit]).to.deep.equal([[1], 2]);
      worker.isFenced = false;
      worker.work.wake();
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
    });
  });

  it("asks for less and gives up what waits when items become slow, and takes what was on its way all the same", async () => {
    const [QUICK, SLOW] = [1, 2];
    const backend: Backend = {
      execute: ({ payload }) =>
        payload[0] === QUICK ? Promise.resolve({ kind: "success", output: payload }) : new Promise(() => {}),
      close: () => Promise.resolve(),
    };
    const own = { prefetchMax: 100, backlogTimeMs: 20, plugins: fixedPlugins(backend) };
    const [worker, session] = await startReconciled({ slots: 1, prefetch: 1, ...own });
    let given = 0;
    const give = (kind: number, count: number): void =>
      session.assign(...Array.from({ length: count }, () => assignment(kind, {}, ++given)));
    while (session.credit - given < 10) {
      give(QUICK, session.credit - given);
      await resultsOf(session, given);
      await settled(session);
    }
    const asked = session.credit - given;
    give(SLOW, asked - 2);
    await eventually("all but two are back", () => session.handedBack.length === asked - 4);
    const frames = session.requests.map(({ frame }) => frame);
    const last = frames.findLastIndex(({ case: kind }) => kind === "credit");
    expect(frames[last]?.value).to.include({ more: 0, upTo: BigInt(given) });
    expect(
      frames.slice(last).some((frame) => frame.case === "handBack" && frame.value.handedBack.length > 0),
    ).to.equal(true);
    give(SLOW, 2);
    await eventually("so are those that came late", () => session.handedBack.length === asked - 2);
    expect([refusals(worker), session.isOver]).to.deep.equal([[], false]);
    expect(session.credit, "and nothing more is asked for").to.equal(given);
  });

  it("starts nothing that it was told to keep once it has reason to doubt it, until it is told anew", async () => {
    const [worker, first] = await startReconciled({ slots: 1, prefetch: 2 });
    first.assign(assignment(1), assignment(2), assignment(3));
    await started(worker, 1);
    worker.work.distrust();
    worker.backend.succeed(1);
    const second = await coordinator.session(1);
    await eventually("it says what it has", () => second.requests.length > 0);
    expect(worker.backend.started).to.deep.equal([1]);
    await second.reconcile(({ held }) =>
      held.map(({ attempt }) => (attempt?.itemId[0] === 2 ? HeldVerdict.DROP : HeldVerdict.KEEP)),
    );
    expect(await started(worker, 2)).to.deep.equal([1, 3]);
  });

  describe("releases", () => {
    it("what is asked for and has not started, at once, and says what it was", async () => {
      const [worker, session] = await startReconciled({ slots: 1, prefetch: 3 });
      session.assign(...[1, 2, 3, 4].map((number) => assignment(number)));
      await started(worker, 1);
      const recalled = [1, 3, 4, 9].map((number) => ({ itemId: itemId(number), attempt: 1 }));
      session.say({ frame: { case: "recall", value: { recalled } } });
      const answer = await session.next("handBack");
      expect(answer.handedBack.map(({ itemId: id, attempt }) => [id[0], attempt])).to.deep.equal([
        [3, 1],
        [4, 1],
      ]);
      worker.backend.succeed(1);
      expect(await started(worker, 2)).to.deep.equal([1, 2]);
      worker.backend.succeed(2);
      await resultsOf(session, 2);
      expect(worker.backend.started).to.deep.equal([1, 2]);
    });

    it("nothing of another attempt, with an answer that is empty", async () => {
      const [worker, session] = await startReconciled({ slots: 1, prefetch: 3 });
      session.assign(assignment(1), assignment(2));
      await started(worker, 1);
      const recalled = [{ itemId: itemId(2), attempt: 2 }];
      session.say({ frame: { case: "recall", value: { recalled } } });
      expect((await session.next("handBack")).handedBack).to.deep.equal([]);
    });

    it("all that it has not started when it drains, and what comes after that too", async () => {
      const [worker, session] = await startReconciled({ slots: 1, prefetch: 3 });
      session.assign(assignment(1), assignment(2));
      await started(worker, 1);
      worker.work.stopStarting();
      session.assign(assignment(3), assignment(4));
      await eventually("all of it is back", () => session.handedBack.length === 3);
      expect(session.handedBack).to.deep.equal([2, 3, 4]);
      worker.backend.succeed(1);
      await worker.work.whenIdle();
      await resultsOf(session, 1);
      expect([worker.backend.started, session.credit]).to.deep.equal([[1], 4]);
    });

    it("also what it had stated before the verdict came", async () => {
      const [worker, first] = await startReconciled({ slots: 1, prefetch: 3 });
      first.assign(assignment(1), assignment(2));
      await started(worker, 1);
      first.end();
      const second = await coordinator.session(1);
      await second.next("hello");
      worker.work.stopStarting();
      second.say({ frame: { case: "verdict", value: { verdicts: [KEEP, KEEP] } } });
      await eventually("it is back", () => second.handedBack.length === 1);
      expect([second.handedBack, worker.backend.started]).to.deep.equal([[2], [1]]);
    });
  });

  describe("ends, and what follows on it is not obeyed, when", () => {
    /** Says something that may not be obeyed and gives work in the same breath; then nothing of that work is done. */
    async function refuses(speak: (session: ScriptedSession) => void, reason: string): Promise<void> {
      const [worker, session] = await startReconciled();
      await session.next("credit");
      speak(session);
      session.assign(assignment(1));
      await eventually("it is cut off", () => session.isOver);
      await eventually("it says why", () => refusals(worker).length > 0);
      expect(refusals(worker)).to.deep.equal([`an answer was refused: ${reason}; trying again`]);
      const second = await coordinator.session(1);
      await second.reconcile();
      await settled(second);
      expect(worker.backend.started).to.deep.equal([]);
    }

    it("the epoch is lower than one that was seen", async () => {
      await refuses((session) => {
        coordinator.epoch = 0n;
        session.acknowledge(0n);
        coordinator.epoch = 1n;
      }, "epoch 0 is lower than 1, which was seen");
    });

    it("there is no epoch", async () => {
      await refuses(
        (session) => session.say({ coordinator: {}, frame: { case: undefined } }),
        "the message names no epoch",
      );
    });

    it("more work comes than was asked for", async () => {
      await refuses(
        (session) => session.assign(...[1, 2, 3, 4, 5, 6].map((number) => assignment(number))),
        "it gives 6 attempts, which were not asked for",
      );
    });

    it("assignments are missing", async () => {
      await refuses((session) => {
        const value = { firstNumber: 2n, assignments: [assignment(2)] };
        session.say({ frame: { case: "assignments", value } });
      }, "assignment 2 does not follow 0");
    });

    it("an assignment names no attempt", async () => {
      const attempt = { itemId: new Uint8Array(31), attempt: 1 };
      await refuses((session) => session.assign({ attempt }), "an assignment names no attempt");
    });

    it("a verdict comes again", async () => {
      await refuses(
        (session) => session.say({ frame: { case: "verdict", value: { verdicts: [] } } }),
        "it is a second verdict",
      );
    });

    it("results are acknowledged that were never sent", async () => {
      await refuses(
        (session) => session.say({ ackedResults: 1n, frame: { case: undefined } }),
        "it acknowledges results up to 1, which were never sent",
      );
    });

    type Spoken = NonNullable<Parameters<ScriptedSession["say"]>[0]["frame"]>;
    const early: readonly (readonly [what: string, frame: Spoken, reason: string])[] = [
      [
        "work comes before the verdict",
        { case: "assignments", value: { firstNumber: 1n, assignments: [assignment(1)] } },
        "it gives work before a verdict",
      ],
      [
        "the verdict is on something else",
        { case: "verdict", value: { verdicts: [KEEP] } },
        "it has 1 verdicts on 0 attempts",
      ],
      [
        "attempts are recalled before the verdict",
        { case: "recall", value: { recalled: [] } },
        "it recalls attempts before a verdict",
      ],
    ];
    for (const [what, frame, reason] of early)
      it(what, async () => {
        const worker = await start();
        const session = await coordinator.session(0);
        session.say({ frame });
        await eventually("it is cut off", () => session.isOver);
        await eventually("it says why", () => refusals(worker).length > 0);
        expect(refusals(worker)).to.deep.equal([`an answer was refused: ${reason}; trying again`]);
        expect(worker.backend.started).to.deep.equal([]);
      });
  });

  it("that was ended is not listened to, although it goes on talking", async () => {
    const outgoing = new AsyncQueue<SessionResponse>(10);
    const say = (frame: MessageInitShape<typeof SessionResponseSchema>["frame"] & object): void => {
      const spoken = { coordinator: { coordEpoch: 1n, storeId: new Uint8Array(16) }, frame };
      outgoing.push(create(SessionResponseSchema, spoken));
    };
    let asked = 0;
    const worker = await start({
      sessions: {
        session: async function* (requests) {
          const listening = (async () => {
            for await (const { frame } of requests) asked += frame?.case === undefined ? 0 : 1;
          })();
          yield* outgoing;
          await listening;
        },
      },
    });
    say({ case: "verdict", value: { verdicts: [] } });
    await eventually("credit", () => asked === 2);
    const stopping = worker.work.stop();
    say({ case: "assignments", value: { firstNumber: 1n, assignments: [assignment(1)] } });
    outgoing.end();
    await stopping;
    expect([worker.backend.started, worker.work.holdings().ackedAssignment]).to.deep.equal([[], 0n]);
  });

  it("obeys a new leader when its epoch is on disk, and not before", async () => {
    const [worker, session] = await startReconciled();
    await settled(session);
    expect(worker.epochsMet).to.deep.equal([1]);
    const disk = Promise.withResolvers<undefined>();
    worker.disk = disk.promise;
    coordinator.epoch = 2n;
    session.end();
    const next = await coordinator.session(1);
    await next.reconcile();
    await eventually("the second epoch", () => worker.epochsMet.length === 2);
    await settle();
    expect(next.credit).to.equal(0);
    disk.resolve(undefined);
    await eventually("credit", () => next.credit > 0);
    expect(worker.epochsMet).to.deep.equal([1, 2]);
  });

  it("is not opened again by a worker that was superseded", async () => {
    const worker = await start();
    const session = await coordinator.session(0);
    session.outgoing.end(toConnectError(failure("worker_superseded", { worker: "01" })));
    await eventually("it says so", () => worker.superseded === 1);
    await worker.stop();
    expect([coordinator.sessions.length, worker.failed, worker.fatal]).to.deep.equal([1, [], []]);
  });
});

function latestBatch(session: ScriptedSession): bigint {
  const frame = session.requests.findLast((request) => request.frame.case === "results")?.frame;
  return frame?.case === "results" ? frame.value.number : 0n;
}
