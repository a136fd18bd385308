// Fields of a result beside its outcome, and of an assignment beside its payload.
import { expect } from "chai";
import { create, toBinary } from "@bufbuild/protobuf";
import { createHash } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { epoch } from "../../../../src/base/ids.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { LIMITS } from "../../../../src/config/limits.ts";
import { envelopeOf } from "../../../../src/coordinator/rpc/messages.ts";
import { readHeld, readReport, writeFrame } from "../../../../src/coordinator/rpc/work-messages.ts";
import type { Report, SessionFrame } from "../../../../src/coordinator/turn/session-frame.ts";
import {
  AssignmentSchema,
  HeldAttemptSchema,
  HeldPhase,
  OutcomeClass,
  ResultSchema,
  SessionResponseSchema,
} from "../../../../src/gen/rollout/v1/work_pb.ts";
import { incarnationId } from "../../../support/world-worker.ts";

const id = Buffer.alloc(32, 5);

describe("frames of a session between the wire and the coordinator", () => {
  type ResultInit = Extract<MessageInitShape<typeof ResultSchema>, { readonly $typeName?: never }>;
  const read = (parts: ResultInit = {}): Report => {
    const outputDigest = createHash("sha256").update("").digest();
    const wire = {
      attempt: { itemId: id, attempt: 2 },
      epoch: 3n,
      outcome: OutcomeClass.SUCCESS,
      outputDigest,
    };
    return readReport(create(ResultSchema, { ...wire, ...parts }), incarnationId(1), LIMITS);
  };
  const frameOf = (frame: SessionFrame): ReturnType<typeof writeFrame> => {
    const envelope = envelopeOf(epoch(0), "01JST0R0000000000000000000" as StoreId);
    return writeFrame({ envelope, limits: LIMITS }, frame, 0);
  };

  it("tell of an execution what the worker says of it", () => {
    const log = Buffer.from("said");
    const report = read({ pluginVersion: "7", startedAtMs: 5n, durationMs: 6n, log, checkpoint: log });
    expect(report.execution).to.deep.equal({ pluginVersion: "7", startedAtWallMs: 5, durationMs: 6 });
    expect(Buffer.from(report.log ?? []).toString()).to.equal("said");
    expect(Buffer.from(report.checkpoint ?? []).toString()).to.equal("said");
  });

  it("leave nothing of the message behind them but what they are", () => {
    const message = Buffer.alloc(1_000, 5);
    const report = read({ attempt: { itemId: message.subarray(0, 32), attempt: 1 } });
    expect(report.id.buffer.byteLength).to.equal(32);
  });

  it("cut what is for people, so that a result gets home with whatever beside it", () => {
    const log = Buffer.alloc(LIMITS.attemptLogBytes + 10, "a");
    log.write("the end", log.length - 7);
    const report = read({ pluginVersion: "x".repeat(5_000), startedAtMs: -5n, durationMs: 2n ** 63n, log });
    expect(report.execution).to.deep.equal({
      pluginVersion: "x".repeat(LIMITS.pluginTextBytes),
      startedAtWallMs: 0,
      durationMs: Number.MAX_SAFE_INTEGER,
    });
    expect(report.log).to.have.length(LIMITS.attemptLogBytes);
    expect(Buffer.from(report.log ?? []).toString()).to.match(/the end$/);
  });

  it("keep what a server answered, whole or not at all", () => {
    const refused = (bytes: number): unknown =>
      read({ outcome: OutcomeClass.ERROR, errorMessage: "no", response: Buffer.alloc(bytes, "r") }).outcome;
    const response = Buffer.alloc(LIMITS.responseBytes, "r");
    expect(refused(LIMITS.responseBytes)).to.deep.equal({ kind: "error", message: "no", response });
    expect(refused(LIMITS.responseBytes + 1)).to.deep.equal({ kind: "error", message: "no" });
    expect(read({ outcome: OutcomeClass.ERROR, errorMessage: "no", permanent: true }).outcome).to.deep.equal({
      ...{ kind: "error", message: "no", isPermanent: true },
    });
    expect(refused(0)).to.deep.equal({ kind: "error", message: "no" });
  });

  it("take an attempt with too large a checkpoint for too large, and a success without it", () => {
    const checkpoint = Buffer.alloc(LIMITS.checkpointBytes + 1);
    const report = read({ outcome: OutcomeClass.PREEMPTED, checkpoint });
    expect(report.outcome).to.deep.equal({
      kind: "too_large",
      message: `the checkpoint is ${checkpoint.length} bytes; the limit is ${LIMITS.checkpointBytes}`,
    });
    expect(report.checkpoint).to.have.length(0);
    expect(read({ checkpoint }).outcome.kind).to.equal("success");
    const fitting = Buffer.alloc(LIMITS.checkpointBytes);
    expect(read({ outcome: OutcomeClass.PREEMPTED, checkpoint: fitting }).checkpoint).to.have.length(
      LIMITS.checkpointBytes,
    );
  });

  it("tell what a success has made of its key's state, and of no other end", () => {
    const keyed = (parts: { state?: Uint8Array; removed?: boolean }): unknown => {
      const { outcome } = read({ keyed: { basedOn: 7n, ...parts } });
      return outcome.kind === "success" ? outcome.keyed : outcome;
    };
    const state = Buffer.alloc(LIMITS.stateBytes, "s");
    expect(keyed({})).to.deep.equal({ basedOn: 7, state: "kept", stateVersion: 0 });
    expect(keyed({ state })).to.deep.equal({ basedOn: 7, state, stateVersion: 0 });
    expect(keyed({ state: new Uint8Array() })).to.deep.equal({
      basedOn: 7,
      state: new Uint8Array(),
      stateVersion: 0,
    });
    expect(keyed({ removed: true })).to.deep.equal({ basedOn: 7, state: "removed", stateVersion: 0 });
    expect(() => keyed({ state, removed: true })).to.throw("new and removed");
    expect(keyed({ state: Buffer.concat([state, state]) })).to.deep.equal({
      kind: "too_large",
      message: `the state is ${2 * LIMITS.stateBytes} bytes; the limit is ${LIMITS.stateBytes} (limits.state of the coordinator)`,
      isBreach: true,
    });
    expect(read().outcome).to.not.have.property("keyed");
    const failed = read({ outcome: OutcomeClass.ERROR, errorMessage: "no", keyed: { basedOn: 7n, state } });
    expect(failed.outcome).to.deep.equal({ kind: "error", message: "no" });
  });

  it("give with an item of a key its state, and nothing with any other", () => {
    const item = { id, attempt: 1, payload: Buffer.from("p"), priority: 0, alone: false, checkpoint: null };
    const { frame } = frameOf({
      ...{ kind: "assignments", firstNumber: 1, plugin: "infer", itemTimeoutMs: 0 },
      items: [
        item,
        { ...item, keyed: { key: "k", commit: 7, state: Buffer.from("s") } },
        { ...item, keyed: { key: "k", commit: 0, state: null } },
      ],
    });
    if (frame.case !== "assignments") throw new Error("it is an assignment");
    const said = frame.value.assignments.map(
      ({ keyed }) => keyed && [keyed.key, keyed.commit, keyed.state?.toString()],
    );
    expect(said).to.deep.equal([undefined, ["k", 7n, "s"], ["k", 0n, undefined]]);
    const [plain] = frame.value.assignments;
    // As long as it was before there were keys.
    expect(plain && toBinary(AssignmentSchema, plain)).to.have.length(41);
  });

  it("give with an item what executes it, how long it may take, and the last checkpoint", () => {
    const item = { id, attempt: 2, payload: Buffer.from("p"), priority: 1, alone: false };
    const { frame } = frameOf({
      kind: "assignments",
      firstNumber: 4,
      items: [
        { ...item, checkpoint: Buffer.from("half way") },
        { ...item, checkpoint: null },
      ],
      ...{ plugin: "infer", itemTimeoutMs: 1_500 },
    });
    if (frame.case !== "assignments") throw new Error("it is an assignment");
    expect(frame.value).to.deep.include({ plugin: "infer", itemTimeoutMs: 1_500n, firstNumber: 4n });
    const checkpoints = frame.value.assignments.map(({ checkpoint }) => Buffer.from(checkpoint).toString());
    expect(checkpoints).to.deep.equal(["half way", ""]);
  });

  it("name a version and numbers to read where there are any, and are as long as before where there are none", () => {
    const item = { id, attempt: 1, payload: Buffer.from("p"), priority: 0, alone: false, checkpoint: null };
    const batch = { kind: "assignments", firstNumber: 1, plugin: "infer", itemTimeoutMs: 0 } as const;
    const bytes = (frame: SessionFrame): Uint8Array => toBinary(SessionResponseSchema, frameOf(frame));
    const plain = bytes({ ...batch, items: [item] });
    expect(bytes({ ...batch, items: [{ ...item, pluginVersion: "" }], pointers: undefined })).to.deep.equal(
      plain,
    );
    const pointers = [{ name: "score", pointer: "/score" }];
    const { frame } = frameOf({ ...batch, items: [item, { ...item, pluginVersion: "2" }], pointers });
    if (frame.case !== "assignments") throw new Error("it is an assignment");
    expect(frame.value.assignments.map(({ pluginVersion }) => pluginVersion)).to.deep.equal(["", "2"]);
    expect(frame.value.pointers.map(({ name, pointer }) => [name, pointer])).to.deep.equal([
      ["score", "/score"],
    ]);
  });

  it("tell numbers of an output, and why there is none", () => {
    expect(read()).not.to.have.property("measures");
    const measures = [{ value: -0.5 }, {}, { notANumber: true }, { value: NaN }, { value: Infinity }];
    expect(read({ measures }).measures).to.deep.equal([
      ...[-0.5, "missing", "not a number", "not a number", "not a number"],
    ]);
    expect(read({ measures: Array<{ value: number }>(17).fill({ value: 1 }) }).measures).to.have.length(16);
  });

  it("tell of an attempt that a worker has the version that its assignment named", () => {
    const held = (pluginVersion: string): unknown =>
      readHeld(
        create(HeldAttemptSchema, {
          ...{ attempt: { itemId: id, attempt: 2 }, epoch: 3n, phase: HeldPhase.RUNNING, pluginVersion },
        }),
      );
    expect(held("")).to.deep.equal({ id, attempt: 2, epoch: 3, isFinished: false, phase: "running" });
    expect(held("2")).to.deep.include({ attempt: 2, pluginVersion: "2" });
  });

  it("drop attempts by name", () => {
    const { frame } = frameOf({ kind: "drop", attempts: [{ id, attempt: 2 }] });
    if (frame.case !== "drop") throw new Error("it is a drop");
    expect(frame.value.dropped).to.have.length(1);
    expect(frame.value.dropped[0]).to.deep.include({ attempt: 2 });
  });
});
