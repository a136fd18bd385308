// The run in numbers, and its sealing.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import { RunService, RunState } from "../gen/rollout/v1/run_pb.ts";
import type { GetRunResponse } from "../gen/rollout/v1/run_pb.ts";

export interface RunStatus {
  readonly state: "open" | "sealed" | "complete" | "cancelled" | "paused" | "unknown";
  /** Waiting, `delayed` included. */
  readonly pending: number;
  /** Waiting for a while after a failure. */
  readonly delayed: number;
  /** With workers, started or not. */
  readonly running: number;
  /** Started, as the workers' last beats say. */
  readonly executing: number;
  readonly done: number;
  readonly failed: number;
  /** Items whose rows could not be read and were set aside: how many, and up to 100 of them. */
  readonly setAside: number;
  readonly setAsideItems: readonly SetAsideItem[];
  readonly failedByClass: Readonly<Record<string, number>>;
  /** With which words items have failed, the most frequent first; not all of them. */
  readonly failureMessages: readonly FailureMessage[];
  /** Undefined unless it is paused. */
  readonly pauseReason: string | undefined;
  /** Whether no more items will come. */
  readonly sealed: boolean;
  /** The task that is run; undefined before the first submission. */
  readonly task: { readonly plugin: string; readonly summary: string } | undefined;
  /** Items that became final in each of the last seconds, latest last. */
  readonly finishedPerSecond: readonly number[];
  /** Since it leads: reports of attempts that were given up, results that contradict a recorded one, attempts beyond the first. */
  readonly staleReports: number;
  readonly conflicts: number;
  readonly reassigned: number;
  readonly workers: WorkerNumbers;
}

export interface FailureMessage {
  readonly failureClass: string;
  /** The message of one of them. */
  readonly message: string;
  readonly items: number;
  /** Attempts, since the coordinator leads, after which their items were to be tried again. */
  readonly attempts: number;
  /** One of the items, as `rollout explain` takes it: 64 hexadecimal digits. */
  readonly item: string;
}

export interface SetAsideItem {
  /** 64 hexadecimal digits. */
  readonly item: string;
  /** The key of the row in the database. */
  readonly key: string;
}

export interface WorkerNumbers {
  readonly ready: number;
  readonly draining: number;
  readonly suspected: number;
  readonly failed: number;
  readonly cordoned: number;
  /** Their certificates were revoked; they are counted in none of the others. */
  readonly revoked: number;
}

const STATES: Readonly<Record<RunState, RunStatus["state"]>> = {
  [RunState.UNSPECIFIED]: "unknown",
  [RunState.OPEN]: "open",
  [RunState.SEALED]: "sealed",
  [RunState.COMPLETE]: "complete",
  [RunState.CANCELLED]: "cancelled",
  [RunState.PAUSED]: "paused",
};

/** How many of the last seconds have to have passed without a result before somebody is asked why. */
const STANDSTILL_SECONDS = 5;

/** Whether workers have items, and nothing has come of any for a while. */
export function standsStill({ running, finishedPerSecond }: RunStatus): boolean {
  const last = finishedPerSecond.slice(-STANDSTILL_SECONDS);
  return running > 0 && last.length === STANDSTILL_SECONDS && last.every((finished) => finished === 0);
}

/** Throws the transport's rows. */
export async function readRunStatus(transport: Transport, signal?: AbortSignal): Promise<RunStatus> {
  const options = signal === undefined ? {} : { signal };
  return statusOf(await createClient(RunService, transport).getRun({}, options));
}

/** No more items will come: the run is complete when those that are there are final. Idempotent. */
export async function sealRun(transport: Transport): Promise<void> {
  await createClient(RunService, transport).seal({});
}

function statusOf(answer: GetRunResponse): RunStatus {
  const { workers, taskDigest, plugin, taskSummary } = answer;
  const classes = Object.entries(answer.failedByClass).map(([name, count]) => [name, Number(count)] as const);
  const state = STATES[answer.state] ?? "unknown";
  return {
    state,
    pending: Number(answer.pending),
    delayed: Number(answer.delayed),
    running: Number(answer.running),
    executing: Number(answer.executing),
    done: Number(answer.done),
    failed: Number(answer.failed),
    setAside: Number(answer.setAside),
    setAsideItems: answer.setAsideItems.map(({ itemId, key }) => ({
      item: Buffer.from(itemId).toString("hex"),
      key,
    })),
    failedByClass: Object.fromEntries(classes.filter(([, count]) => count > 0).toSorted()),
    failureMessages: answer.failureMessages.map(({ failureClass, message, items, attempts, itemId }) => ({
      ...{ failureClass, message, item: Buffer.from(itemId).toString("hex") },
      ...{ items: Number(items), attempts: Number(attempts) },
    })),
    pauseReason: state === "paused" ? answer.pauseReason : undefined,
    sealed: answer.sealed,
    task: taskDigest.length === 0 ? undefined : { plugin, summary: taskSummary },
    finishedPerSecond: answer.finishedPerSecond,
    staleReports: Number(answer.staleReports),
    conflicts: Number(answer.conflicts),
    reassigned: Number(answer.reassigned),
    workers: {
      ready: workers?.ready ?? 0,
      draining: workers?.draining ?? 0,
      suspected: workers?.suspected ?? 0,
      failed: workers?.failed ?? 0,
      cordoned: workers?.cordoned ?? 0,
      revoked: workers?.revoked ?? 0,
    },
  };
}
