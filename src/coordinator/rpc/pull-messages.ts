// Calls of workers that cannot stream, between the wire and the coordinator's own words.
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { PullRequest, PullResponseSchema } from "../../gen/rollout/v1/work_pb.ts";
import type { Pull, PullAnswer } from "./pull.ts";
import {
  readAttempt,
  readCount,
  readHeld,
  refuseFrame,
  writeAssignments,
  writeAttempt,
} from "./work-messages.ts";
import type { Speaker, Speaking } from "./work-messages.ts";

const REQUEST_ID_BYTES = 16;
/** A call that waits longer looks dead to whatever stands between. */
const PULL_WAIT_MAX_MS = 30_000;

/** Throws request_invalid, naming what is wrong. */
export function readPull(request: PullRequest, speaker: Speaker): Pull {
  const { requestId, waitMs, credit, ackedAssignment } = request;
  if (requestId.length !== REQUEST_ID_BYTES) return refuseFrame("request_id is not 16 bytes");
  if (waitMs > PULL_WAIT_MAX_MS) return refuseFrame(`wait_ms is over ${PULL_WAIT_MAX_MS}`);
  return {
    ...speaker,
    requestId: Buffer.from(requestId).toString("latin1"),
    held: request.held.map(readHeld),
    handedBack: request.handedBack.map(readAttempt),
    ackedAssignment: readCount(ackedAssignment, "acked_assignment"),
    callNumber: readCount(request.callNumber, "call_number"),
    credit,
    waitMs,
  };
}

export function writePullAnswer(
  { envelope: coordinator, limits }: Speaking,
  { assignments, recall, drop }: PullAnswer,
): MessageInitShape<typeof PullResponseSchema> {
  return {
    coordinator,
    maxOutputBytes: BigInt(limits.outputBytes),
    ...(assignments !== undefined && { assignments: writeAssignments(assignments) }),
    ...(recall.length > 0 && { recall: { recalled: recall.map(writeAttempt) } }),
    ...(drop.length > 0 && { drop: { dropped: drop.map(writeAttempt) } }),
  };
}
