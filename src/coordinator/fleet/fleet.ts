// A fleet in memory: where it stands in its chart, what it has spent and learned, and its allocations.
import { createHash } from "node:crypto";
import { charts } from "../../../machines/index.ts";
import type { FleetContext, FleetEvent, FleetInput } from "../../../machines/fleet.ts";
import type { FleetSettings } from "../../config/fleet.ts";
import { compile } from "../../runtime/compile.ts";
import type { CompiledChart, Row } from "../../runtime/compile.ts";
import { allocationStateOf, isOver, ranMs } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import type { Account } from "./budget.ts";
import { NOTHING_LEARNED } from "./demand.ts";
import type { Learned } from "./demand.ts";

export const fleetChart: CompiledChart<FleetContext, FleetEvent, FleetInput> = compile(charts.fleet.machine);

/** So many starts that fail one after the other are no accident. */
const FAILURES_MAX = 8;

export type FleetState = "Active" | "Cooling" | "Halted" | "Paused" | "Spent" | "Deferred";

/** Limits that a person has set in place of the file's. */
export interface Scale {
  readonly min: number;
  readonly max: number;
}

/** The contents of its row. */
export interface FleetBooks {
  row: Row<FleetContext>;
  /** Time of machines that are over. */
  machineMs: number;
  learned: Learned;
  /** Null: as the file says. */
  scale: Scale | null;
  /** Launches since a worker joined, and when the first of them was, by the steady clock. */
  launches: { readonly count: number; readonly sinceMs: number };
  /** Items that were submitted when they last came in, and when that was, by the steady clock. */
  backlog: { readonly submitted: number; readonly sinceMs: number };
}

export interface Fleet extends FleetBooks {
  readonly name: string;
  /** As the file has them; for one that it does not have any more, so that nothing is launched. */
  settings: FleetSettings;
  /** It is in the file. */
  isConfigured: boolean;
  /** By id; those that are over included, the oldest first. */
  readonly allocations: Map<string, Allocation>;
  /** Its lists in this leadership: asked for, the last good one, when they were asked for (monotonic), and why the last one was no good. */
  lists: {
    asked: number;
    isAsking: boolean;
    askedAtMs: number;
    good: number;
    trouble: string;
    /** Places that the last good one says nothing of, and why, in words. */
    silent: readonly string[];
    /** A worker has turned silent: one is asked for at once. */
    isUrgent: boolean;
  };
  /** Since the last poll. */
  grown: { readonly launches: number; readonly from: number; readonly atMs: number };
  /** Monotonic. */
  surplusSinceMs: number | undefined;
  want: number;
  why: string;
  /** Something that it has learned is not in its row yet. */
  isLearning: boolean;
  writtenAtMs: number;
}

export function newBooks(): FleetBooks {
  return {
    row: fleetChart.initial({ maxFailuresInRow: FAILURES_MAX }),
    machineMs: 0,
    learned: NOTHING_LEARNED,
    scale: null,
    launches: { count: 0, sinceMs: 0 },
    backlog: { submitted: 0, sinceMs: 0 },
  };
}

export function openFleet(
  settings: FleetSettings,
  books: FleetBooks,
  allocations: readonly Allocation[],
  isConfigured: boolean,
): Fleet {
  return {
    ...books,
    ...{ name: settings.name, settings, isConfigured },
    allocations: new Map(allocations.map((allocation) => [allocation.id, allocation])),
    lists: {
      asked: 0,
      isAsking: false,
      askedAtMs: -Infinity,
      good: 0,
      trouble: "",
      silent: [],
      isUrgent: false,
    },
    grown: { launches: 0, from: 0, atMs: -Infinity },
    ...{ surplusSinceMs: undefined, want: 0, why: "", isLearning: false, writtenAtMs: -Infinity },
  };
}

export function fleetStateOf({ row }: Pick<Fleet, "row">): FleetState {
  return fleetChart.nameOf(row) as FleetState;
}

/** The settings that a worker has from its launch to its end: with others it is another worker. Hosts may come and go. */
export function launchDigest({ slots, provider: { timeoutMs: _, ...provider } }: FleetSettings): string {
  return createHash("sha256")
    .update(JSON.stringify([slots, { ...provider, hosts: undefined }]))
    .digest("hex")
    .slice(0, 16);
}

/** Its budget is used up. */
export function isSpent(fleet: Pick<Fleet, "row">): boolean {
  const state = fleetStateOf(fleet);
  return state === "Spent" || state === "Deferred";
}

/** The latest moment in its rows. */
export function latestOf({ allocations, launches, backlog }: Fleet): number {
  const moments = [...allocations.values()].flatMap(({ row: { context } }) => [
    ...[context.askedAtMs, context.launchedAtMs, context.queuedAtMs, context.bootedAtMs],
    ...[context.joinedAtMs, context.endingAtMs, context.endedAtMs],
  ]);
  return moments.reduce<number>(
    (latest, atMs) => Math.max(latest, atMs ?? 0),
    Math.max(launches.sinceMs, backlog.sinceMs),
  );
}

/** The settings with what a person has said since. */
export function settingsOf({ settings, scale }: Pick<Fleet, "settings" | "scale">): FleetSettings {
  return scale === null ? settings : { ...settings, ...scale };
}

export function liveOf({ allocations }: Pick<Fleet, "allocations">): Allocation[] {
  return [...allocations.values()].filter((allocation) => !isOver(allocation));
}

export function accountOf(fleet: Pick<Fleet, "allocations" | "machineMs">, steadyMs: number): Account {
  const runningMs = liveOf(fleet).map((allocation) => ranMs(allocation, steadyMs));
  return { machineMs: fleet.machineMs, runningMs };
}

/** How many are in each of the states that say that they are there or come. */
export function countsOf(fleet: Pick<Fleet, "allocations">): {
  readonly requested: number;
  readonly queued: number;
  readonly booting: number;
  readonly joined: number;
  readonly ending: number;
} {
  const counts = { requested: 0, queued: 0, booting: 0, joined: 0, ending: 0 };
  for (const allocation of liveOf(fleet)) {
    const state = allocationStateOf(allocation).toLowerCase() as keyof typeof counts;
    counts[state]++;
  }
  return counts;
}
