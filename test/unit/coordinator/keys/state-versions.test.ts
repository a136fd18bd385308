import { expect } from "chai";
import { World } from "../../../support/world.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Beat } from "../../../../src/coordinator/turn/input.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { ERROR, successOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
const LONG_MS = 70_000;
/** A cordoned worker is tried as often. */
const TRIED_AGAIN_MS = 190_000;
/** The longest wait behind a first failure. */
const BACKOFF_MS = 2_000;

function pluginOf(stateVersion: number): Beat["plugins"] {
  return [{ name: "order", version: `of ${stateVersion}`, stateVersion }];
}

function leaving(item: HeldItem, stateVersion: number): ReportedOutcome {
  const keyed = { basedOn: item.keyed?.commit ?? 0, state: Buffer.from(item.text), stateVersion };
  return { ...successOf(item), keyed };
}

async function workerOf(world: World, number: number, stateVersion: number): Promise<WorldWorker> {
  const worker = await world.worker(number, { slots: 4, credit: 0 });
  worker.plugins = pluginOf(stateVersion);
  await world.watch(100, [worker]);
  return worker;
}

async function only(worker: WorldWorker): Promise<HeldItem> {
  await worker.ask(1);
  const [item] = worker.held;
  if (item === undefined) return expect.fail("it was given nothing");
  return item;
}

describe("states of versions", () => {
  const start = (isChecked = true): Promise<World> =>
    World.start({ store: new MemoryStore(), seed: 1, keys: { totalPartitions: 8 }, isChecked });

  it("never bring an item with a state of version 2 to a worker of version 1, also when the worker of version 2 has left", async () => {
    // Work that waits beside a worker with room is what its checks look for, and what is wanted here.
    const world = await start(false);
    const [older, newer] = [await workerOf(world, 1, 1), await workerOf(world, 2, 2)];
    await world.submit(["a 1", "a 2", "a 3"], { keyOf });
    const first = await only(newer);
    await newer.report([first], leaving(first, 2));
    await older.ask(4);
    await world.watch(LONG_MS, [older, newer]);
    expect(older.texts, "its partition may be its own, and it has room").to.deep.equal([]);
    const second = await only(newer);
    // An item that a worker has failed is for others, and this one must not be it.
    await newer.report([second], { kind: "error", message: "not now" });
    await world.watch(LONG_MS, [older, newer]);
    expect(older.texts).to.deep.equal([]);
    expect((await only(newer)).text).to.equal("a 2");
  });

  it("that only one worker can read are tried there again, and wait for no other worker", async () => {
    const world = await start();
    const [older, newer] = [await workerOf(world, 1, 1), await workerOf(world, 2, 2)];
    await world.submit(["a 1", "a 2"], { keyOf });
    const first = await only(newer);
    await newer.report([first], leaving(first, 2));
    const second = await only(newer);
    await older.ask(4);
    await newer.report([second], { kind: "error", message: "not now" });
    await newer.ask(1);
    await world.watch(BACKOFF_MS, [older, newer]);
    expect([newer.texts, older.texts]).to.deep.equal([["a 2"], []]);
  });

  const SHARED: ReportedOutcome = { kind: "crash_shared", message: "the server died" };
  for (const [ends, failure] of [
    ["by itself", ERROR],
    ["beside others, so it runs alone", SHARED],
  ] as const)
    it(`that only a cordoned worker goes on from are what it is tried with, when nothing else is left: an item that failed ${ends}`, async () => {
      const world = await start(false);
      const [older, newer] = [await workerOf(world, 1, 1), await workerOf(world, 2, 2)];
      await world.submit(["a 1", "a 2", "b 1", "c 1", "d 1", "e 1", "f 1", "g 1"], { keyOf });
      const first = await only(newer);
      await newer.report([first], leaving(first, 2));
      await newer.ask(6);
      const [stated, ...others] = newer.held;
      if (stated === undefined) return expect.fail("it was given nothing");
      await newer.report([stated], failure);
      await older.ask(1);
      await world.watch(BACKOFF_MS, [older, newer]);
      await older.report([...older.held]);
      await newer.report(others, ERROR);
      expect(world.takeTopics()).to.include("worker_cordoned");
      for (let round = 0; round < 8; round++) {
        await older.ask(4);
        await older.report([...older.held]);
        await world.watch(BACKOFF_MS, [older, newer]);
      }
      await newer.ask(1);
      await world.watch(TRIED_AGAIN_MS, [older, newer]);
      expect([stated.text, newer.texts, older.texts]).to.deep.equal(["a 2", ["a 2"], []]);
    });

  it("let a worker of an older version have other keys' items behind an item with a later state", async () => {
    const world = await start();
    const [older, newer] = [await workerOf(world, 1, 1), await workerOf(world, 2, 2)];
    await world.submit(["a 1", "a 2", "b 1"], { keyOf });
    const first = await only(newer);
    await newer.report([first], leaving(first, 2));
    await older.ask(4);
    await world.watch(1_000, [older, newer]);
    expect(older.texts).to.deep.equal(["b 1"]);
  });

  it("are refused when a state of an older version would follow a newer one", async () => {
    const world = await start();
    const newer = await workerOf(world, 2, 2);
    await world.submit(["a 1", "a 2"], { keyOf });
    const first = await only(newer);
    await newer.report([first], leaving(first, 2));
    const second = await only(newer);
    await newer.report([second], leaving(second, 1));
    await world.watch(LONG_MS, [newer]);
    const again = await only(newer);
    expect([again.text, Buffer.from(again.keyed?.state ?? []).toString()]).to.deep.equal(["a 2", "a 1"]);
  });

  it("are known again to a new leader", async () => {
    const world = await start();
    const [older, newer] = [await workerOf(world, 1, 1), await workerOf(world, 2, 2)];
    await world.submit(["a 1", "a 2"], { keyOf });
    const first = await only(newer);
    await newer.report([first], leaving(first, 2));
    await world.lead();
    for (const worker of [older, newer]) await worker.reconnect();
    await older.ask(4);
    await world.watch(1_000, [older, newer]);
    expect(older.texts).to.deep.equal([]);
    expect((await only(newer)).text).to.equal("a 2");
  });
});

describe("an item that fails and spares its key", () => {
  it("fails at once and parks nothing, and is retried before all that wait", async () => {
    const world = await World.start({ store: new MemoryStore(), seed: 1 });
    const worker = await workerOf(world, 1, 1);
    await world.submit(["a 1", "a 2", "a 3"], { keyOf });
    const late = await only(worker);
    const outcome = { kind: "error", message: "actor_done", isPermanent: true, sparesKey: true } as const;
    await worker.report([late], outcome);
    expect(world.state.keys.counts.parked).to.equal(0);
    expect((await only(worker)).text).to.equal("a 2");
    expect(world.state.ledger.tally.count("failed")).to.equal(1);
  });
});
