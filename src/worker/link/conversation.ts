// One stream of a session: what was said on it and is not answered, and what is to be said. It ends with the stream, and the next one
// begins with what the worker holds then.
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AsyncQueue } from "../../base/async-queue.ts";
import type { HandBackSchema } from "../../gen/rollout/v1/work_pb.ts";
import { Credit } from "./session-credit.ts";

export interface Conversation {
  /** Rung when there may be something to say. */
  readonly bell: AsyncQueue<true>;
  readonly cutOff: AbortController;
  /** It was cut off for the next one to state anew what there is. */
  isDistrusted: boolean;
  readonly credit: Credit;
  /** Keys of the attempts that were stated, in the order of the verdicts; undefined once they have come. */
  awaitsVerdictOn: readonly string[] | undefined;
  /** Assignments that were asked for and have not come are not wanted any more. */
  isAskedTooMuch: boolean;
  /** To be said in this order, each in a frame of its own. */
  readonly handBacks: MessageInitShape<typeof HandBackSchema>[];
  sentBatch: number;
  /** The coordinator takes no larger one. */
  maxOutputBytes: number;
  toldAssignment: number;
}

/** `keys`: those of the attempts that its hello states. `received`: the highest assignment number before it. */
export function beginConversation(keys: readonly string[], received: number): Conversation {
  return {
    bell: new AsyncQueue(1),
    cutOff: new AbortController(),
    isDistrusted: false,
    credit: new Credit(received),
    isAskedTooMuch: false,
    awaitsVerdictOn: keys,
    handBacks: [],
    sentBatch: 0,
    maxOutputBytes: Infinity,
    toldAssignment: received,
  };
}

export function isReconciled(conversation: Conversation): boolean {
  return conversation.awaitsVerdictOn === undefined;
}
