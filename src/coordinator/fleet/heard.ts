// News of allocations: answers of their provider, and workers that join, leave or are silent. It is folded into the books, and
// nothing is decided here but what a list means.
//
// Keeps true: nothing is concluded from a list that failed, or that was asked for before the provider had answered the launch.
import type { Random } from "../../base/random.ts";
import { redactSecrets } from "../../base/safe-text.ts";
import type { ListedAllocation, Listing } from "../../fleet/provider.ts";
import { allocationStateOf, isOver } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { askStop } from "./asking.ts";
import {
  adopt,
  at,
  end,
  failureOf,
  leftTooSoon,
  providerFull,
  startFailed,
  step,
  writeAllocation,
} from "./books.ts";
import { liveOf, settingsOf } from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import type { FleetAnswer, FleetRun, FleetTurn, FleetWorker } from "./ports.ts";

/** Machines that no row explains, of one list: the next one has the others. */
const ORPHANS_MAX = 16;

interface Hearing {
  readonly run: FleetRun;
  readonly random: Random;
}

type LaunchAnswer = Extract<FleetAnswer, { readonly verb: "launch" }>;
type ListAnswer = Extract<FleetAnswer, { readonly verb: "list" }>;

export function onLaunched(
  turn: FleetTurn,
  fleet: Fleet,
  { allocation: id, answer }: LaunchAnswer,
  { random }: Hearing,
): void {
  const allocation = fleet.allocations.get(id);
  if (allocation === undefined) return;
  allocation.isLaunching = false;
  allocation.knownFromList = fleet.lists.asked + 1;
  const atMs = at(turn);
  const state = allocationStateOf(allocation);
  switch (answer.kind) {
    case "launched":
      step(turn, fleet, allocation, { type: "launch.accepted", atMs, ref: answer.ref });
      return;
    case "full":
      if (!step(turn, fleet, allocation, { type: "launch.full", atMs, reason: answer.reason })) return;
      if (state === "Requested") providerFull(turn, fleet, answer.reason, random);
      return;
    case "refused":
      if (!step(turn, fleet, allocation, { type: "launch.refused", atMs, reason: answer.reason })) return;
      if (state === "Requested") startFailed(turn, fleet, answer.reason, random);
      return;
    case "unknown":
      turn.warn("nobody knows whether a launch has taken effect: the list will say", {
        ...{ fleet: fleet.name, allocation: id, reason: answer.reason },
      });
  }
}

export function onListed(
  turn: FleetTurn,
  fleet: Fleet,
  { number, answer }: ListAnswer,
  hearing: Hearing,
): void {
  const { lists } = fleet;
  lists.isAsking = false;
  if (answer.kind === "unknown") {
    if (lists.trouble === "")
      turn.warn("a fleet cannot be listed: nothing is concluded from that", {
        ...{ fleet: fleet.name, reason: answer.reason },
      });
    lists.trouble = answer.reason;
    return;
  }
  lists.trouble = "";
  lists.good = number;
  const silent = (answer.silent ?? []).map(({ reason }) => reason);
  if (silent.length > lists.silent.length)
    turn.warn("a fleet's list says nothing of some places", { fleet: fleet.name, reason: silent.join("; ") });
  lists.silent = silent;
  const listed = new Map(answer.allocations.map((each) => [each.allocation, each]));
  for (const allocation of liveOf(fleet)) {
    const found = listed.get(allocation.id);
    if (found !== undefined) onFound(turn, fleet, allocation, { found, hearing });
    else if (!allocation.isLaunching && number >= allocation.knownFromList && !isUntold(allocation, answer))
      onAbsent(turn, fleet, allocation, hearing);
  }
  let orphans = 0;
  for (const found of answer.allocations) {
    if (found.state === "ended" || orphans >= ORPHANS_MAX) continue;
    const known = fleet.allocations.get(found.allocation);
    if (known !== undefined && !isOver(known)) continue;
    orphans++;
    onOrphan(turn, fleet, { known, found }, hearing);
  }
}

function onFound(
  turn: FleetTurn,
  fleet: Fleet,
  allocation: Allocation,
  { found, hearing }: { readonly found: ListedAllocation; readonly hearing: Hearing },
): void {
  const atMs = at(turn);
  const { state, ref, isPreempted } = found;
  if (state === "queued") step(turn, fleet, allocation, { type: "list.queued", atMs, ref });
  else if (state === "running") step(turn, fleet, allocation, { type: "list.running", atMs, ref });
  else if (!isHeardOf(allocation, hearing)) {
    step(turn, fleet, allocation, { type: "list.ended", atMs, isPreempted });
    afterEnd(turn, fleet, allocation, hearing);
  }
}

/** The list says nothing of where it is, or may be. */
function isUntold(
  { row }: Allocation,
  { silent = [] }: Extract<Listing, { readonly kind: "listed" }>,
): boolean {
  const { ref } = row.context;
  return silent.length > 0 && (ref === "" || silent.some((place) => place.ref === ref));
}

/** A good list does not have it. A worker that is heard lives, whatever a list says. */
function onAbsent(turn: FleetTurn, fleet: Fleet, allocation: Allocation, hearing: Hearing): void {
  if (isHeardOf(allocation, hearing)) return;
  if (allocationStateOf(allocation) === "Requested")
    return void step(turn, fleet, allocation, { type: "list.missed", atMs: at(turn) });
  step(turn, fleet, allocation, { type: "list.gone", atMs: at(turn) });
  afterEnd(turn, fleet, allocation, hearing);
}

function isHeardOf({ id }: Allocation, { run }: Hearing): boolean {
  return run.workers.get(id)?.presence === "heard";
}

/** One that has failed says why, and the fleet waits. */
function afterEnd(turn: FleetTurn, fleet: Fleet, allocation: Allocation, { run, random }: Hearing): void {
  if (!isOver(allocation)) return;
  const { id } = allocation;
  if (run.workers.get(id)?.hasWorked === true) allocation.hasWorked = true;
  const { isPreempted } = allocation.row.context;
  const hasFailed = allocationStateOf(allocation) === "Failed" && !isPreempted;
  if (!hasFailed && !leftTooSoon(allocation)) return;
  const reason = hasFailed ? failureOf(allocation) : "its worker left soon after it had joined";
  startFailed(turn, fleet, reason, random);
  turn.askProvider({ verb: "log", fleet: fleet.name, allocation: id, ref: allocation.row.context.ref });
}

/** A machine of this run and store that no row explains: a launch that landed late, or a store that went back. */
function onOrphan(
  turn: FleetTurn,
  fleet: Fleet,
  { known, found }: { readonly known: Allocation | undefined; readonly found: ListedAllocation },
  { run }: Hearing,
): void {
  const about = { fleet: fleet.name, allocation: found.allocation };
  if (known !== undefined) {
    if (known.isStopping) return;
    turn.emit("allocation_orphan", { ...about, adopted: false });
    return askStop(turn, fleet, known, { ref: found.ref, force: true });
  }
  const isWanted = liveOf(fleet).length < Math.min(fleet.want, settingsOf(fleet).max);
  turn.emit("allocation_orphan", { ...about, adopted: isWanted });
  const allocation = adopt(turn, fleet, found.allocation);
  const type = found.state === "queued" ? "list.queued" : "list.running";
  step(turn, fleet, allocation, { type, atMs: at(turn), ref: found.ref });
  if (!isWanted) end(turn, fleet, allocation, { cause: "orphan", run });
}

export function onLog(
  turn: FleetTurn,
  fleet: Fleet,
  { allocation: id, answer }: Extract<FleetAnswer, { readonly verb: "log" }>,
): void {
  const allocation = fleet.allocations.get(id);
  if (allocation === undefined || answer.kind === "unknown") return;
  allocation.log = redactSecrets(answer.text);
  writeAllocation(turn, allocation);
}

/** Workers against allocations: the worker of an allocation has its id. */
export function followWorkers(turn: FleetTurn, fleet: Fleet, hearing: Hearing): void {
  const atMs = at(turn);
  for (const allocation of liveOf(fleet)) {
    const worker = hearing.run.workers.get(allocation.id);
    const wasJoined = allocation.row.context.joinedAtMs !== null;
    if (worker !== undefined && !wasJoined) {
      step(turn, fleet, allocation, { type: "worker.joined", atMs });
      if (allocationStateOf(allocation) === "Ending") hearing.run.drain(allocation.id);
    }
    if (allocationStateOf(allocation) !== "Joined") continue;
    if (worker?.presence === "left") step(turn, fleet, allocation, { type: "worker.left", atMs });
    else if (worker === undefined || worker.silentMs >= fleet.settings.startTimeoutMs)
      step(turn, fleet, allocation, { type: "worker.mute", atMs });
    else noteWork(fleet, allocation, worker, turn.nowMs);
  }
}

/** The provider is asked at once about a worker that turns silent, and not at the next poll. */
function noteWork(fleet: Fleet, allocation: Allocation, worker: FleetWorker, nowMs: number): void {
  const isSilent = worker.presence === "silent";
  allocation.hasWorked ||= worker.hasWorked;
  if (isSilent && !allocation.isSilent) fleet.lists.isUrgent = true;
  allocation.isSilent = isSilent;
  allocation.idleSinceMs = worker.hasItems || isSilent ? undefined : (allocation.idleSinceMs ?? nowMs);
}
