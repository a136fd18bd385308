import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import assert from "node:assert/strict";
import { parseUlid } from "../../../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../../../src/base/ids.ts";
import { checkpointPlace } from "../../../../src/base/partition.ts";
import {
  GetAssignmentResponseSchema,
  PartitionCheckpointRequestSchema,
  PartitionStatesSchema,
} from "../../../../src/gen/rollout/v1/work_pb.ts";
import type { GetAssignmentResponse } from "../../../../src/gen/rollout/v1/work_pb.ts";
import { encodeCheckpoint } from "../../../../src/worker/partitions/checkpoint-record.ts";
import type { CheckpointStore } from "../../../../src/worker/partitions/checkpoint-store.ts";
import { Partitions } from "../../../../src/worker/partitions/partitions.ts";
import type { PartitionFrame } from "../../../../src/worker/partitions/partitions.ts";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { settle } from "../../../support/settle.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const RUN = parseUlid<RunId>("01JZ0000000000000000000000") ?? assert.fail();
const ME = parseUlid<WorkerId>("01JZ0000000000000000000001") ?? assert.fail();
const bytes = (text: string): Uint8Array => Buffer.from(text);

class MemoryCheckpoints implements CheckpointStore {
  readonly name = "memory";
  readonly files = new Map<string, Uint8Array>();
  refusal: Error | undefined;
  isWriting: Promise<undefined> | undefined;
  writes = 0;

  async read(place: string): Promise<Uint8Array | undefined> {
    if (this.refusal !== undefined) throw this.refusal;
    return this.files.get(place);
  }

  async write(place: string, content: Uint8Array): Promise<void> {
    this.writes++;
    await this.isWriting;
    if (this.refusal !== undefined) throw this.refusal;
    this.files.set(place, content);
  }
}

interface Named {
  readonly offset: bigint;
  readonly place: string;
}

/** A worker with one partition, which is all there is. */
class Rig {
  readonly store: MemoryCheckpoints;
  readonly log = new RecordingLogger();
  readonly fatal: unknown[] = [];
  readonly atWork = new Set<string>();
  readonly partitions: Partitions;
  asked = 0;
  checkpoint: Named | undefined;

  constructor(store = new MemoryCheckpoints(), maxBytes = 1_000_000) {
    this.store = store;
    this.partitions = new Partitions({
      ...{ runId: RUN, workerId: ME, store, maxBytes, log: this.log, clock: new VirtualClock() },
      atWork: () => [...this.atWork],
      isAtWork: (attempt) => this.atWork.has(attempt),
      onNews: () => undefined,
      onFatal: (error) => this.fatal.push(error),
    });
    this.partitions.attach(async () => this.#assignment());
  }

  #assignment(): GetAssignmentResponse {
    this.asked++;
    const { checkpoint } = this;
    const partitions = [{ partition: 0, ...(checkpoint && { checkpoint }) }];
    return create(GetAssignmentResponseSchema, { assignmentEpoch: 3n, totalPartitions: 1, partitions });
  }

  /** All that it says until it waits for something. */
  async said(): Promise<PartitionFrame[]> {
    for (let turn = 0; turn < 20; turn++) await settle();
    expect(this.fatal).to.deep.equal([]);
    const frames: PartitionFrame[] = [];
    for (let frame = this.partitions.next(); frame !== undefined; frame = this.partitions.next())
      frames.push(frame);
    return frames;
  }

  send(states: readonly (readonly [string, bigint, string])[], upTo: bigint): void {
    const sent = states.map(([key, commit, text]) => ({ key, commit, state: bytes(text) }));
    this.partitions.takeStates(create(PartitionStatesSchema, { states: sent, upTo, last: true }));
  }

  /** Joins, and has these states. */
  async warm(
    states: readonly (readonly [string, bigint, string])[],
    upTo: bigint,
    leader = "one",
  ): Promise<void> {
    this.partitions.sessionBegan(leader);
    this.partitions.sawEpoch(3n);
    await this.said();
    this.send(states, upTo);
    await this.said();
  }

  stateFor(key: string, commit: bigint): string | undefined {
    const assigned: Assigned = { ...assignedItem(1), keyed: { key, commit } };
    const whole = this.partitions.complete(assigned);
    return whole === undefined ? "missing" : whole.keyed?.state && Buffer.from(whole.keyed.state).toString();
  }

  async checkpoints(number: bigint): Promise<PartitionFrame[]> {
    this.partitions.takeRequest(create(PartitionCheckpointRequestSchema, { number }));
    return this.said();
  }
}

const written = (turn: 0 | 1, offset: bigint, number: bigint): unknown => ({
  case: "partitionCheckpoint",
  value: { number, written: [{ partition: 0, checkpoint: { offset, place: checkpointPlace(0, ME, turn) } }] },
});

describe("the partitions of a worker", () => {
  it("asks for what it has not when it sees another epoch in a session, and has a state by its exact commit alone", async () => {
    const rig = new Rig();
    rig.partitions.sawEpoch(undefined);
    rig.partitions.sessionBegan("one");
    expect([await rig.said(), rig.asked]).to.deep.equal([[], 0]);
    rig.partitions.sawEpoch(3n);
    rig.partitions.sawEpoch(3n);
    const [ask, ...more] = await rig.said();
    expect(ask).to.deep.equal({
      case: "partitionLoaded",
      value: { partition: 0, assignmentEpoch: 3n, offset: 0n },
    });
    rig.send([["a", 4n, "A"]], 5n);
    const [has] = await rig.said();
    expect(has?.value).to.include({ complete: true, offset: 5n, loaded: 0n, replayed: 1n });
    expect([more, rig.asked]).to.deep.equal([[], 1]);
    const found = [
      rig.stateFor("a", 4n),
      rig.stateFor("a", 3n),
      rig.stateFor("b", 4n),
      rig.stateFor("b", 0n),
    ];
    expect(found).to.deep.equal(["A", "missing", "missing", undefined]);
  });

  it("keeps states that come with items, and those of its own results when it hears of their commit", async () => {
    const rig = new Rig();
    await rig.warm([], 0n);
    rig.partitions.complete({ ...assignedItem(1), keyed: { key: "a", commit: 2n, state: bytes("with it") } });
    rig.partitions.committed([{ key: "b", state: bytes("own") }], 3);
    expect([rig.stateFor("a", 2n), rig.stateFor("b", 3n)]).to.deep.equal(["with it", "own"]);
    rig.partitions.committed([{ key: "a", state: undefined }], 4);
    expect(rig.stateFor("a", 2n)).to.equal("missing");
  });

  it("writes what is committed when what executes is, or with the next request, and another process loads it", async () => {
    const rig = new Rig();
    await rig.warm([["a", 4n, "A"]], 5n);
    rig.atWork.add("long");
    expect(await rig.checkpoints(1n)).to.deep.equal([]);
    rig.partitions.committed([{ key: "b", state: bytes("B") }], 7);
    rig.atWork.delete("long");
    rig.partitions.settled();
    expect(await rig.said()).to.deep.equal([written(0, 7n, 1n)]);
    // Nothing has changed since.
    expect(await rig.checkpoints(2n)).to.deep.equal([]);
    rig.atWork.add("longer");
    rig.partitions.committed([{ key: "a", state: bytes("AA") }], 8);
    expect(await rig.checkpoints(3n)).to.deep.equal([]);
    expect(await rig.checkpoints(4n)).to.deep.equal([written(1, 8n, 4n)]);

    const next = new Rig(rig.store);
    next.checkpoint = { offset: 8n, place: checkpointPlace(0, ME, 1) };
    next.partitions.sessionBegan("one");
    next.partitions.sawEpoch(3n);
    expect((await next.said())[0]?.value).to.include({ offset: 8n });
    next.send([], 9n);
    expect((await next.said())[0]?.value).to.include({
      complete: true,
      offset: 9n,
      loaded: 2n,
      replayed: 0n,
    });
    expect([next.stateFor("a", 8n), next.stateFor("b", 7n)]).to.deep.equal(["AA", "B"]);
  });

  for (const [what, spoil] of [
    ["missing", (rig: Rig) => rig.store.files.clear()],
    ["torn", (rig: Rig) => tear(rig, (file) => file.subarray(0, file.length - 3))],
    ["of another run", replace],
    [
      "older than the one that was named",
      (rig: Rig) => (rig.checkpoint = { offset: 6n, place: checkpointPlace(0, ME, 0) }),
    ],
    ["under a name that leads elsewhere", leadElsewhere],
    ["in a store that does not answer", (rig: Rig) => (rig.store.refusal = new Error("it is gone"))],
  ] as const)
    it(`a checkpoint that is ${what} costs a warning and no more`, async () => {
      const before = new Rig();
      await before.warm([["a", 4n, "A"]], 5n);
      await before.checkpoints(1n);
      const rig = new Rig(before.store);
      rig.checkpoint = { offset: 5n, place: checkpointPlace(0, ME, 0) };
      spoil(rig);
      rig.partitions.sessionBegan("one");
      rig.partitions.sawEpoch(3n);
      expect((await rig.said())[0]?.value).to.include({ offset: 0n });
      expect(rig.log.lines.map(({ level }) => level)).to.deep.equal(["warn"]);
    });

  it("says once that checkpoints cannot be written, and when they can again", async () => {
    const rig = new Rig();
    await rig.warm([["a", 4n, "A"]], 5n);
    rig.store.refusal = new Error("no space");
    expect([await rig.checkpoints(1n), await rig.checkpoints(2n)]).to.deep.equal([[], []]);
    rig.store.refusal = undefined;
    expect(await rig.checkpoints(3n)).to.deep.equal([written(0, 5n, 3n)]);
    expect(rig.log.lines.map(({ level }) => level)).to.deep.equal(["warn", "info"]);
  });

  it("goes on while a checkpoint is written that is never there, and heeds no other request meanwhile", async () => {
    const rig = new Rig();
    await rig.warm([["a", 4n, "A"]], 5n);
    const writing = Promise.withResolvers<undefined>();
    rig.store.isWriting = writing.promise;
    expect([await rig.checkpoints(1n), await rig.checkpoints(2n)]).to.deep.equal([[], []]);
    rig.partitions.committed([{ key: "a", state: bytes("AA") }], 7);
    expect([rig.stateFor("a", 7n), rig.store.writes]).to.deep.equal(["AA", 1]);
    writing.resolve(undefined);
    expect(await rig.said()).to.deep.equal([written(0, 5n, 1n)]);
  });

  it("says in each session anew what it has, and keeps nothing of another leader's history", async () => {
    const rig = new Rig();
    await rig.warm([["a", 4n, "A"]], 5n);
    rig.partitions.committed([{ key: "b", state: bytes("B") }], 7);
    rig.partitions.sessionEnded();
    rig.partitions.sessionBegan("one");
    expect((await rig.said())[0]?.value).to.include({ offset: 7n });
    expect(rig.stateFor("a", 4n)).to.equal("A");
    rig.partitions.sessionEnded();
    rig.partitions.sessionBegan("two");
    expect(rig.stateFor("a", 4n)).to.equal("missing");
    expect((await rig.said())[0]?.value).to.include({ offset: 0n });
    expect(rig.asked).to.equal(2);
  });

  it("drops a partition that there is no room for, and says so", async () => {
    const rig = new Rig(undefined, 10_000);
    await rig.warm([["a", 4n, "A"]], 5n);
    rig.partitions.committed([{ key: "b", state: new Uint8Array(11_000) }], 7);
    expect((await rig.said())[0]?.value).to.deep.equal({ partition: 0, dropped: true });
    expect([rig.stateFor("a", 4n), await rig.checkpoints(1n)]).to.deep.equal(["missing", []]);
  });
});

function tear(rig: Rig, cut: (file: Uint8Array) => Uint8Array): void {
  for (const [name, file] of rig.store.files) rig.store.files.set(name, cut(file));
}

/** Another run's checkpoint stands where this one's should. */
function replace(rig: Rig): void {
  for (const name of rig.store.files.keys()) {
    const other = name.replace(RUN, "01JZ0000000000000000000009");
    rig.store.files.set(name, encodeCheckpoint(other, { partition: 0, offset: 5, states: [] }));
  }
}

/** A whole one stands where the name leads. */
function leadElsewhere(rig: Rig): void {
  const place = "../elsewhere";
  const name = `${RUN}/${place}`;
  rig.store.files.set(name, encodeCheckpoint(name, { partition: 0, offset: 5, states: [] }));
  rig.checkpoint = { offset: 5n, place };
}
