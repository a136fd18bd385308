import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import { checkpointPlace } from "../../../../src/base/partition.ts";
import type { LoadedPartition, ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import type { Filled } from "../../../../src/coordinator/turn/operator-message.ts";
import type { ListPartitionsResponse } from "../../../../src/gen/rollout/v1/keys_pb.ts";
import { readWritten } from "../../../../src/coordinator/rpc/work-messages.ts";
import { PartitionCheckpointAckSchema } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { PARTITIONS_PREFIX } from "../../../../src/storage/keys.ts";
import { World } from "../../../support/world.ts";
import { reportOf, successOf, workerId } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

const INTERVAL_MS = 10_000;
const keyOf = (text: string): string => text.split(" ")[0] ?? "";
const bytes = (text: string): Uint8Array => Buffer.from(text);
const textOf = (state: Uint8Array | null | undefined): string | undefined =>
  state ? Buffer.from(state).toString() : undefined;

/** One partition, so that every key is of the same. */
async function warmWorld(): Promise<World> {
  return World.start({ keys: { totalPartitions: 1, checkpointIntervalMs: INTERVAL_MS, spillAfterMs: 0 } });
}

async function say(
  world: World,
  worker: WorldWorker,
  says: LoadedPartition["says"],
  offset: number,
): Promise<void> {
  const counts = { loaded: 1, replayed: 2, durationMs: 3 };
  const from = { workerId: worker.id, port: worker.port };
  await world.step({ kind: "partitionLoaded", partition: 0, says, offset, ...counts, ...from });
  await world.settle();
}

/** Asks for the states behind `offset`, says that it has them, and returns them. */
async function load(
  world: World,
  worker: WorldWorker,
  offset = 0,
): Promise<(readonly [string, number, string | undefined])[]> {
  const before = worker.framesOf("partitionStates").length;
  await say(world, worker, "asks", offset);
  const frames = worker.framesOf("partitionStates").slice(before);
  await say(world, worker, "has", frames.at(-1)?.last ?? -1);
  return frames.flatMap(({ states }) =>
    states.map(({ key, commit, state }) => [key, commit, textOf(state)] as const),
  );
}

function leaving(item: HeldItem, state: string): ReportedOutcome {
  return { ...successOf(item), keyed: { basedOn: item.keyed?.commit ?? 0, state: bytes(state) } };
}

/** The one item that it has ends, and its key has this state from then on. */
async function finish(worker: WorldWorker, state: string): Promise<void> {
  const [item] = worker.held;
  if (item !== undefined) await worker.report([item], leaving(item, state));
}

/** The key of the last assignment with its commit, and the state that came with it. */
function given(worker: WorldWorker): readonly unknown[] {
  const { key, commit, state } = worker.given.at(-1)?.items.at(-1)?.keyed ?? {};
  return [key, commit, textOf(state)];
}

const counts = ({ state }: World): readonly number[] => [
  state.keys.warmth.statesSent,
  state.keys.warmth.statesSaved,
];

describe("partitions of keys in sessions", () => {
  it("a worker that has the states of a partition is given their items without, and is told what its results were committed as", async () => {
    const world = await warmWorld();
    const worker = await world.worker(1, { credit: 8 });
    await world.submit(["a 1", "a 2", "a 3"], { keyOf });
    await finish(worker, "one");
    expect(given(worker)).to.deep.equal(["a", 1, "one"]);
    expect(worker.framesOf("resultsAcknowledged").at(-1)).to.not.have.property("commits");
    expect(await load(world, worker)).to.deep.equal([["a", 1, "one"]]);
    await finish(worker, "two");
    expect(worker.framesOf("resultsAcknowledged").at(-1)?.commits).to.deep.equal([
      { number: 2, commit: 2, leftOut: [] },
    ]);
    expect(given(worker)).to.deep.equal(["a", 2, undefined]);
    expect(counts(world)).to.deep.equal([1, 1]);
    const [loaded] = world.events.events.filter(({ topic }) => topic === "partition_loaded");
    const told = { worker_id: workerId(1), partition: 0, offset: 1, loaded: 1, replayed: 2, ms: 3 };
    expect(loaded?.payload).to.deep.equal(told);
  });

  it("a state that another worker has reported, or that the worker does not have, comes with the next item, and nobody is charged", async () => {
    const world = await warmWorld();
    const workers = [await world.worker(1), await world.worker(2)];
    await world.submit(["a 1", "a 2", "a 3", "a 4"], { keyOf });
    const owner = workers.find(({ id }) => id === world.state.keys.assignment.ownerOf(0)) ?? expect.fail();
    const other = workers.find((worker) => worker !== owner) ?? expect.fail();
    await load(world, owner);
    await other.ask(1);
    await finish(other, "one");
    await owner.ask(8);
    expect(given(owner)).to.deep.equal(["a", 1, "one"]);
    await finish(owner, "two");
    expect(given(owner)).to.deep.equal(["a", 2, undefined]);
    await owner.report(owner.held, { kind: "state_missing" });
    expect(given(owner)).to.deep.equal(["a", 2, "two"]);
    await finish(owner, "three");
    expect(given(owner)).to.deep.equal(["a", 3, undefined]);
    expect(owner.texts).to.deep.equal(["a 4"]);
  });

  it("a report of a state that is not recorded is left out of what the worker is told", async () => {
    const world = await warmWorld();
    const worker = await world.worker(1, { credit: 8 });
    await world.submit(["a 1", "b 1"], { keyOf });
    await load(world, worker);
    const [one, two] = worker.held.map((item) => reportOf(item, leaving(item, "s")));
    if (one === undefined || two === undefined) return expect.fail();
    await worker.send([{ ...one, attempt: 7 }, two]);
    await world.settle();
    const [ack] = worker.framesOf("resultsAcknowledged");
    expect(ack?.commits).to.deep.equal([{ number: 1, commit: 1, leftOut: [0] }]);
  });

  it("of a partition that was loaded from a checkpoint only later states are sent, and it is begun anew in each session", async () => {
    const world = await warmWorld();
    const worker = await world.worker(1, { credit: 1 });
    await world.submit(["a 1", "b 1", "c 1"], { keyOf });
    for (const state of ["A", "B", "C"]) {
      await finish(worker, state);
      await worker.ask(1);
    }
    expect(await load(world, worker, 2)).to.deep.equal([["c", 3, "C"]]);
    await world.submit(["a 2", "a 3", "b 2"], { keyOf, submission: "01SVBM1SS10N00000000000002" });
    expect(given(worker)).to.deep.equal(["a", 1, undefined]);
    await worker.reconnect();
    await finish(worker, "AA");
    await worker.ask(1);
    expect(given(worker)).to.deep.equal(["a", 4, "AA"]);
    // Commits of another history than the ledger's.
    expect(await load(world, worker, 99)).to.deep.equal([
      ["a", 4, "AA"],
      ["b", 2, "B"],
      ["c", 3, "C"],
    ]);
  });

  it("asks for checkpoints at each interval, keeps where they are, and names them to the next owner", async () => {
    const world = await warmWorld();
    const [cold, worker] = [await world.worker(2, { credit: 1 }), await world.worker(1, { credit: 8 })];
    cold.takesKeys = false;
    await cold.beat();
    await world.submit(["a 1"], { keyOf });
    await finish(worker, "one");
    await load(world, worker);
    await world.watch(INTERVAL_MS, [worker, cold]);
    expect(worker.framesOf("checkpointRequest").at(-1)?.number).to.be.greaterThan(0);
    expect(cold.framesOf("checkpointRequest")).to.deep.equal([]);
    const place = checkpointPlace(0, worker.id, 0);
    const write = async (by: WorldWorker, offset: number): Promise<void> => {
      const written = [{ partition: 0, offset, place }];
      await world.step({ kind: "partitionsWritten", workerId: by.id, port: by.port, written });
    };
    await write(cold, 1);
    // A commit that is not there yet.
    await write(worker, 9);
    expect(await world.countUnder(PARTITIONS_PREFIX)).to.equal(0);
    await worker.reconnect();
    // In this session it has not said what it has.
    await write(worker, 1);
    expect(await world.countUnder(PARTITIONS_PREFIX)).to.equal(0);
    await load(world, worker);
    await write(worker, 1);
    expect(await world.countUnder(PARTITIONS_PREFIX)).to.equal(1);
    await world.lead();
    await worker.rejoin();
    const own = await world.ask((answer) => ({ kind: "getAssignment", workerId: worker.id, answer }));
    expect(own).to.deep.include({ partitions: [{ partition: 0, checkpoint: { offset: 1, place } }] });
    const list = await world.ask<Filled<ListPartitionsResponse>>((answer) => ({
      kind: "listPartitions",
      answer,
    }));
    expect(list.partitions).to.have.nested.property("[0].checkpointOffset", 1);
  });

  it("a place that is no name of a checkpoint of the partition is refused", () => {
    const ack = (place: string): unknown =>
      readWritten(
        create(PartitionCheckpointAckSchema, {
          written: [{ partition: 1, checkpoint: { offset: 2n, place } }],
        }),
      );
    const place = checkpointPlace(1, workerId(1), 0);
    expect(ack(place)).to.deep.equal([{ partition: 1, offset: 2, place }]);
    for (const other of ["", `../${place}`, `/${place}`, `${place}/x`, checkpointPlace(2, workerId(1), 0)])
      expect(() => ack(other), other).to.throw(/a checkpoint's place is no name of one/);
  });

  it("a worker that drops a partition is given states again, and so is one that makes calls", async () => {
    const world = await warmWorld();
    const worker = await world.worker(1, { credit: 8 });
    await world.submit(["a 1", "a 2", "a 3"], { keyOf });
    await load(world, worker);
    await finish(worker, "one");
    expect(given(worker)).to.deep.equal(["a", 1, undefined]);
    await say(world, worker, "dropped", 0);
    await finish(worker, "two");
    expect(given(worker)).to.deep.equal(["a", 2, "two"]);
    expect(counts(world)).to.deep.equal([1, 1]);
  });
});
