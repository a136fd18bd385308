// The coordinator behind the services, as they need it: somewhere to put inputs, and the envelope of its leadership.
import { failure } from "../../base/errors.ts";
import type { ItemLimits } from "../../config/limits.ts";
import type { CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import type { KeptMessage } from "../../transport/message-reader.ts";
import type { Answer, Input } from "../turn/input.ts";

export interface Leader {
  readonly envelope: CoordinatorEnvelope;
  readonly workersMax: number;
  readonly inboxMax: number;
  readonly limits: ItemLimits;
  /** How messages name this coordinator. */
  readonly address: string;
  /** False when the inbox is full, or nothing is taken in any more. */
  push(input: Input): boolean;
  /** Aborts when the coordinator stops, or does not lead any more: long-lived streams end with it. */
  readonly stopping: AbortSignal;
  /** A worker has heard of a later leader of this store. */
  readonly onHigherEpoch: () => void;
}

/** Hands the input over, or throws overloaded; coordinator_silent when this one answers nobody any more. */
export function submit(leader: Leader, input: Input): void {
  if (leader.push(input)) return;
  if (leader.stopping.aborted) throw failure("coordinator_silent", { address: leader.address });
  throw failure("overloaded", { what: "the inbox", limit: leader.inboxMax });
}

/** The same for an input that releases what is kept of its message: one that is not taken releases it at once. */
export function submitKept(leader: Leader, kept: KeptMessage, input: Input): void {
  try {
    submit(leader, input);
  } catch (error) {
    kept.release();
    throw error;
  }
}

/** For a unary call: resolves with the answer, which leaves after its turn is committed. */
export function ask<T>(leader: Leader, inputOf: (answer: Answer<T>) => Input): Promise<T> {
  return new Promise((resolve) => submit(leader, inputOf(resolve)));
}
