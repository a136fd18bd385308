import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { ulidToBytes } from "../../../src/base/ids.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { watchEvents } from "../../../src/client/events.ts";
import { readAttemptLog, readItem } from "../../../src/client/items.ts";
import { findWorker, listWorkers } from "../../../src/client/list-workers.ts";
import { cancelRun, pauseRun, resumeRun, retryItems } from "../../../src/client/run-control.ts";
import { readRunStatus } from "../../../src/client/run-status.ts";
import { drainWorker, readWorker, untilGone } from "../../../src/client/worker-control.ts";
import { WorkerState } from "../../../src/gen/rollout/v1/common_pb.ts";
import { ItemState, RunState } from "../../../src/gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../../../src/gen/rollout/v1/work_pb.ts";
import { newWorkerId } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeRunService } from "../../support/fake-run-service.ts";
import type { FakeRunService } from "../../support/fake-run-service.ts";
import { rejectionOf } from "../../support/rejection.ts";

describe("what an operator asks of a run", () => {
  const closeLater = useClosers();
  const [one, other] = [newWorkerId(), newWorkerId()];

  async function serving(handlers: Parameters<typeof startFakeRunService>[0]): Promise<FakeRunService> {
    const service = await startFakeRunService(handlers);
    closeLater(() => service.close());
    return service;
  }

  it("its status: numbers, and nothing where there is nothing", async () => {
    const full = await serving({
      getRun: () => ({
        state: RunState.PAUSED,
        pauseReason: "too many failures",
        pending: 5n,
        delayed: 1n,
        running: 3n,
        executing: 2n,
        failedByClass: { timeout: 2n, error: 1n, crash: 0n },
        taskDigest: Buffer.alloc(32),
        plugin: "infer",
        taskSummary: "infer: python3",
        workers: { ready: 2, cordoned: 1, revoked: 3 },
      }),
    });
    expect(await readRunStatus(full.transport)).to.deep.include({
      state: "paused",
      pauseReason: "too many failures",
      pending: 5,
      delayed: 1,
      running: 3,
      executing: 2,
      failedByClass: { error: 1, timeout: 2 },
      task: { plugin: "infer", summary: "infer: python3" },
      workers: { ready: 2, draining: 0, suspected: 0, failed: 0, cordoned: 1, revoked: 3 },
    });
    const empty = await serving({ getRun: () => ({}) });
    expect(await readRunStatus(empty.transport)).to.include({
      state: "unknown",
      task: undefined,
      pauseReason: undefined,
    });
  });

  it("to pause, to resume, to cancel", async () => {
    const calls: string[] = [];
    const { transport } = await serving({
      pause: ({ reason }) => (calls.push(`pause ${reason}`), {}),
      resume: () => (calls.push("resume"), {}),
      cancel: () => (calls.push("cancel"), {}),
    });
    await pauseRun(transport, "lunch");
    await resumeRun(transport);
    await cancelRun(transport);
    expect(calls).to.deep.equal(["pause lunch", "resume", "cancel"]);
  });

  it("to take back what failed: page by page, until nothing is left", async () => {
    const asked: string[] = [];
    const { transport } = await serving({
      retry: ({ after, failureClass }) => {
        asked.push(`${failureClass}/${after}`);
        return { retried: 2n, skipped: 0n, after: after === "b" ? "" : after === "a" ? "b" : "a" };
      },
    });
    const retried = await retryItems(transport, { failureClass: "timeout", items: [] });
    expect(retried).to.deep.equal({ retried: 6, skipped: 0 });
    expect(asked).to.deep.equal(["timeout/", "timeout/a", "timeout/b"]);
  });

  it("to take back named items, as many at a time as fit a message", async () => {
    const sizes: number[] = [];
    const { transport } = await serving({
      retry: ({ itemIds }) => {
        sizes.push(itemIds.length);
        return { retried: BigInt(itemIds.length - 1), skipped: 1n };
      },
    });
    const items = Array.from({ length: 2_500 }, () => Buffer.alloc(32));
    expect(await retryItems(transport, { items })).to.deep.equal({ retried: 2_497, skipped: 3 });
    expect(sizes).to.deep.equal([1_000, 1_000, 500]);
  });

  it("where an item stands, and what became of its attempts", async () => {
    const names: string[] = [];
    const { transport } = await serving({
      getItem: ({ name }) => {
        names.push(name);
        return {
          itemId: Buffer.alloc(32, 0xab),
          label: "prompt-17",
          state: ItemState.DELAYED,
          dueAtMs: 7n,
          attempt: 1,
          attempts: [
            { attempt: 1, outcome: OutcomeClass.TIMEOUT, workerId: ulidToBytes(one), logBytes: 12n },
            { attempt: 2, outcome: OutcomeClass.CRASH_SHARED, startedAtMs: 5n, durationMs: 6n },
          ],
        };
      },
    });
    const item = await readItem(transport, "abab");
    expect(names).to.deep.equal(["abab"]);
    expect(item).to.include({ item: "ab".repeat(32), id: "prompt-17", state: "delayed", dueAtMs: 7 });
    expect(item).to.include({ ahead: undefined, worker: undefined, result: undefined });
    expect(item.attempts).to.have.length(2);
    expect(item.attempts[0]).to.include({ outcome: "timeout", worker: one, logBytes: 12 });
    expect(item.attempts[0]).to.include({ startedAtMs: undefined, durationMs: undefined });
    expect(item.attempts[1]).to.include({ outcome: "crash_shared", startedAtMs: 5, durationMs: 6 });
  });

  it("what an attempt wrote, byte for byte", async () => {
    const log = Uint8Array.of(0, 255, 10);
    const { transport } = await serving({ getAttemptLog: ({ attempt }) => ({ attempt: attempt + 3, log }) });
    expect(await readAttemptLog(transport, Buffer.alloc(32), 0)).to.deep.equal({ attempt: 3, log });
  });

  it("how a worker is, and that it leaves", async () => {
    let polls = 0;
    const drained: string[] = [];
    const info = { workerId: ulidToBytes(one), incarnation: ulidToBytes(other), held: 2 };
    const { transport } = await serving({
      listWorkers: () => ({
        workers: [{ ...info, cordonReason: "5 failures", trouble: "loading", revoked: true }],
      }),
      getWorker: () => ({
        info: { ...info, state: polls++ < 2 ? WorkerState.DRAINING : WorkerState.GONE },
        held: [{ itemId: Buffer.alloc(32, 1), attempt: 3 }],
        credit: 4n,
        hasSession: true,
      }),
      drainWorker: ({ workerId: id }) => (drained.push(Buffer.from(id).toString("hex")), {}),
    });
    const workers = await listWorkers(transport);
    expect(findWorker(workers, one.toLowerCase())).to.include({
      held: 2,
      cordonReason: "5 failures",
      trouble: "loading",
      revoked: true,
    });
    expect(findWorker(workers, other)).to.equal(undefined);
    expect(await readWorker(transport, one)).to.deep.include({
      trouble: undefined,
      revoked: false,
      state: "draining",
      credit: 4,
      hasSession: true,
      holds: [{ item: "01".repeat(32), attempt: 3 }],
    });
    await drainWorker(transport, one);
    expect(drained).to.deep.equal([Buffer.from(ulidToBytes(one)).toString("hex")]);
    expect(await untilGone(transport, one, { clock: systemClock })).to.equal("gone");
    expect(polls).to.equal(3);
  });
});

describe("watching events", () => {
  const closeLater = useClosers();
  const options = { clock: systemClock, random: seededRandom(1) };
  let past: string[];
  let dropped: bigint;
  let service: FakeRunService;

  beforeEach(async () => {
    [past, dropped] = [['{"n":1}', '{"n":2}'], 0n];
    service = await startFakeRunService({
      async *watchEvents({ follow }, context) {
        yield { events: past, dropped };
        if (!follow) return;
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      },
    });
    closeLater(() => service.close());
  });

  it("ends behind what has happened", async () => {
    dropped = 3n;
    const lines: string[] = [];
    const lost: number[] = [];
    const watched = watchEvents(service.transport, {
      ...options,
      follow: false,
      onDropped: (count) => lost.push(count),
    });
    for await (const line of watched) lines.push(line);
    expect([lines, lost]).to.deep.equal([past, [3]]);
  });

  it("goes on over a restart of the coordinator, tells nothing twice, and ends when it is stopped", async () => {
    const stop = new AbortController();
    const lines: string[] = [];
    const told: boolean[] = [];
    const watching = (async () => {
      const following = { ...options, follow: true, signal: stop.signal };
      const onTrouble = (error: unknown): void => void told.push(error !== undefined);
      for await (const line of watchEvents(service.transport, { ...following, onTrouble })) lines.push(line);
    })();
    await eventually("the past", () => lines.length === 2);
    await service.goAway();
    await eventually("it is missed", () => told.length > 0);
    past = [...past, '{"n":3}'];
    await service.comeBack();
    await eventually("what is new", () => lines.length === 3);
    stop.abort();
    await watching;
    expect(lines).to.deep.equal(past);
    expect(told).to.deep.equal([true, false]);
  });

  it("does not wait for a coordinator that was never there", async () => {
    await service.goAway();
    const watched = watchEvents(service.transport, { ...options, follow: true });
    expect(await rejectionOf(watched.next())).to.have.property("code", "coordinator_refused_connection");
  });
});
