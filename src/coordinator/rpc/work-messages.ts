// Frames of a worker's session between the wire and the coordinator's own words. Frames that come in are checked here, field by
// field and against their limits; payloads and outputs are opaque and never looked into.
import { hash } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { failure } from "../../base/errors.ts";
import type { ItemLimits } from "../../config/limits.ts";
import { LIMITS } from "../../config/limits.ts";
import type { IncarnationId, WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import type {
  AttemptSchema,
  Attempt as WireAttempt,
  WorkerEnvelope,
} from "../../gen/rollout/v1/common_pb.ts";
import {
  HeldPhase,
  HeldVerdict,
  KeyedAssignmentSchema,
  OutcomeClass,
  SessionResponseSchema,
} from "../../gen/rollout/v1/work_pb.ts";
import type {
  Assignment,
  AssignmentBatchSchema,
  BatchCommitSchema,
  Checkpoint,
  HeldAttempt,
  KeyStateSchema,
  PartitionCheckpointAck,
  PartitionLoaded,
  Result,
  SessionResponse,
} from "../../gen/rollout/v1/work_pb.ts";
import { ITEM_ID_BYTES } from "../ledger/place.ts";
import type { Execution } from "../ledger/records.ts";
import type { Measure } from "../../base/measure.ts";
import { isCheckpointPlace } from "../../base/partition.ts";
import type {
  BatchCommit,
  LoadedPartition,
  WrittenPartition,
  GivenState,
  HeldClaim,
  NamedAttempt,
  Report,
  ReportedOutcome,
  SentCheckpoint,
  SessionFrame,
} from "../turn/session-frame.ts";
import type { LeftState } from "../ledger/key-room.ts";
import { readAsks, writeOrigin } from "./actor-messages.ts";
import type { Leader } from "./leader.ts";
import { COUNT_MAX, countFrom } from "./messages.ts";

const MESSAGE_CHARACTERS_MAX = 4_096;

export type Speaking = Pick<Leader, "envelope" | "limits">;

/** A start of a worker's process. */
export interface Speaker {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
}

/** Throws request_invalid, naming what is wrong. */
export function refuseFrame(reason: string): never {
  throw failure("request_invalid", { method: "what a worker says of its work", reason });
}

export function readAttempt(wire: WireAttempt | undefined): NamedAttempt {
  if (wire?.itemId.length !== ITEM_ID_BYTES) return refuseFrame("item_id is not 32 bytes");
  // A copy: what keeps the id, for as long as an item runs, must not keep the whole message that it came in.
  return { id: new Uint8Array(wire.itemId), attempt: wire.attempt };
}

const PHASES: Readonly<Partial<Record<HeldPhase, "unstarted" | "running">>> = {
  [HeldPhase.UNSTARTED]: "unstarted",
  [HeldPhase.RUNNING]: "running",
};

export function readHeld({ attempt, epoch, phase, incarnation, pluginVersion }: HeldAttempt): HeldClaim {
  const isFinished = phase === HeldPhase.FINISHED;
  const how = PHASES[phase];
  const claim = {
    ...readAttempt(attempt),
    epoch: readEpoch(epoch),
    isFinished,
    ...(how && { phase: how }),
    ...(pluginVersion !== "" && { pluginVersion: pluginVersion.slice(0, LIMITS.pluginTextBytes) }),
  };
  if (incarnation.length === 0) return claim;
  const executedBy = parseUlidBytes<IncarnationId>(incarnation);
  return executedBy === undefined
    ? refuseFrame("incarnation is not 16 bytes")
    : { ...claim, incarnation: executedBy };
}

export function readReport(wire: Result, incarnation: IncarnationId, limits: ItemLimits): Report {
  const executedBy =
    wire.incarnation.length === 0 ? incarnation : parseUlidBytes<IncarnationId>(wire.incarnation);
  if (executedBy === undefined) return refuseFrame("a result's incarnation is not 16 bytes");
  return {
    ...readAttempt(wire.attempt),
    incarnation: executedBy,
    epoch: readEpoch(wire.epoch),
    outcome: readOutcome(wire, limits),
    execution: readExecution(wire),
    log: readLog(wire),
    checkpoint: readCheckpoint(wire),
    ...(wire.measures.length > 0 && { measures: readMeasures(wire.measures) }),
  };
}

/** More than there are pointers at most are left out, or a result would never get home. */
function readMeasures(wire: Result["measures"]): Measure[] {
  return wire.slice(0, LIMITS.numbersPerOutput).map(({ value, notANumber }) => {
    if (value === undefined) return notANumber ? "not a number" : "missing";
    return Number.isFinite(value) ? value : "not a number";
  });
}

function readExecution({ pluginVersion, startedAtMs, durationMs }: Result): Execution {
  // All of it is for people: what is out of bounds is cut and not refused, or a result would never get home.
  const version = pluginVersion.slice(0, LIMITS.pluginTextBytes);
  return { pluginVersion: version, startedAtWallMs: asSafe(startedAtMs), durationMs: asSafe(durationMs) };
}

function asSafe(wire: bigint): number {
  return Math.min(Math.max(Number(wire), 0), Number.MAX_SAFE_INTEGER);
}

/** The end of it counts. */
function readLog({ log }: Result): Uint8Array {
  return log.length > LIMITS.attemptLogBytes ? log.subarray(log.length - LIMITS.attemptLogBytes) : log;
}

/** One over its limit is left out: half of it would be no JSON. */
function readResponse({ response }: Result): { readonly response?: Uint8Array } {
  return response.length === 0 || response.length > LIMITS.responseBytes ? {} : { response };
}

/** One over its limit has made the outcome `too_large`. */
function readCheckpoint({ checkpoint }: Result): Uint8Array {
  return checkpoint.length > LIMITS.checkpointBytes ? new Uint8Array() : checkpoint;
}

/** The checkpoint of a running attempt; undefined for one over its limit, which is left out. Throws request_invalid. */
export function readSent({ attempt, epoch, checkpoint }: Checkpoint): SentCheckpoint | undefined {
  const named = { ...readAttempt(attempt), epoch: readEpoch(epoch) };
  return checkpoint.length > LIMITS.checkpointBytes ? undefined : { ...named, checkpoint };
}

function tooLarge(
  what: string,
  bytes: number,
  limit: string,
): Extract<ReportedOutcome, { readonly kind: "too_large" }> {
  return { kind: "too_large", message: `the ${what} is ${bytes} bytes; the limit is ${limit}` };
}

/** Throws request_invalid. */
function readState({ keyed }: Result): { readonly keyed?: LeftState } {
  if (keyed === undefined) return {};
  const { basedOn, state, removed, stateVersion } = keyed;
  if (removed && state !== undefined) return refuseFrame("a result's state is new and removed");
  const change = removed ? "removed" : (state ?? "kept");
  const asks = readAsks(keyed);
  return {
    keyed: { basedOn: readCount(basedOn, "based_on"), state: change, stateVersion, ...(asks && { asks }) },
  };
}

function readOutcome(wire: Result, { outputBytes, stateBytes }: ItemLimits): ReportedOutcome {
  const message = wire.errorMessage.slice(0, MESSAGE_CHARACTERS_MAX);
  const { checkpointBytes } = LIMITS;
  if (wire.outcome !== OutcomeClass.SUCCESS && wire.checkpoint.length > checkpointBytes)
    return tooLarge("checkpoint", wire.checkpoint.length, String(checkpointBytes));
  switch (wire.outcome) {
    case OutcomeClass.SUCCESS:
      if (wire.output.length > outputBytes)
        return tooLarge("output", wire.output.length, `${outputBytes} (limits.output of the coordinator)`);
      // A result that is not even hashed right is not believed in anything else.
      if (Buffer.compare(wire.outputDigest, hash("sha256", wire.output, "buffer")) !== 0)
        return refuseFrame("output_digest is not the SHA-256 of the output");
      if ((wire.keyed?.state?.length ?? 0) > stateBytes) {
        const limit = `${stateBytes} (limits.state of the coordinator)`;
        return { ...tooLarge("state", wire.keyed?.state?.length ?? 0, limit), isBreach: true };
      }
      return { kind: "success", output: wire.output, digest: wire.outputDigest, ...readState(wire) };
    case OutcomeClass.ERROR:
      return {
        ...{ kind: "error", message, ...readResponse(wire) },
        ...(wire.permanent && { isPermanent: true }),
        ...(wire.sparesKey && { sparesKey: true }),
      };
    case OutcomeClass.TIMEOUT:
      return { kind: "timeout", message };
    case OutcomeClass.CRASH:
      return { kind: "crash", message };
    case OutcomeClass.CRASH_SHARED:
      return { kind: "crash_shared", message };
    case OutcomeClass.TOO_LARGE:
      return { kind: "too_large", message };
    case OutcomeClass.PREEMPTED:
      return { kind: "preempted" };
    case OutcomeClass.STOLEN:
      return { kind: "stolen" };
    case OutcomeClass.FENCED:
      return { kind: "fenced" };
    case OutcomeClass.CANCELLED:
      return { kind: "cancelled" };
    case OutcomeClass.STATE_MISSING:
      return { kind: "state_missing" };
    case OutcomeClass.UNSPECIFIED:
    case OutcomeClass.LOST:
      return refuseFrame("outcome is not one that a worker reports");
    default:
      return refuseFrame("outcome is not known to this version");
  }
}

function readEpoch(wire: bigint | undefined): number {
  return wire === undefined ? refuseFrame("epoch is missing") : readCount(wire, "epoch");
}

/** Throws request_invalid, naming the field. */
export function readCount(wire: bigint, field: string): number {
  return countFrom(wire) ?? refuseFrame(`${field} is over ${COUNT_MAX}`);
}

/** `ackedResults` is the highest batch of results that is on stable storage. */
export function writeFrame(leader: Speaking, frame: SessionFrame, ackedResults: number): SessionResponse {
  return create(SessionResponseSchema, {
    coordinator: leader.envelope,
    ackedResults: BigInt(ackedResults),
    ...(frame.kind === "resultsAcknowledged" && frame.commits && { commits: frame.commits.map(writeCommit) }),
    frame: writeBody(frame, leader.limits),
  });
}

function writeBody(
  frame: SessionFrame,
  { outputBytes }: ItemLimits,
): NonNullable<MessageInitShape<typeof SessionResponseSchema>["frame"]> {
  switch (frame.kind) {
    case "verdict": {
      const verdicts = frame.keep.map((keep) => (keep ? HeldVerdict.KEEP : HeldVerdict.DROP));
      return { case: "verdict", value: { verdicts, maxOutputBytes: BigInt(outputBytes) } };
    }
    case "assignments": {
      return { case: "assignments", value: writeAssignments(frame) };
    }
    case "recall": {
      return { case: "recall", value: { recalled: frame.attempts.map(writeAttempt) } };
    }
    case "drop": {
      return { case: "drop", value: { dropped: frame.attempts.map(writeAttempt) } };
    }
    case "checkpointRequest":
      return { case: "partitionCheckpoints", value: { number: BigInt(frame.number) } };
    case "partitionStates": {
      const { partition, states, last } = frame;
      const ends = last === undefined ? {} : { upTo: BigInt(last), last: true };
      return { case: "partitionStates", value: { partition, states: states.map(writeState), ...ends } };
    }
    case "resultsAcknowledged":
    case "creditWithdrawn":
      return { case: undefined };
  }
}

const NOTHING = new Uint8Array();

/** Each of them whole, with all of its fields, so that nothing is copied field by field on its way out. */
export function writeAssignments({
  firstNumber,
  items,
  plugin,
  itemTimeoutMs,
  pointers,
}: Extract<SessionFrame, { kind: "assignments" }>): MessageInitShape<typeof AssignmentBatchSchema> {
  const assignments = items.map(
    ({ id, attempt, payload, priority, checkpoint, alone, keyed, pluginVersion = "" }): Assignment => ({
      $typeName: "rollout.v1.Assignment",
      attempt: { $typeName: "rollout.v1.Attempt", itemId: id, attempt },
      payload,
      priority,
      alone,
      checkpoint: checkpoint ?? NOTHING,
      pluginVersion,
      keyed: keyed && create(KeyedAssignmentSchema, writeGiven(keyed)),
    }),
  );
  const batch = { firstNumber: BigInt(firstNumber), assignments };
  const sought = pointers && { pointers: [...pointers] };
  return { ...batch, plugin, itemTimeoutMs: BigInt(itemTimeoutMs), ...sought };
}

function writeGiven({
  key,
  commit,
  state,
  origin,
}: GivenState): MessageInitShape<typeof KeyedAssignmentSchema> {
  return {
    key,
    commit: BigInt(commit),
    ...(state !== null && { state }),
    ...(origin && { origin: writeOrigin(origin) }),
  };
}

function writeState({ key, commit, state }: GivenState): MessageInitShape<typeof KeyStateSchema> {
  return { key, commit: BigInt(commit), ...(state !== null && { state }) };
}

function writeCommit({ number, commit, leftOut }: BatchCommit): MessageInitShape<typeof BatchCommitSchema> {
  return { number: BigInt(number), commit: BigInt(commit), leftOut: [...leftOut] };
}

/** Throws request_invalid, naming what is wrong. */
export function readWritten(wire: PartitionCheckpointAck): WrittenPartition[] {
  return wire.written.map(({ partition, checkpoint }) => {
    const place = checkpoint?.place ?? "";
    if (!isCheckpointPlace(place, partition)) return refuseFrame("a checkpoint's place is no name of one");
    return { partition, place, offset: readCount(checkpoint?.offset ?? 0n, "offset") };
  });
}

/** Throws request_invalid, naming the field. */
export function readLoaded(wire: PartitionLoaded): LoadedPartition {
  const { partition, complete, dropped } = wire;
  return {
    partition,
    says: dropped ? "dropped" : complete ? "has" : "asks",
    offset: readCount(wire.offset, "offset"),
    loaded: readCount(wire.loaded, "loaded"),
    replayed: readCount(wire.replayed, "replayed"),
    durationMs: readCount(wire.durationMs, "duration_ms"),
  };
}

export function writeAttempt({ id, attempt }: NamedAttempt): MessageInitShape<typeof AttemptSchema> {
  return { itemId: id, attempt };
}

/** The worker that says it speaks: not yet whether it may. Throws request_invalid. */
export function readSpeaker(envelope: WorkerEnvelope | undefined): Speaker {
  const workerId = parseUlidBytes<WorkerId>(envelope?.workerId ?? new Uint8Array());
  const incarnation = parseUlidBytes<IncarnationId>(envelope?.incarnation ?? new Uint8Array());
  if (workerId === undefined) return refuseFrame("worker_id is not 16 bytes");
  if (incarnation === undefined) return refuseFrame("incarnation is not 16 bytes");
  if (envelope?.epochSeen !== undefined) readCount(envelope.epochSeen, "epoch_seen");
  return { workerId, incarnation };
}
