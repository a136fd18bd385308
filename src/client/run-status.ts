// The run in numbers, as the library gives it.
import type {
  FailureMessage as FailureMessageWire,
  GetRunResponse,
  Run,
  SetAsideItem as SetAsideItemWire,
  WorkerCounts,
} from "../gen/rollout/v1/run_pb.ts";
import { RunSchema } from "../gen/rollout/v1/run_pb.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";
import type { FleetSummary } from "./fleets.ts";
import type { ReleaseSummary } from "./releases.ts";

/** Fields of `Run` that only `--json` has. */
type JsonOnly = "waitingAtWorkers" | "finishedPerSecond" | "plugin" | "task";

export interface RunStatus extends Omit<Plain<Run>, JsonOnly> {
  readonly state: "open" | "sealed" | "complete" | "cancelled" | "paused" | "unknown";
  /** Items whose rows could not be read and were set aside: up to 100 of them. */
  readonly setAsideItems: readonly SetAsideItem[];
  /** With which words items have failed, the most frequent first; not all of them. */
  readonly failureMessages: readonly FailureMessage[];
  /** Undefined unless it is paused. */
  readonly pauseReason: string | undefined;
  /** The task that is run; undefined before the first submission. */
  readonly task: { readonly plugin: string; readonly summary: string } | undefined;
  /** Items that became final in each of the last seconds, latest last. */
  readonly finishedPerSecond: readonly number[];
  readonly workers: WorkerNumbers;
  /** The release that is not over, or else the last one; undefined while there was none. */
  readonly release: ReleaseSummary | undefined;
  /** Workers that the coordinator starts; none where it starts none. */
  readonly fleets: readonly FleetSummary[];
}

export interface FailureMessage extends Plain<FailureMessageWire> {
  /** One of the items, as `rollout explain` takes it: 64 hexadecimal digits. */
  readonly item: string;
}

export interface SetAsideItem extends Plain<SetAsideItemWire> {
  /** The key of the row in the database. */
  readonly key: string;
}

export interface WorkerNumbers extends Plain<WorkerCounts> {
  /** Their certificates were revoked; they are counted in none of the others. */
  readonly revoked: number;
}

/** How many of the last seconds have to have passed without a result before somebody is asked why. */
const STANDSTILL_SECONDS = 5;

/** Whether workers have items, and nothing has come of any for a while. */
export function standsStill({ running, finishedPerSecond }: RunStatus): boolean {
  const last = finishedPerSecond.slice(-STANDSTILL_SECONDS);
  return running > 0 && last.length === STANDSTILL_SECONDS && last.every((finished) => finished === 0);
}

export function statusOf({ run, finishedPerSecond }: GetRunResponse): RunStatus {
  return { ...numbersOf(plainOf(RunSchema, told(run))), finishedPerSecond };
}

function numbersOf({
  waitingAtWorkers: _waiting,
  finishedPerSecond: _mean,
  plugin,
  task,
  ...numbers
}: Plain<Run>): Omit<RunStatus, "finishedPerSecond"> {
  const { failureMessages, ...others } = numbers as Omit<RunStatus, "task" | "finishedPerSecond">;
  return {
    ...others,
    // In the order of the record that a local run keeps of them.
    failureMessages: failureMessages.map(({ failureClass, message, item, ...counts }) => ({
      ...{ failureClass, message, item, ...counts },
    })),
    task: plugin === undefined ? undefined : { plugin, summary: task ?? "" },
  };
}
