import { create } from "@bufbuild/protobuf";
import { expect } from "chai";
import { epoch, newUlid, ulidToBytes } from "../../../../src/base/ids.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { RolloutError } from "../../../../src/base/errors.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { envelopeOf, readBeat, writeBeatAck } from "../../../../src/coordinator/rpc/messages.ts";
import { WorkerState } from "../../../../src/gen/rollout/v1/common_pb.ts";
import { BeatSchema, BeatVerdict } from "../../../../src/gen/rollout/v1/heartbeat_pb.ts";
import { incarnationId, workerId } from "../../../support/world-worker.ts";
import { beatMessage } from "../../../support/worker-client.ts";

const worker = { id: workerId(1), incarnation: incarnationId(2) };
const storeId = newUlid<StoreId>(systemClock, seededRandom(1));

function beat(parts: Parameters<typeof beatMessage>[1] = {}): Parameters<typeof readBeat>[0] {
  return create(BeatSchema, beatMessage(worker, parts));
}

function refusal(wire: Parameters<typeof readBeat>[0]): string | undefined {
  try {
    readBeat(wire);
  } catch (error) {
    if (error instanceof RolloutError && error.code === "request_invalid") return error.params["reason"];
    throw error;
  }
  return undefined;
}

const ids = { workerId: ulidToBytes(worker.id), incarnation: ulidToBytes(worker.incarnation) };
const plugin = (name: string, version = "1"): { name: string; version: string } => ({ name, version });

describe("a heartbeat from the wire", () => {
  it("is read field by field", () => {
    const plugins = [plugin("mock"), plugin("command", "2.1")];
    const wire = beat({
      sequence: 12n,
      state: WorkerState.DRAINING,
      load: 1,
      sentAtMs: 99n,
      slots: 1_024,
      plugins,
      atRisk: true,
      trouble: "loading, for 12 s",
      drain: { state: "Draining.Saving", cause: "aws", leftMs: 90_000 },
      takesKeys: true,
    });
    expect(readBeat(wire)).to.deep.equal({
      workerId: worker.id,
      incarnation: worker.incarnation,
      sequence: 12,
      state: "Draining",
      load: 1,
      sentAtMs: 99,
      slots: 1_024,
      plugins,
      isAtRisk: true,
      trouble: "loading, for 12 s",
      drain: { state: "Draining.Saving", cause: "aws", leftMs: 90_000 },
      holdsNothing: false,
      takesKeys: true,
    });
  });

  it("names versions by their tasks, and how many are open at once, where its worker says so", () => {
    const plugins = [plugin("infer"), plugin("infer", "2")];
    const taskDigests = [Buffer.alloc(32, 1), Buffer.alloc(32, 2)];
    const said = { sequence: 1n, state: WorkerState.READY, plugins };
    const read = readBeat(beat({ ...said, taskDigests, loadedVersions: 1 }));
    expect(read.loadedVersions).to.equal(1);
    expect(read.plugins.map(({ taskDigest }) => taskDigest?.[0])).to.deep.equal([1, 2]);
    const untold = readBeat(beat(said));
    expect(untold.plugins).to.deep.equal(plugins);
    expect(untold).not.to.have.property("loadedVersions");
  });

  it("says that its worker has nothing only where it says what the worker has", () => {
    const said = [undefined, new Uint8Array(0), new Uint8Array(32)].map((heldDigest) =>
      beat({ sequence: 1n, state: WorkerState.READY, ...(heldDigest && { heldDigest }) }),
    );
    expect(said.map((wire) => readBeat(wire).holdsNothing)).to.deep.equal([false, true, false]);
  });

  const refused: Readonly<Record<string, readonly [Parameters<typeof readBeat>[0], string]>> = {
    "when there is none": [undefined, "worker_id is not 16 bytes"],
    "without the worker": [create(BeatSchema, { sequence: 1n }), "worker_id is not 16 bytes"],
    "with a worker id that is too short": [
      beat({ worker: { ...ids, workerId: new Uint8Array(15) } }),
      "worker_id is not 16 bytes",
    ],
    "with a worker id that is too long": [
      beat({ worker: { ...ids, workerId: new Uint8Array(17) } }),
      "worker_id is not 16 bytes",
    ],
    "without an incarnation": [beat({ worker: { workerId: ids.workerId } }), "incarnation is not 16 bytes"],
    "with a drain that says too much": [
      beat({ drain: { state: "x".repeat(129) } }),
      "drain says more than 128 bytes",
    ],
    "in no state": [beat({ state: WorkerState.UNSPECIFIED }), "state is not one of a worker's"],
    "in a state that nobody knows yet": [
      beat({ state: 77 as WorkerState }),
      "state is not one of a worker's",
    ],
    "with number 0": [beat({ sequence: 0n }), "sequence is not counted from 1"],
    "with a number that is not exact any more": [
      beat({ sequence: 2n ** 53n }),
      "sequence is over 4503599627370496",
    ],
    "with a load below 0": [beat({ load: -0.01 }), "load is not between 0 and 1"],
    "with a load above 1": [beat({ load: 1.01 }), "load is not between 0 and 1"],
    "with a load that is no number": [beat({ load: NaN }), "load is not between 0 and 1"],
    "with too many slots": [beat({ slots: 1_025 }), "slots is over 1024"],
    "with too many plugins": [
      beat({ plugins: Array.from({ length: 65 }, (_, at) => plugin(`p${at}`)) }),
      "more than 64 plugins",
    ],
    "with a plugin's name that is too long in bytes": [
      beat({ plugins: [plugin("ü".repeat(65))] }),
      "a plugin's name or version is longer than 128 bytes",
    ],
    "with digests for some of its plugins": [
      beat({ plugins: [plugin("a"), plugin("b")], taskDigests: [Buffer.alloc(32)] }),
      "task_digests are not as many as plugins",
    ],
    "with a digest that is none": [
      beat({ plugins: [plugin("a")], taskDigests: [Buffer.alloc(31)] }),
      "a task's digest is not 32 bytes",
    ],
    "with a plugin's version that is too long": [
      beat({ plugins: [plugin("mock", "1".repeat(129))] }),
      "a plugin's name or version is longer than 128 bytes",
    ],
    "with trouble that is too long in bytes": [
      beat({ trouble: "ü".repeat(129) }),
      "trouble is longer than 256 bytes",
    ],
  };
  for (const [what, [wire, reason]] of Object.entries(refused))
    it(`is refused ${what}, naming the field`, () => {
      expect(refusal(wire)).to.equal(reason);
    });

  it("is taken at every limit", () => {
    const plugins = Array.from({ length: 64 }, () => plugin("x".repeat(128), "y".repeat(128)));
    const trouble = "ü".repeat(128);
    const wire = beat({ sequence: 2n ** 52n, load: 0, slots: 1_024, plugins, sentAtMs: -1n, trouble });
    expect(refusal(wire)).to.equal(undefined);
  });
});

describe("what is written to the wire", () => {
  const envelope = envelopeOf(epoch(0), storeId);

  it("carries the epoch also when it is 0, and the store that it counts in", () => {
    expect(envelope).to.deep.include({ coordEpoch: 0n, storeId: ulidToBytes(storeId) });
  });

  it("acknowledges a beat by its number, with the verdict", () => {
    expect(writeBeatAck(envelope, { sequence: 7, verdict: "accepted" }, 9)).to.deep.equal({
      coordinator: envelope,
      sequence: 7n,
      verdict: BeatVerdict.ACCEPTED,
    });
    expect(writeBeatAck(envelope, { sequence: 7, verdict: "superseded" }, 9).verdict).to.equal(
      BeatVerdict.SUPERSEDED,
    );
  });

  it("says that the registry is full as an error with its limit", () => {
    const write = (): unknown => writeBeatAck(envelope, { sequence: 7, verdict: "refused" }, 9);
    expect(write).to.throw(RolloutError).with.deep.include({ code: "overloaded" });
    expect(write).to.throw(RolloutError).with.nested.property("params.limit", "9");
  });
});
