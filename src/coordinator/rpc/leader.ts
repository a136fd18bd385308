// The coordinator behind the services, as they need it: somewhere to put inputs, and the envelope of its leadership; and who may call
// which method.
import type { AwaitedValue } from "../../base/awaited-value.ts";
import { failure } from "../../base/errors.ts";
import type { ItemLimits } from "../../config/limits.ts";
import type { CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";
import type { KeptMessage } from "../../transport/message-reader.ts";
import type { Answer, Input } from "../turn/input.ts";
import type { RunReach } from "../turn/run-terms.ts";
import type { AccessTable } from "../../transport/caller.ts";
import type { FollowedKeys } from "./followed-keys.ts";

export interface Leader {
  readonly envelope: CoordinatorEnvelope;
  readonly workersMax: number;
  readonly inboxMax: number;
  readonly limits: ItemLimits;
  /** How messages name this coordinator. */
  readonly address: string;
  /** How the leadership before this one on its host ended, in words for a person; undefined when it knows of none. */
  readonly former?: string | undefined;
  /** False when the inbox is full, or nothing is taken in any more. */
  push(input: Input): boolean;
  /** How far the run has got, for those who wait for more. */
  readonly reach: AwaitedValue<RunReach>;
  /** Told of the keys that calls wait for. */
  readonly followedKeys: FollowedKeys;
  /** Aborts when the coordinator stops, or does not lead any more: long-lived streams end with it. */
  readonly stopping: AbortSignal;
  /** A worker has heard of a later leader of this store: of this epoch. */
  readonly onHigherEpoch: (epoch: number) => void;
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

type Question = Extract<Input, { readonly answer: Answer<never> }>;
type Asked<Kind extends Question["kind"]> = Extract<Question, { readonly kind: Kind }>;

/** For a unary call: resolves with the answer, which leaves after its turn is committed. */
export function ask<Kind extends Question["kind"]>(
  leader: Leader,
  question: { readonly kind: Kind } & Omit<Asked<Kind>, "kind" | "answer">,
): Promise<Parameters<Asked<Kind>["answer"]>[0]> {
  return new Promise((answer) => submit(leader, { ...question, answer } as unknown as Input));
}

/** Throws request_invalid: the caller's mistake, in words. */
export function refuse(method: string, reason: string): never {
  throw failure("request_invalid", { method, reason });
}

/** Which role may call which method. A method that is not named here is refused to everybody. */
export const ACCESS: AccessTable = {
  "rollout.v1.HeartbeatService/Beat": ["worker"],
  "rollout.v1.HeartbeatService/BeatStream": ["worker"],
  "rollout.v1.WorkService/Session": ["worker"],
  "rollout.v1.WorkService/Pull": ["worker"],
  "rollout.v1.WorkService/ReportResults": ["worker"],
  "rollout.v1.WorkService/GetAssignment": ["worker"],
  "rollout.v1.KeyService/GetKey": ["operator"],
  "rollout.v1.KeyService/ListKeys": ["operator"],
  "rollout.v1.KeyService/ListKeyHistory": ["operator"],
  "rollout.v1.KeyService/SteerKeys": ["operator"],
  "rollout.v1.KeyService/ExportKeys": ["operator"],
  "rollout.v1.KeyService/ImportKeys": ["operator"],
  "rollout.v1.KeyService/ListPartitions": ["operator"],
  "rollout.v1.ReleaseService/CreateRelease": ["operator"],
  "rollout.v1.ReleaseService/GetRelease": ["operator"],
  "rollout.v1.ReleaseService/ListReleases": ["operator"],
  "rollout.v1.ReleaseService/SteerRelease": ["operator"],
  "rollout.v1.FleetService/ListFleets": ["operator"],
  "rollout.v1.FleetService/SteerFleet": ["operator"],
  "rollout.v1.FleetService/CheckFleet": ["operator"],
  "rollout.v1.FleetService/GetAllocationLog": ["operator"],
  "rollout.v1.OperatorService/ListWorkers": ["operator"],
  "rollout.v1.OperatorService/Submit": ["operator"],
  "rollout.v1.OperatorService/Seal": ["operator"],
  "rollout.v1.OperatorService/GetRun": ["operator"],
  "rollout.v1.OperatorService/Pause": ["operator"],
  "rollout.v1.OperatorService/Resume": ["operator"],
  "rollout.v1.OperatorService/Cancel": ["operator"],
  "rollout.v1.OperatorService/Retry": ["operator"],
  "rollout.v1.OperatorService/ListResults": ["operator"],
  "rollout.v1.OperatorService/GetItem": ["operator"],
  "rollout.v1.OperatorService/GetAttemptLog": ["operator"],
  "rollout.v1.OperatorService/GetWorker": ["operator"],
  "rollout.v1.OperatorService/DrainWorker": ["operator"],
  "rollout.v1.OperatorService/Revoke": ["operator"],
  "rollout.v1.OperatorService/WatchEvents": ["operator"],
  "rollout.v1.OperatorService/WatchCharts": ["operator"],
  "rollout.v1.OperatorService/BackUp": ["operator"],
  "rollout.v1.EnrolmentService/SignWorkerCertificate": ["enrolment", "worker"],
  "rollout.v1.CoordinatorService/Describe": ["operator", "coordinator"],
  "rollout.v1.CoordinatorService/StepDown": ["operator"],
};
