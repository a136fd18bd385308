import { createClient } from "@connectrpc/connect";
import type { Client } from "@connectrpc/connect";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { seededRandom } from "../../../src/base/random.ts";
import { watchEvents } from "../../../src/client/events.ts";
import { askForItem, itemOf } from "../../../src/client/items.ts";
import { askForKey, listKeys, skipParked, steerKeys } from "../../../src/client/keys.ts";
import { retryItems } from "../../../src/client/run-control.ts";
import { statusOf } from "../../../src/client/run-status.ts";
import { jsonItems, submitLines } from "../../../src/client/submit.ts";
import { findWorker, listWorkers, untilGone, workerDetailOf } from "../../../src/client/workers.ts";
import { mockManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { WorkerState } from "../../../src/gen/rollout/v1/common_pb.ts";
import { KeyAction, KeyRefusalReason, KeyService } from "../../../src/gen/rollout/v1/keys_pb.ts";
import { ItemState, KeyPhase, OperatorService, RunState } from "../../../src/gen/rollout/v1/run_pb.ts";
import { newWorkerId } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { startFakeOperatorService } from "./fake-operator-service.ts";
import type { FakeOperatorService } from "./fake-operator-service.ts";
import { failureOf, rejectionOf } from "../../support/rejection.ts";

describe("what an operator asks of a run", () => {
  const closeLater = useClosers();
  const [one, other] = [newWorkerId(), newWorkerId()];

  async function serving(
    handlers: Parameters<typeof startFakeOperatorService>[0],
  ): Promise<Client<typeof OperatorService>> {
    const service = await startFakeOperatorService(handlers);
    closeLater(() => service.close());
    return createClient(OperatorService, service.transport);
  }

  it("its status: the seconds of its pace, and its task in one", async () => {
    const run = {
      ...{ state: RunState.PAUSED, pauseReason: "too many failures", pending: 5, running: 3, executing: 2 },
      ...{ waitingAtWorkers: 1, finishedPerSecond: 1.5, plugin: "infer", task: "infer: python3" },
      workers: { ready: 2, cordoned: 1, revoked: 3 },
    };
    const full = await serving({ getRun: () => ({ run, finishedPerSecond: [1, 2] }) });
    const status = statusOf(await full.getRun({}));
    expect(status).to.deep.include({
      ...{ state: "paused", pauseReason: "too many failures", pending: 5, running: 3, executing: 2 },
      task: { plugin: "infer", summary: "infer: python3" },
      finishedPerSecond: [1, 2],
      workers: { ready: 2, draining: 0, suspected: 0, failed: 0, cordoned: 1, revoked: 3 },
    });
    expect(status).to.not.have.any.keys("waitingAtWorkers", "plugin");
    const empty = await serving({ getRun: () => ({ run: {} }) });
    expect(statusOf(await empty.getRun({}))).to.include({ state: "unknown", task: undefined });
  });

  it("to take back what failed: page by page, until nothing is left", async () => {
    const asked: string[] = [];
    const calls = await serving({
      retry: ({ after, failureClass }) => {
        asked.push(`${failureClass}/${after}`);
        return { retried: 2, skipped: 0, after: after === "b" ? "" : after === "a" ? "b" : "a" };
      },
    });
    const retried = await retryItems(calls, { failureClass: "timeout", items: [] });
    expect(retried).to.deep.equal({ retried: 6, skipped: 0 });
    expect(asked).to.deep.equal(["timeout/", "timeout/a", "timeout/b"]);
  });

  it("to take back named items, as many at a time as fit a message", async () => {
    const sizes: number[] = [];
    const calls = await serving({
      retry: ({ items }) => {
        sizes.push(items.length);
        return { retried: items.length - 1, skipped: 1 };
      },
    });
    const items = Array.from({ length: 2_500 }, () => "ab".repeat(32));
    expect(await retryItems(calls, { items })).to.deep.equal({ retried: 2_497, skipped: 3 });
    expect(sizes).to.deep.equal([900, 900, 700]);
  });

  it("where an item stands, by its name", async () => {
    const names: string[] = [];
    const payload = Uint8Array.of(7);
    const calls = await serving({
      getItem: ({ name }) => {
        names.push(name);
        const item = { item: "ab".repeat(32), id: "prompt-17", state: ItemState.DELAYED, dueAtMs: 7 };
        return { item, payload, assignedAgeMs: 3 };
      },
    });
    const item = itemOf(await askForItem(calls, "abab"));
    expect(names).to.deep.equal(["abab"]);
    expect(item).to.include({ item: "ab".repeat(32), id: "prompt-17", state: "delayed", dueAtMs: 7 });
    expect(item).to.include({ ahead: undefined, worker: undefined, result: undefined, assignedAgeMs: 3 });
    expect(item).to.deep.include({ itemId: Buffer.alloc(32, 0xab), payload });
    expect(item).to.not.have.property("error");
  });

  it("how a worker is, and that it leaves", async () => {
    let polls = 0;
    const info = { workerId: one, incarnation: other, held: 2 };
    const calls = await serving({
      getRun: () => ({ run: {}, after: `n0.${polls}.0` }),
      listWorkers: () => ({
        workers: [{ ...info, cordonReason: "5 failures", trouble: "loading", revoked: true }],
      }),
      getWorker: () => ({
        info: { ...info, state: polls++ < 2 ? WorkerState.DRAINING : WorkerState.GONE },
        holds: [{ item: "01".repeat(32), attempt: 3 }],
        credit: 4,
        hasSession: true,
      }),
    });
    const workers = await listWorkers(calls);
    expect(findWorker(workers, one.toLowerCase())).to.include({
      held: 2,
      cordonReason: "5 failures",
      trouble: "loading",
      revoked: true,
    });
    expect(findWorker(workers, other)).to.equal(undefined);
    expect(workerDetailOf(await calls.getWorker({ workerId: one }))).to.deep.include({
      trouble: undefined,
      revoked: false,
      state: "draining",
      credit: 4,
      hasSession: true,
      holds: [{ item: "01".repeat(32), attempt: 3 }],
    });
    expect(await untilGone(calls, one, { clock: systemClock })).to.equal("gone");
    expect(polls).to.equal(3);
  });
});

describe("watching events", () => {
  const closeLater = useClosers();
  const options = { clock: systemClock, random: seededRandom(1) };
  let past: string[];
  let dropped: number;
  let service: FakeOperatorService;

  beforeEach(async () => {
    [past, dropped] = [['{"n":1}', '{"n":2}'], 0];
    service = await startFakeOperatorService({
      async *watchEvents({ follow }, context) {
        yield { events: past, dropped };
        if (!follow) return;
        await new Promise<void>((resolve) => context.signal.addEventListener("abort", () => resolve()));
      },
    });
    closeLater(() => service.close());
  });

  it("ends behind what has happened", async () => {
    dropped = 3;
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

  it("waits for a coordinator that was never there, if it follows", async () => {
    await service.goAway();
    const looking = watchEvents(service.transport, { ...options, follow: false });
    expect(await rejectionOf(looking.next())).to.have.property("code", "coordinator_refused_connection");
    const stop = new AbortController();
    let isMissed = false;
    const watched = watchEvents(service.transport, {
      ...{ ...options, follow: true, signal: stop.signal },
      onTrouble: (error) => (isMissed ||= error !== undefined),
    });
    const first = watched.next();
    await eventually("it is missed", () => isMissed);
    await service.comeBack();
    expect((await first).value).to.equal(past[0]);
    stop.abort();
    await watched.return(undefined);
  });

  it("to take items: of a batch with one that lacks its key none, of those before each", async () => {
    const batches: number[] = [];
    const service = await startFakeOperatorService({
      submit: ({ items }) => {
        batches.push(items.length);
        expect(items.map(({ key }) => key)).to.include("k");
        return { added: BigInt(items.length) };
      },
    });
    closeLater(() => service.close());
    const options = {
      task: taskOf(mockManifest()),
      priority: 0,
      clock: systemClock,
      random: seededRandom(1),
    };
    const lines = jsonItems([...Array.from({ length: 2_005 }, () => ({ key: "k" })), {}], 100, {
      key: "key",
    });
    const error = await failureOf(submitLines(service.transport, lines, options));
    expect(error.params).to.include({ line: "2006", reason: "it has no key, which is its key" });
    expect(batches).to.deep.equal([2_000]);
  });

  describe("and of its keys", () => {
    async function servingKeys(
      handlers: Parameters<typeof startFakeOperatorService>[1],
    ): Promise<Client<typeof KeyService>> {
      const service = await startFakeOperatorService({}, handlers);
      closeLater(() => service.close());
      return createClient(KeyService, service.transport);
    }

    it("all of them, page by page, in the states that are named", async () => {
      const asked: unknown[] = [];
      const calls = await servingKeys({
        listKeys: ({ phases, after }) => {
          asked.push([phases, after]);
          const [key, next] = after === "" ? ["a", "more"] : ["b", ""];
          return { keys: [{ key, phase: KeyPhase.PARKED, parkedBy: "failed" }], after: next };
        },
      });
      const found = [];
      for await (const { key, phase, owner } of listKeys(calls, ["parked", "idle"]))
        found.push([key, phase, owner]);
      expect(found).to.deep.equal([
        ["a", "parked", undefined],
        ["b", "parked", undefined],
      ]);
      const phases = [KeyPhase.PARKED, KeyPhase.IDLE];
      expect(asked).to.deep.equal([
        [phases, ""],
        [phases, "more"],
      ]);
    });

    it("to steer many, a hundred at a time, and who refused", async () => {
      const sizes: number[] = [];
      const calls = await servingKeys({
        steerKeys: ({ keys, action }) => {
          sizes.push(keys.length);
          expect(action).to.equal(KeyAction.RETIRE);
          const refused = keys.slice(0, 1).map((key) => ({ key, reason: KeyRefusalReason.NOT_IDLE }));
          return { steered: keys.length - 1, refused };
        },
      });
      const keys = Array.from({ length: 101 }, (_, at) => String(at));
      expect(await steerKeys(calls, "retire", keys)).to.deep.equal({
        steered: 99,
        refused: [
          { key: "0", reason: "not_idle" },
          { key: "100", reason: "not_idle" },
        ],
      });
      expect(sizes).to.deep.equal([100, 1]);
      expect(await steerKeys(calls, "skip", [])).to.deep.equal({ steered: 0, refused: [] });
    });

    it("to skip what a failed item keeps, and nothing that an operator has paused", async () => {
      const skipped: string[] = [];
      const calls = await servingKeys({
        listKeys: () => ({
          keys: ["failed", "paused"].map((parkedBy) => ({ key: parkedBy, phase: KeyPhase.PARKED, parkedBy })),
        }),
        steerKeys: ({ keys, action }) => {
          expect(action).to.equal(KeyAction.SKIP);
          skipped.push(...keys);
          return { steered: keys.length };
        },
      });
      expect(await skipParked(calls)).to.equal(1);
      expect(skipped).to.deep.equal(["failed"]);
    });

    it("the state of one, to the byte", async () => {
      const state = Buffer.of(0, 1, 255);
      const calls = await servingKeys({
        getKey: ({ key, withState }) => ({ key: { key, phase: KeyPhase.IDLE }, ...(withState && { state }) }),
      });
      const found = await askForKey(calls, "k", true);
      expect(Buffer.from(found.state ?? [])).to.deep.equal(state);
      expect(await askForKey(calls, "k", false)).to.include({ key: "k", phase: "idle", state: undefined });
      expect((await failureOf(askForKey(calls, "", true))).code).to.equal("key_unknown");
    });
  });
});
