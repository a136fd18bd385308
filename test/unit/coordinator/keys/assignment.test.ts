import { expect } from "chai";
import { KEYS_PREFIX } from "../../../../src/storage/keys.ts";
import { partitionOf } from "../../../../src/base/partition.ts";
import { World } from "../../../support/world.ts";
import { workerId } from "../../../support/world-worker.ts";
import type { OwnPartitions } from "../../../../src/coordinator/turn/key-terms.ts";

const keyOf = (text: string): string => text.split(" ")[0] ?? "";
const PARTITIONS = 32;

async function keyedWorld(): Promise<World> {
  return World.start({ keys: { totalPartitions: PARTITIONS } });
}

function epochOf(world: World): number {
  return world.state.keys.assignment.epoch;
}

function owned(world: World, number: number): Promise<OwnPartitions> {
  return world.ask((answer) => ({ kind: "getAssignment", workerId: workerId(number), answer }));
}

describe("the assignment of partitions", () => {
  it("begins with the first key, and says nothing before", async () => {
    const world = await keyedWorld();
    await world.worker(1);
    await world.submit(["plain"]);
    expect([epochOf(world), await owned(world, 1)]).to.deep.equal([
      0,
      { epoch: 0, partitions: [], totalPartitions: 0 },
    ]);
    expect((await world.beats({ workerId: workerId(1), sequence: 9 }))[0]).to.not.have.property(
      "assignmentEpoch",
    );
    await world.submit(["a 1"], { keyOf, submission: "01SVBM1SS10N00000000000001" });
    expect((await owned(world, 1)).partitions).to.have.length(PARTITIONS);
    const [answer] = await world.beats({ workerId: workerId(1), sequence: 10 });
    expect(answer?.assignmentEpoch).to.equal(1);
  });

  it("is raised by one for each turn that changes the members, and once in it", async () => {
    const world = await keyedWorld();
    await world.submit(["a 1"], { keyOf });
    world.takeTopics();
    const [one, two] = [await world.worker(1), await world.worker(2)];
    expect(epochOf(world)).to.equal(2);
    const moved = world.events.events.filter(({ topic }) => topic === "partitions_moved");
    expect(moved.map(({ payload }) => payload)).to.deep.include({
      ...{ epoch: 1, joined: [workerId(1)], left: [], partitions: PARTITIONS },
      moves: [{ from: null, to: workerId(1), partitions: PARTITIONS }],
    });
    const [first, second] = [await owned(world, 1), await owned(world, 2)];
    const numbers = [first, second].flatMap(({ partitions }) => partitions.map(({ partition }) => partition));
    expect(numbers.sort((a, b) => a - b)).to.deep.equal(Array.from({ length: PARTITIONS }, (_, at) => at));
    two.state = "Draining";
    await world.step(one.beatInput(), two.beatInput());
    expect([epochOf(world), (await owned(world, 1)).partitions.length]).to.deep.equal([3, PARTITIONS]);
  });

  it("survives a new leader and a restart of a worker, and a failed one leaves it", async () => {
    const world = await keyedWorld();
    await world.submit(["a 1"], { keyOf });
    const [one, two] = [await world.worker(1), await world.worker(2)];
    const before = await owned(world, 2);
    await world.lead();
    await one.rejoin();
    await two.rejoin();
    await two.startAnew(7);
    expect(await owned(world, 2)).to.deep.equal(before);
    await world.watch(6_000, [one]);
    expect([epochOf(world), (await owned(world, 2)).partitions]).to.deep.equal([3, []]);
  });

  it("leaves out a worker of a version that takes no keys, which is given none of their items", async () => {
    const world = await keyedWorld();
    const worker = await world.worker(1, { credit: 4 });
    worker.takesKeys = false;
    await worker.beat();
    await world.submit(["a 1", "plain"], { keyOf: (text) => (text === "plain" ? "" : "a") });
    expect([worker.texts, world.state.keys.assignment.size]).to.deep.equal([["plain"], 0]);
    const trouble = async (): Promise<string | undefined> => (await world.list()).workers[0]?.trouble;
    expect(await trouble()).to.contain("takes no items of keys");
    worker.takesKeys = true;
    await worker.beat();
    await world.settle();
    expect(await trouble()).to.equal(undefined);
    expect(worker.texts).to.deep.equal(["plain", "a 1"]);
  });

  it("gives a head to the owner of its partition, and after the time to spill to anybody with a free slot", async () => {
    const world = await keyedWorld();
    const workers = [await world.worker(1, { slots: 1 }), await world.worker(2, { slots: 1 })];
    await world.submit(["a 1"], { keyOf });
    const owner = world.state.keys.assignment.ownerOf(world.state.keys.table.get("a")?.partition ?? -1);
    const [own, other] = [workers.find(({ id }) => id === owner), workers.find(({ id }) => id !== owner)];
    await other?.ask(1);
    expect(other?.texts).to.deep.equal([]);
    world.pass(249);
    await world.step({ kind: "wake" });
    expect(other?.texts).to.deep.equal([]);
    world.pass(1);
    await world.step({ kind: "wake" });
    expect([other?.texts, own?.texts]).to.deep.equal([["a 1"], []]);
  });

  /** Keys of the first worker's partitions, and of the second's. */
  function keysOf(world: World, owners: readonly { readonly id: string }[], each: number): string[][] {
    const all = Array.from({ length: 400 }, (_, at) => `k${at}`);
    const ownerOf = (key: string) => world.state.keys.assignment.ownerOf(partitionOf(key, PARTITIONS));
    return owners.map(({ id }) => all.filter((key) => ownerOf(key) === id).slice(0, each));
  }

  it("leaves heads that have waited to their owner's backlog while nobody has a free slot", async () => {
    const world = await keyedWorld();
    await world.submit(["a 1"], { keyOf });
    const workers = [await world.worker(1, { slots: 1 }), await world.worker(2, { slots: 1 })];
    const [one, two] = workers;
    await one?.ask(1);
    const [own = [], others = []] = keysOf(world, workers, 6);
    const items = [...own, ...others].map((key) => `${key} 1`);
    await world.submit(items, { keyOf, submission: "01SVBM1SS10N00000000000002" });
    world.pass(2_000);
    await world.step({ kind: "wake" });
    await one?.ask(12);
    await two?.ask(12);
    const given = workers.map(({ texts }) => texts.filter((text) => text !== "a 1").map(keyOf));
    expect(given).to.have.deep.members([own, others]);
  });

  it("gives a worker that never runs out of its own a head that has waited far longer than those", async () => {
    const world = await keyedWorld();
    await world.submit(["a 1"], { keyOf });
    const workers = [await world.worker(1, { slots: 1 }), await world.worker(2, { slots: 1 })];
    const [one, two] = workers;
    const [own = [], others = []] = keysOf(world, workers, 8);
    // The first is at work, and the second does not ask.
    await one?.ask(1);
    if (one?.held.length === 0) await two?.ask(1);
    const [busy, idle, busyKeys, idleKeys] =
      one?.held.length === 1 ? [one, two, own, others] : [two, one, others, own];
    expect(idle?.held).to.deep.equal([]);
    await world.submit([`${idleKeys[0]} 1`], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    for (const [round, waitMs] of [1_900, 3_000].entries()) {
      world.pass(waitMs);
      const items = [`${busyKeys[round]} 1`];
      await world.submit(items, { keyOf, submission: `01SVBM1SS10N0000000000000${3 + round}` });
      await busy?.ask(1);
      expect(busy?.texts.includes(`${idleKeys[0]} 1`), `round ${round}`).to.equal(round === 1);
    }
  });

  it("gives a head whose owner is not free to the next one on the ring that has a free slot", async () => {
    const world = await keyedWorld();
    const workers = await Promise.all([1, 2, 3].map((number) => world.worker(number, { slots: 1 })));
    const { assignment } = world.state.keys;
    await world.submit(["first 1"], { keyOf });
    await world.ask((answer) => ({ kind: "steerKeys", action: "pause", keys: ["first"], answer }));
    const orderOf = (key: string): typeof workers => {
      const [rest, inOrder] = [[...workers], [] as typeof workers];
      while (rest.length > 0) {
        const ids = rest.map(({ id }) => id);
        const first = assignment.firstOf(ids, partitionOf(key, PARTITIONS)) ?? ids[0];
        inOrder.push(...rest.splice(ids.indexOf(first ?? workerId(0)), 1));
      }
      return inOrder;
    };
    // The order on the ring is not that of the workers themselves.
    const key = ["a", "b", "c", "d", "e", "f", "g", "h"].find((text) => {
      const [, second, third] = orderOf(text);
      return second !== undefined && third !== undefined && second.id > third.id;
    });
    const inOrder = orderOf(key ?? "");
    const [, next, last] = inOrder;
    await world.submit([`${key} 1`], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    await last?.ask(1);
    await next?.ask(1);
    world.pass(250);
    await world.step({ kind: "wake" });
    expect(inOrder.map(({ texts }) => texts)).to.deep.equal([[], [`${key} 1`], []]);
  });

  it("writes no row for a run without keys", async () => {
    const world = await keyedWorld();
    const worker = await world.worker(1, { credit: 4 });
    await world.submit(["one", "two"]);
    await worker.report(worker.held);
    expect([await world.countUnder(KEYS_PREFIX), await world.store.get("meta/keys")]).to.deep.equal([
      0,
      undefined,
    ]);
    expect(await world.store.get("meta/assignment")).to.equal(undefined);
  });
});
