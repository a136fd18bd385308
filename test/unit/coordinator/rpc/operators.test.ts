// Operators' calls, over a real listener with mutual TLS and a real coordinator: a whole run, and what each call promises there.
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { BeatVerdict } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import type {
  ListResultsResponse,
  WatchChartsResponse,
  WatchEventsResponse,
} from "../../../../src/gen/rollout/v1/run_pb.ts";
import { ResultOrder, OperatorService, RunState } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { Sight } from "../../../../src/coordinator/sight/sight.ts";
import { EventJournal } from "../../../../src/observe/event-journal.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { callingIdentity } from "./calling-worker.ts";
import { workInSession } from "./session-client.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";
import { RecordingEmitter } from "../../../support/recording-emitter.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage, seenRun } from "../../../support/worker-client.ts";

const TASK = {
  taskDigest: new Uint8Array(32).fill(3),
  plugin: "infer",
  taskSummary: "infer: python3 infer.py",
};

describe("operators and their coordinator", () => {
  const led = useLedCluster(({ runId }) => {
    const events = new EventJournal({ events: new RecordingEmitter(), runId, clock: systemClock });
    return { inboxMax: 1_000, eventFeed: events, events, sight: new Sight(systemClock) };
  });

  let submissions = 0;
  function submit(
    items: readonly { payload: string; label?: string; sampleIndex?: number }[],
    about: Parameters<typeof led.operator.run.submit>[0] = {},
  ): ReturnType<typeof led.operator.run.submit> {
    const submissionId = new Uint8Array(16).fill(++submissions);
    const wire = items.map((item) => ({ ...item, payload: Buffer.from(item.payload) }));
    return led.operator.run.submit({ submissionId, batchNumber: 1n, ...TASK, items: wire, ...about });
  }

  /** Works on what there is until the run has no more of it. */
  async function workOff(): Promise<void> {
    const ended = new AbortController();
    const who = await callingIdentity(led.listening);
    const working = workInSession({ ...who, room: 16 }, ended.signal);
    await eventually("everything is final", async () => {
      const { pending, running } = await seenRun(led.operator.run);
      return pending === 0 && running === 0;
    });
    ended.abort();
    await working.catch(() => undefined);
  }

  async function readOn(
    order: ResultOrder,
    after = "",
  ): Promise<{ texts: string[]; page: ListResultsResponse }> {
    const texts: string[] = [];
    for (let cursor = after; ;) {
      const page = await led.operator.run.listResults({ order, after: cursor, limit: 7 });
      texts.push(...page.results.map(({ output }) => Buffer.from(output).toString()));
      cursor = page.after;
      if (page.caughtUp) return { texts, page };
    }
  }

  it("read every result once, in order, across a restart of the coordinator", async () => {
    const texts = Array.from({ length: 40 }, (_, at) => `item ${at}`);
    // Any plugin that a worker has.
    const plugin = "";
    await submit(
      texts.slice(0, 25).map((payload) => ({ payload })),
      { plugin },
    );
    await workOff();
    const [input, completion] = [await readOn(ResultOrder.INPUT), await readOn(ResultOrder.COMPLETION)];
    expect(input.page.end).to.equal(false);
    await led.restart();
    await submit(texts.slice(25).map((payload) => ({ payload })));
    await led.operator.run.seal({});
    await workOff();
    await eventually("it is complete", async () => {
      return (await seenRun(led.operator.run)).state === RunState.COMPLETE;
    });
    const outputs = texts.map((text) => text.toUpperCase());
    const rest = await readOn(ResultOrder.INPUT, input.page.after);
    expect([...input.texts, ...rest.texts]).to.deep.equal(outputs);
    expect(rest.page.end).to.equal(true);
    const others = await readOn(ResultOrder.COMPLETION, completion.page.after);
    expect([...completion.texts, ...others.texts].sort()).to.deep.equal([...outputs].sort());
  });

  describe("submit items", () => {
    it("of one task, which outlives the coordinator", async () => {
      await submit([{ payload: "a" }]);
      await led.restart();
      const { plugin, task } = await seenRun(led.operator.run);
      expect([plugin, task]).to.deep.equal([TASK.plugin, TASK.taskSummary]);
      const other = { taskDigest: new Uint8Array(32).fill(4), taskSummary: "wc -w" };
      for (const dryRun of [false, true]) {
        const failure = await failureOf(submit([{ payload: "b" }], { ...other, dryRun }));
        expect(failure.code).to.equal("other_task");
        expect(failure.params).to.deep.equal({ task: TASK.taskSummary, other: "wc -w" });
      }
    });

    it("and are told how many are new, known and duplicates, also when the answer was lost", async () => {
      const submissionId = new Uint8Array(16).fill(200);
      const items = [{ payload: "a" }, { payload: "b" }, { payload: "a" }];
      for (let time = 0; time < 2; time++)
        expect(await submit(items, { submissionId })).to.deep.include({
          added: 3n,
          known: 0n,
          duplicates: 1n,
        });
      expect(await submit(items)).to.deep.include({ added: 0n, known: 3n, duplicates: 1n });
    });

    it("in a dry run, which says what would happen and does nothing", async () => {
      const dryRun = true;
      const items = [
        { payload: "a", sampleIndex: 0 },
        { payload: "b", sampleIndex: 0 },
        { payload: "a", sampleIndex: 1 },
      ];
      expect(await submit(items, { dryRun })).to.deep.include({ added: 3n, known: 0n, duplicates: 1n });
      const { pending, task } = await seenRun(led.operator.run);
      expect([pending, task]).to.deep.equal([0, undefined]);
      await submit(items.slice(0, 2));
      expect(await submit(items, { dryRun })).to.deep.include({ added: 1n, known: 2n, duplicates: 1n });
      expect(await seenRun(led.operator.run)).to.deep.include({ pending: 2 });
      await led.operator.run.seal({});
      expect((await failureOf(submit(items, { dryRun }))).code).to.equal("run_sealed");
      expect(await submit(items.slice(0, 2), { dryRun })).to.deep.include({ added: 0n, known: 2n });
    });

    it("with labels and texts of bounded length", async () => {
      const long = "é".repeat(129);
      const calls = [
        submit([{ payload: "a", label: long }]),
        submit([{ payload: "a" }], { plugin: long }),
        submit([{ payload: "a" }], { taskSummary: "x".repeat(5_000) }),
        submit([{ payload: "a" }], { taskDigest: new Uint8Array(31) }),
      ];
      for (const call of calls) expect((await failureOf(call)).code).to.equal("request_invalid");
      await submit([{ payload: "a", label: "é".repeat(128) }]);
    });
  });

  describe("ask for workers", () => {
    it("and are shown one closely", async () => {
      const { beats, worker } = await led.join({ id: workerId(1) });
      await beats.beat({ beat: beatMessage(worker) });
      const detail = await led.operator.run.getWorker({ workerId: worker.id });
      expect(detail).to.deep.include({ credit: 0, hasSession: false, failuresInRow: 0, holds: [] });
      const { incarnation } = worker;
      expect(detail.info).to.deep.include({ held: 0, incarnation, state: WorkerState.READY });
      expect(detail.info?.cordonReason).to.equal(undefined);
    });

    it("to drain: the worker is told until it does, and gets nothing more", async () => {
      const { beats, worker } = await led.join({ id: workerId(1) });
      const beat = async (
        sequence: bigint,
        state: WorkerState = WorkerState.READY,
      ): Promise<BeatVerdict | undefined> =>
        (await beats.beat({ beat: beatMessage(worker, { sequence, state }) })).ack?.verdict;
      expect(await beat(1n)).to.equal(BeatVerdict.ACCEPTED);
      await led.operator.run.drainWorker({ workerId: worker.id });
      await led.operator.run.drainWorker({ workerId: worker.id });
      expect([await beat(2n), await beat(3n)]).to.deep.equal([BeatVerdict.DRAIN, BeatVerdict.DRAIN]);
      expect(await beat(4n, WorkerState.DRAINING)).to.equal(BeatVerdict.ACCEPTED);
      expect((await seenRun(led.operator.run)).workers).to.deep.include({ ready: 0, draining: 1 });
      // The next process of it is another one.
      const next = { id: worker.id, incarnation: incarnationId(2) };
      const { ack } = await beats.beat({ beat: beatMessage(next) });
      expect(ack?.verdict).to.equal(BeatVerdict.ACCEPTED);
    });

    it("that there are not, and are told so", async () => {
      const unknown = { workerId: workerId(9) };
      for (const call of [led.operator.run.getWorker(unknown), led.operator.run.drainWorker(unknown)]) {
        const failure = await failureOf(call);
        expect([failure.code, failure.params["worker"]]).to.deep.equal(["worker_unknown", workerId(9)]);
      }
      expect((await failureOf(led.operator.run.getWorker({}))).code).to.equal("request_invalid");
    });
  });

  describe("watch events", () => {
    const topicsOf = (events: readonly string[]): unknown[] =>
      events.map((line) => (JSON.parse(line) as { topic: unknown }).topic);

    it("that have happened, and the answer ends", async () => {
      await led.operator.run.pause({ reason: "lunch" });
      await led.operator.run.resume({});
      const topics: unknown[] = [];
      for await (const { events, coordinator } of led.operator.run.watchEvents({})) {
        topics.push(...topicsOf(events));
        expect(coordinator?.coordEpoch).to.equal(0n);
      }
      expect(topics).to.deep.equal(["run_paused", "run_resumed"]);
    });

    it("that happen, until they leave", async () => {
      await led.operator.run.pause({});
      const leaving = new AbortController();
      const following = led.operator.run
        .watchEvents({ follow: true }, { signal: leaving.signal })
        [Symbol.asyncIterator]();
      const next = async (): Promise<unknown[]> => {
        const page: IteratorResult<WatchEventsResponse, unknown> = await following.next();
        return page.done === true ? [] : topicsOf(page.value.events);
      };
      expect(await next()).to.deep.equal(["run_paused"]);
      await led.operator.run.resume({});
      expect(await next()).to.deep.equal(["run_resumed"]);
      leaving.abort();
      await following.next().catch(() => undefined);
      expect((await seenRun(led.operator.run)).state).to.equal(RunState.OPEN);
    });

    it("until the coordinator stops", async () => {
      const following = led.operator.run.watchEvents({ follow: true })[Symbol.asyncIterator]();
      await following.next();
      await led.listening.stop();
      expect((await following.next().catch(() => ({ done: true }))).done).to.equal(true);
    });
  });

  describe("watch the charts", () => {
    const pages = (signal: AbortSignal): AsyncIterator<WatchChartsResponse> =>
      led.operator.run.watchCharts({}, { signal })[Symbol.asyncIterator]();
    const stepsOf = ({ transitions }: WatchChartsResponse): unknown[] =>
      transitions.map(({ chart, actor, event, from, to }) => [chart, actor, event, from, to]);

    it("from the last steps on, with the course of the run and items at work", async () => {
      const leaving = new AbortController();
      await submit([{ payload: "a" }]);
      await led.operator.run.pause({ reason: "lunch" });
      const watching = pages(leaving.signal);
      const next = async (): Promise<WatchChartsResponse> => {
        const page: IteratorResult<WatchChartsResponse, unknown> = await watching.next();
        if (page.done === true) throw new Error("nobody is told any more");
        return page.value;
      };
      const first = await next();
      expect(stepsOf(first)).to.deep.equal([["run", "", "run.paused", "Open.Active", "Open.Paused"]]);
      expect(first.history).to.deep.include({ anew: true, intervalMs: 1_000 });
      expect(first.history?.points.at(-1)).to.include({ done: 0, failed: 0, workers: 0 });
      await led.operator.run.resume({});
      const told: unknown[] = [];
      let pending: number | undefined;
      let isSampled = false;
      while (pending === undefined || !isSampled || told.length === 0) {
        const page = await next();
        told.push(...stepsOf(page));
        pending ??= page.history?.points.at(-1)?.pending;
        isSampled ||= page.atWork !== undefined;
      }
      expect(told[0]).to.deep.equal(["run", "", "run.resumed", "Open.Paused", "Open.Active"]);
      expect(pending).to.equal(1);
      leaving.abort();
      await watching.next().catch(() => undefined);
    });

    it("until the coordinator stops", async () => {
      const watching = pages(new AbortController().signal);
      await watching.next();
      await led.listening.stop();
      for (;;) {
        const { done = false } = await watching.next().catch(() => ({ done: true }));
        if (done) return;
      }
    });
  });

  it("are the only ones who may ask any of it", async () => {
    const { run } = await led.join({ role: "worker" });
    const call = (calls: unknown, method: string): Promise<unknown> =>
      (calls as Record<string, (request: object) => Promise<unknown>>)[method]?.({}) ?? Promise.resolve();
    const methods = OperatorService.methods.map(({ localName }) => localName);
    for (const method of methods) {
      if (method.startsWith("watch") || method === "backUp") continue;
      expect((await failureOf(call(run, method))).code, method).to.equal("permission_denied");
    }
    for (const stream of [run.watchEvents({}), run.watchCharts({}), run.backUp({})])
      expect((await failureOf(stream[Symbol.asyncIterator]().next())).code).to.equal("permission_denied");
    expect(methods).to.have.length(17);
  });
});
