// A fleet as the rule sees it: its allocations in numbers, what is in the way of launches, and why all of it is to end.
import type { EndCause } from "../../../machines/allocation.ts";
import { allocationStateOf, ranMs } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { at, launchesInHour } from "./books.ts";
import type { Allowance } from "./budget.ts";
import type { Demand } from "./demand.ts";
import { fleetStateOf, isSpent, launchDigest, liveOf, settingsOf } from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import type { Situation, Unit } from "./plan.ts";
import type { FleetRun, FleetTurn } from "./ports.ts";

/** Launches in an hour without a join. */
const LAUNCHES_MAX = 60;
const JOIN_EXPECTED_MS = 30_000;

export function situationOf(
  turn: FleetTurn,
  fleet: Fleet,
  {
    run,
    demand,
    allowance,
  }: { readonly run: FleetRun; readonly demand: Demand; readonly allowance: Allowance },
): Situation {
  const settings = settingsOf(fleet);
  const { learned, surplusSinceMs, grown } = fleet;
  return {
    ...{ settings, demand, grown },
    units: liveOf(fleet).map((allocation) => unitOf(turn, fleet, allocation, run)),
    joinMs: learned.joinMs === 0 ? Math.min(JOIN_EXPECTED_MS, settings.startTimeoutMs) : learned.joinMs,
    surplusMs: surplusSinceMs === undefined ? undefined : turn.nowMs - surplusSinceMs,
    obstacle: obstacleOf(fleet),
    launchesMax: launchesMaxOf(turn, fleet, allowance),
    over: overOf(fleet, run, { allowance, wallMs: turn.wallMs }),
  };
}

function unitOf(turn: FleetTurn, fleet: Fleet, allocation: Allocation, { workers }: FleetRun): Unit {
  const { askedAtMs, queuedAtMs, bootedAtMs } = allocation.row.context;
  const worker = workers.get(allocation.id);
  const state = allocationStateOf(allocation) as Unit["state"];
  const sinceMs =
    (state === "Queued" ? queuedAtMs : state === "Booting" ? bootedAtMs : undefined) ?? askedAtMs;
  return {
    ...{ id: allocation.id, state, slots: worker?.slots ?? allocation.slots },
    ...{ forMs: at(turn) - sinceMs, ranMs: ranMs(allocation, at(turn)) },
    idleMs: allocation.idleSinceMs === undefined ? undefined : turn.nowMs - allocation.idleSinceMs,
    isPoor: worker?.isPoor === true,
    isOutdated: allocation.launchedWith !== "" && allocation.launchedWith !== launchDigest(fleet.settings),
  };
}

/** Why a fleet launches nothing, in words; undefined where nothing is in the way. */
function obstacleOf(fleet: Fleet): string | undefined {
  const { lists, row } = fleet;
  if (!fleet.isConfigured) return "it is not in the configuration any more";
  const { reason } = row.context;
  switch (fleetStateOf(fleet)) {
    case "Halted":
      return `halted: ${reason}`;
    case "Paused":
      return reason === "" ? "paused" : `paused: ${reason}`;
    case "Spent":
    case "Deferred":
      return reason;
    case "Cooling":
      return `it waits: ${reason}`;
    case "Active":
      if (lists.trouble !== "") return `it cannot be listed: ${lists.trouble}`;
      return lists.good === 0 ? "its first list is waited for" : undefined;
  }
}

function launchesMaxOf(turn: FleetTurn, fleet: Fleet, { launches }: Allowance): number {
  const byHour = Math.max(0, LAUNCHES_MAX - launchesInHour(turn, fleet));
  const coming = liveOf(fleet).filter(
    (allocation) => !["Joined", "Ending"].includes(allocationStateOf(allocation)),
  ).length;
  // After a failure one is tried at a time.
  const byFailures = fleet.row.context.failuresInRow > 0 ? Math.max(0, 1 - coming) : Infinity;
  return Math.min(launches, byHour, byFailures);
}

/** A budget ends also the workers of a fleet that is paused or halted. */
function overOf(
  fleet: Fleet,
  run: FleetRun,
  { allowance: { spent }, wallMs }: { readonly allowance: Allowance; readonly wallMs: number },
): EndCause | undefined {
  if (!fleet.isConfigured) return "removed";
  if (run.isOver) return "run_over";
  if (spent === undefined && !isSpent(fleet)) return undefined;
  const { stopAtMs } = fleet.settings;
  return stopAtMs !== undefined && wallMs >= stopAtMs ? "deadline" : "budget";
}
