// Frames of a worker's session between the wire and the coordinator's own words. What comes in is checked here, field by
// field and against its limit; payloads and outputs are opaque and never looked into.
import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { failure } from "../../base/errors.ts";
import type { IncarnationId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import type { Attempt as WireAttempt, CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import { HeldPhase, HeldVerdict, OutcomeClass, SessionResponseSchema } from "../../gen/rollout/v1/work_pb.ts";
import type { HeldAttempt, Result, SessionResponse } from "../../gen/rollout/v1/work_pb.ts";
import { ITEM_ID_BYTES } from "../ledger/item-id.ts";
import type { HeldClaim, NamedAttempt, Report, ReportedOutcome, SessionFrame } from "../session-frame.ts";

const OUTPUT_BYTES_MAX = 1024 * 1024;
const MESSAGE_CHARACTERS_MAX = 4_096;
const DIGEST_BYTES = 32;

/** Throws request_invalid, naming what is wrong. */
export function refuseFrame(reason: string): never {
  throw failure("request_invalid", { method: "a frame of a session", reason });
}

export function readAttempt(wire: WireAttempt | undefined): NamedAttempt {
  if (wire?.itemId.length !== ITEM_ID_BYTES) return refuseFrame("item_id is not 32 bytes");
  return { id: wire.itemId, attempt: wire.attempt };
}

export function readHeld({ attempt, epoch, phase }: HeldAttempt): HeldClaim {
  const isFinished = phase === HeldPhase.FINISHED;
  return { ...readAttempt(attempt), epoch: readEpoch(epoch), isFinished };
}

export function readReport(wire: Result, incarnation: IncarnationId): Report {
  const executedBy =
    wire.incarnation.length === 0 ? incarnation : parseUlidBytes<IncarnationId>(wire.incarnation);
  if (executedBy === undefined) return refuseFrame("a result's incarnation is not 16 bytes");
  return {
    ...readAttempt(wire.attempt),
    incarnation: executedBy,
    epoch: readEpoch(wire.epoch),
    outcome: readOutcome(wire),
  };
}

function readOutcome(wire: Result): ReportedOutcome {
  const message = wire.errorMessage.slice(0, MESSAGE_CHARACTERS_MAX);
  switch (wire.outcome) {
    case OutcomeClass.SUCCESS:
      if (wire.output.length > OUTPUT_BYTES_MAX)
        return {
          kind: "too_large",
          message: `the output is ${wire.output.length} bytes; the limit is ${OUTPUT_BYTES_MAX}`,
        };
      if (wire.outputDigest.length !== DIGEST_BYTES) return refuseFrame("output_digest is not 32 bytes");
      return { kind: "success", output: wire.output, digest: wire.outputDigest };
    case OutcomeClass.ERROR:
      return { kind: "error", message };
    case OutcomeClass.TIMEOUT:
      return { kind: "timeout", message };
    case OutcomeClass.CRASH:
      return { kind: "crash", message };
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
    case OutcomeClass.UNSPECIFIED:
    case OutcomeClass.LOST:
      return refuseFrame("outcome is not one that a worker reports");
    default:
      return refuseFrame("outcome is not known to this version");
  }
}

function readEpoch(wire: bigint | undefined): number {
  return wire === undefined ? refuseFrame("epoch is missing") : Number(wire);
}

/** `ackedResults` is the highest batch of results that is on stable storage. */
export function writeFrame(
  coordinator: CoordinatorEnvelope,
  frame: SessionFrame,
  ackedResults: number,
): SessionResponse {
  return create(SessionResponseSchema, {
    coordinator,
    ackedResults: BigInt(ackedResults),
    frame: writeBody(frame),
  });
}

function writeBody(
  frame: SessionFrame,
): NonNullable<MessageInitShape<typeof SessionResponseSchema>["frame"]> {
  switch (frame.kind) {
    case "verdict": {
      const verdicts = frame.keep.map((keep) => (keep ? HeldVerdict.KEEP : HeldVerdict.DROP));
      return { case: "verdict", value: { verdicts } };
    }
    case "assignments": {
      const assignments = frame.items.map(({ id, attempt, payload, priority }) => ({
        attempt: { itemId: id, attempt },
        payload,
        priority,
      }));
      return { case: "assignments", value: { firstNumber: BigInt(frame.firstNumber), assignments } };
    }
    case "release": {
      const released = frame.attempts.map(({ id, attempt }) => ({ itemId: id, attempt }));
      return { case: "release", value: { released } };
    }
    case "resultsAcknowledged":
      return { case: undefined };
  }
}
