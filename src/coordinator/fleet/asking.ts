// Questions to providers at each look: launches and stops that have not taken effect are repeated, and lists are asked for.
import { allocationStateOf } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { at, sendLaunch, step } from "./books.ts";
import { DRAIN_MS } from "./budget.ts";
import { liveOf } from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import type { FleetRun, FleetTurn } from "./ports.ts";

const RELAUNCH_AFTER_MS = 30_000;
const MISSES = 2;
const STOP_AGAIN = { baseMs: 5_000, ceilingMs: 300_000 };
const STUCK_STOPS = 5;
/** Beside what a drain may take. */
const STOP_GRACE_MS = 5_000;
/** Where all allocations are heard, lists look for orphans alone. */
const QUIET_POLLS = 10;

/** Launches that have not come are repeated; allocations that are to end are told so until they have. */
export function pursue(
  turn: FleetTurn,
  fleet: Fleet,
  allocation: Allocation,
  { run, epoch }: { readonly run: FleetRun; readonly epoch: number },
): void {
  const state = allocationStateOf(allocation);
  const { missed, launchedAtMs } = allocation.row.context;
  if (state === "Requested" && missed >= MISSES && at(turn) - launchedAtMs >= RELAUNCH_AFTER_MS) {
    step(turn, fleet, allocation, { type: "launch.repeated", atMs: at(turn) });
    return sendLaunch(turn, fleet, allocation, epoch);
  }
  if (state === "Ending") stop(turn, fleet, allocation, run);
}

function stop(turn: FleetTurn, fleet: Fleet, allocation: Allocation, { workers }: FleetRun): void {
  const { endingAtMs, stops, stopAtMs, ref } = allocation.row.context;
  if (allocation.isLaunching || allocation.isStopping) return;
  const presence = workers.get(allocation.id)?.presence;
  // One that leaves in good order needs no stop, unless it is listed all the same.
  const patienceMs = presence === undefined || presence === "silent" ? 0 : DRAIN_MS + STOP_GRACE_MS;
  if (at(turn) < Math.max(stopAtMs, (endingAtMs ?? 0) + patienceMs)) return;
  const againAtMs = at(turn) + Math.min(STOP_AGAIN.ceilingMs, STOP_AGAIN.baseMs * 2 ** Math.min(stops, 30));
  step(turn, fleet, allocation, { type: "stop.sent", atMs: at(turn), againAtMs });
  askStop(turn, fleet, allocation, { ref, force: stops > 0 });
  if (stops + 1 === STUCK_STOPS)
    turn.emit("allocation_stuck", { fleet: fleet.name, allocation: allocation.id, stops: stops + 1 });
}

export function askStop(
  turn: FleetTurn,
  fleet: Fleet,
  allocation: Allocation,
  { ref, force }: { readonly ref: string; readonly force: boolean },
): void {
  allocation.isStopping = true;
  turn.askProvider({ verb: "stop", fleet: fleet.name, allocation: allocation.id, ref, force });
}

/** Heartbeats say who lives: the provider is asked about the others. */
export function poll(turn: FleetTurn, fleet: Fleet): void {
  const { lists, settings } = fleet;
  if (lists.isAsking) return;
  const hasOthers = liveOf(fleet).some(
    (allocation) => allocationStateOf(allocation) !== "Joined" || allocation.isSilent,
  );
  const everyMs = settings.pollIntervalMs * (hasOthers || lists.good === 0 ? 1 : QUIET_POLLS);
  if (!lists.isUrgent && turn.nowMs - lists.askedAtMs < everyMs) return;
  lists.asked++;
  lists.isAsking = true;
  lists.isUrgent = false;
  lists.askedAtMs = turn.nowMs;
  turn.askProvider({ verb: "list", fleet: fleet.name, number: lists.asked });
}
