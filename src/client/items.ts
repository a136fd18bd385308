// One item, as an operator sees it: where it stands, what became of its attempts, and what they wrote to standard error.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { failure } from "../base/errors.ts";
import type { WorkerId } from "../base/ids.ts";
import { parseUlidBytes } from "../base/ids.ts";
import { LIMITS } from "../config/limits.ts";
import { ItemState, RunService } from "../gen/rollout/v1/run_pb.ts";
import type { AttemptRecord, GetItemResponse } from "../gen/rollout/v1/run_pb.ts";
import { OutcomeClass } from "../gen/rollout/v1/work_pb.ts";
import { resultOf } from "./results.ts";
import type { Result } from "./results.ts";

/** An attempt that did not succeed. */
export interface EndedAttempt {
  readonly attempt: number;
  readonly worker: WorkerId | undefined;
  /** `error`, `timeout`, `preempted`, … */
  readonly outcome: string;
  readonly message: string;
  readonly startedAtMs: number | undefined;
  readonly durationMs: number | undefined;
  readonly endedAtMs: number;
  /** The size of what is kept of its standard error. */
  readonly logBytes: number;
  readonly pluginVersion: string | undefined;
}

export interface Item {
  /** 64 hexadecimal digits. */
  readonly item: string;
  readonly itemId: Uint8Array;
  /** How the input itself names it. */
  readonly id: string | undefined;
  readonly payload: Uint8Array;
  readonly sequence: number;
  readonly priority: number;
  /** `fresh`: never given out. `returned`: given back, and next to be given out. `delayed`: waits after a failure. */
  readonly state: "fresh" | "returned" | "delayed" | "running" | "done" | "failed" | "unknown";
  /** The current or the last one; 0 before the first. */
  readonly attempt: number;
  readonly charged: number;
  readonly maxAttempts: number;
  readonly lost: number;
  readonly maxLost: number;
  readonly worker: WorkerId | undefined;
  readonly assignedAgeMs: number | undefined;
  /** When a delayed item may run: milliseconds since 1970 on the coordinator's clock. */
  readonly dueAtMs: number | undefined;
  /** How many go before it; undefined when they are too many to count. */
  readonly ahead: number | undefined;
  readonly alone: boolean;
  readonly checkpointBytes: number;
  /** The remembered ones, oldest first. */
  readonly attempts: readonly EndedAttempt[];
  readonly result: Result | undefined;
}

const STATES: Readonly<Record<ItemState, Item["state"]>> = {
  [ItemState.UNSPECIFIED]: "unknown",
  [ItemState.FRESH]: "fresh",
  [ItemState.RETURNED]: "returned",
  [ItemState.DELAYED]: "delayed",
  [ItemState.RUNNING]: "running",
  [ItemState.DONE]: "done",
  [ItemState.FAILED]: "failed",
};

const OUTCOMES: Readonly<Record<OutcomeClass, string>> = {
  [OutcomeClass.UNSPECIFIED]: "unknown",
  [OutcomeClass.SUCCESS]: "success",
  [OutcomeClass.ERROR]: "error",
  [OutcomeClass.TIMEOUT]: "timeout",
  [OutcomeClass.CRASH]: "crash",
  [OutcomeClass.TOO_LARGE]: "too_large",
  [OutcomeClass.PREEMPTED]: "preempted",
  [OutcomeClass.STOLEN]: "stolen",
  [OutcomeClass.FENCED]: "fenced",
  [OutcomeClass.CANCELLED]: "cancelled",
  [OutcomeClass.LOST]: "lost",
  [OutcomeClass.CRASH_SHARED]: "crash_shared",
};

/** So much of a name that is too long. */
const SHOWN_CHARACTERS = 64;

/** `name`: 64 digits, the first of them, or the input's own id. Throws the transport's rows, and those of unknown names. */
export async function readItem(transport: Transport, name: string): Promise<Item> {
  // No item is named so, and a coordinator would take it for a message that it does not understand.
  if (name === "" || name.length > LIMITS.itemTextBytes)
    throw failure("item_unknown", { name: name === "" ? '""' : `${name.slice(0, SHOWN_CHARACTERS)}…` });
  return itemOf(await createClient(RunService, transport).getItem({ name }));
}

export interface AttemptLog {
  /** The attempt's number; 0 when there is no log. */
  readonly attempt: number;
  readonly log: Uint8Array;
}

/** The log of attempt number `attempt`; 0 is the last one that left something. Throws the transport's rows. */
export async function readAttemptLog(
  transport: Transport,
  itemId: Uint8Array,
  attempt: number,
): Promise<AttemptLog> {
  const answer = await createClient(RunService, transport).getAttemptLog({ itemId, attempt });
  return { attempt: answer.attempt, log: answer.log };
}

function itemOf(answer: GetItemResponse): Item {
  const { itemId, label, state, dueAtMs, ahead, assignedAgeMs, result } = answer;
  return {
    item: Buffer.from(itemId).toString("hex"),
    itemId,
    id: label === "" ? undefined : label,
    payload: answer.payload,
    sequence: Number(answer.sequence),
    priority: answer.priority,
    state: STATES[state] ?? "unknown",
    attempt: answer.attempt,
    charged: answer.charged,
    maxAttempts: answer.maxAttempts,
    lost: answer.lost,
    maxLost: answer.maxLost,
    worker: parseUlidBytes<WorkerId>(answer.workerId),
    assignedAgeMs: assignedAgeMs === undefined ? undefined : Number(assignedAgeMs),
    dueAtMs: dueAtMs === 0n ? undefined : Number(dueAtMs),
    ahead: ahead === undefined ? undefined : Number(ahead),
    alone: answer.alone,
    checkpointBytes: Number(answer.checkpointBytes),
    attempts: answer.attempts.map(attemptOf),
    result: result === undefined ? undefined : resultOf(result),
  };
}

function attemptOf(record: AttemptRecord): EndedAttempt {
  const hasStarted = record.startedAtMs !== 0n;
  return {
    attempt: record.attempt,
    worker: parseUlidBytes<WorkerId>(record.workerId),
    outcome: OUTCOMES[record.outcome] ?? "unknown",
    message: record.message,
    startedAtMs: hasStarted ? Number(record.startedAtMs) : undefined,
    durationMs: hasStarted ? Number(record.durationMs) : undefined,
    endedAtMs: Number(record.endedAtMs),
    logBytes: Number(record.logBytes),
    pluginVersion: record.pluginVersion === "" ? undefined : record.pluginVersion,
  };
}
