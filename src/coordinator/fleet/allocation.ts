// An allocation in memory: where it stands in its chart, and what only this leader knows of it.
import { charts } from "../../../machines/index.ts";
import type { AllocationContext, AllocationEvent } from "../../../machines/allocation.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";

export const allocationChart: CompiledChart<AllocationContext, AllocationEvent, { readonly atMs: number }> =
  compile(charts.allocation.machine);

export type AllocationState = "Requested" | "Queued" | "Booting" | "Joined" | "Ending" | "Failed" | "Gone";

export interface Allocation {
  /** ULID; also its worker's. */
  readonly id: string;
  readonly fleet: string;
  readonly slots: number;
  row: Row<AllocationContext>;
  /** The settings with which it was launched, as `launchDigest` has them; empty where nobody knows. */
  readonly launchedWith: string;
  /** The request by which its worker got its certificate; empty: it has none yet. */
  request: string;
  /** The last words of one that has failed; undefined while they were not asked for. */
  log: string | undefined;
  /** Its launch is under way: no list that was asked for before its end says anything of it. */
  isLaunching: boolean;
  isStopping: boolean;
  /** The first list of this leadership that can know of it. */
  knownFromList: number;
  /** Since when its worker has nothing to do, monotonic; undefined while it has. */
  idleSinceMs: number | undefined;
  /** Its worker has brought a result, or had joined before this leadership. */
  hasWorked: boolean;
  /** Its worker was not heard, and its provider was asked about it. */
  isSilent: boolean;
}

export function newAllocation(
  named: Pick<Allocation, "id" | "fleet" | "slots" | "launchedWith">,
  atMs: number,
): Allocation {
  return restored({ ...named, row: allocationChart.initial({ atMs }), log: undefined, request: "" });
}

/** As its row has it. */
export function restored(
  stored: Pick<Allocation, "id" | "fleet" | "slots" | "row" | "log" | "request" | "launchedWith">,
): Allocation {
  const volatile = { isLaunching: false, isStopping: false, isSilent: false };
  const hasWorked = stored.row.context.joinedAtMs !== null;
  return { ...stored, ...volatile, hasWorked, knownFromList: 0, idleSinceMs: undefined };
}

export function allocationStateOf({ row }: Pick<Allocation, "row">): AllocationState {
  return allocationChart.nameOf(row) as AllocationState;
}

export function isOver(allocation: Pick<Allocation, "row">): boolean {
  const state = allocationStateOf(allocation);
  return state === "Failed" || state === "Gone";
}

/** How long its machine has been ours; 0 while it was not. */
export function ranMs({ row: { context } }: Pick<Allocation, "row">, nowMs: number): number {
  const { bootedAtMs, endedAtMs } = context;
  return bootedAtMs === null ? 0 : Math.max(0, (endedAtMs ?? nowMs) - bootedAtMs);
}

/** How it came to its end: by its worker's own doing, ours, its machine's, or nobody's. */
export function outcomeOf({
  row: { context },
}: Pick<Allocation, "row">): "finished" | "ended" | "preempted" | "lost" {
  const { cause, isPreempted } = context;
  if (isPreempted) return "preempted";
  if (cause === "left") return "finished";
  return cause === null || cause === "mute" ? "lost" : "ended";
}
