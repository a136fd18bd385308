// The books of fleets: every step of an allocation and of a fleet by its chart, the rows that it writes, and the events that say it.
//
// Keeps true: a row is written in the batch of its step, a launch leaves behind the batch that has its row; the time of a machine is
// booked once, when it is over.
import type { AllocationEvent, EndCause } from "../../../machines/allocation.ts";
import { charts } from "../../../machines/index.ts";
import type { FleetEvent } from "../../../machines/fleet.ts";
import { assert } from "../../base/assert.ts";
import { backoffCapMs, backoffMs } from "../../base/random.ts";
import type { BackoffRange, Random } from "../../base/random.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { Effect as ChartEffect } from "../../runtime/compile.ts";
import { standingOf } from "../../runtime/standing.ts";
import { allocationChart, allocationStateOf, isOver, newAllocation, outcomeOf, ranMs } from "./allocation.ts";
import type { Allocation } from "./allocation.ts";
import { HOUR_MS } from "./budget.ts";
import { learnJoin } from "./demand.ts";
import { fleetChart, fleetStateOf, launchDigest } from "./fleet.ts";
import type { Fleet } from "./fleet.ts";
import type { FleetRun, FleetTurn } from "./ports.ts";
import { allocationKey, allocationRecord, fleetKey, fleetRecord } from "./records.ts";

/** Allocations that are over are remembered, the latest of each fleet. */
const REMEMBERED = 1_000;
/** A worker that leaves so soon after it has joined, without a result, has not started. */
const WORKED_MS = 60_000;
const BACKOFF: BackoffRange = { baseMs: 10_000, ceilingMs: 600_000 };
const FULL: BackoffRange = { baseMs: 60_000, ceilingMs: 600_000 };

/** Writes its row, and asks for its launch when that is committed (C2). */
export function launch(
  turn: FleetTurn,
  fleet: Fleet,
  { id, epoch }: { readonly id: string; readonly epoch: number },
): void {
  const { slots } = fleet.settings;
  const launchedWith = launchDigest(fleet.settings);
  const allocation = newAllocation({ id, fleet: fleet.name, slots, launchedWith }, at(turn));
  fleet.allocations.set(id, allocation);
  const count = launchesInHour(turn, fleet);
  fleet.launches = { count: count + 1, sinceMs: count === 0 ? at(turn) : fleet.launches.sinceMs };
  writeAllocation(turn, allocation);
  writeFleet(turn, fleet);
  turn.requireSync();
  turn.emit("allocation_launched", { fleet: fleet.name, allocation: id });
  sendLaunch(turn, fleet, allocation, epoch);
}

/** Launches within an hour since a worker joined. */
export function launchesInHour(turn: FleetTurn, { launches }: Fleet): number {
  return at(turn) - launches.sinceMs >= HOUR_MS ? 0 : launches.count;
}

export function sendLaunch(turn: FleetTurn, fleet: Fleet, allocation: Allocation, epoch: number): void {
  allocation.isLaunching = true;
  const { id, slots } = allocation;
  turn.askProvider({ verb: "launch", fleet: fleet.name, allocation: id, epoch, slots });
}

/** A machine of ours that no row explains, and that is wanted: it gets its row anew. */
export function adopt(turn: FleetTurn, fleet: Fleet, id: string): Allocation {
  const named = { id, fleet: fleet.name, slots: fleet.settings.slots, launchedWith: "" };
  const allocation = newAllocation(named, at(turn));
  fleet.allocations.set(id, allocation);
  writeAllocation(turn, allocation);
  turn.requireSync();
  return allocation;
}

/** False when the chart ignores it. */
export function step(turn: FleetTurn, fleet: Fleet, allocation: Allocation, event: AllocationEvent): boolean {
  const effects: ChartEffect[] = [];
  const from = allocationStateOf(allocation);
  const after = allocationChart.step(allocation.row, event, effects);
  if (after === allocation.row) return false;
  allocation.row = after;
  const to = allocationStateOf(allocation);
  if (from !== to)
    turn.stepped({
      chart: "allocation",
      address: `allocation/${allocation.id}`,
      event: event.type,
      from,
      to,
    });
  if (isOver(allocation)) close(turn, fleet, allocation);
  for (const { type } of effects) announce(turn, fleet, allocation, type);
  writeAllocation(turn, allocation);
  return true;
}

/** Has it end: its worker drains first, if there is one. */
export function end(
  turn: FleetTurn,
  fleet: Fleet,
  allocation: Allocation,
  { cause, run }: { readonly cause: EndCause; readonly run: FleetRun },
): void {
  if (!step(turn, fleet, allocation, { type: "end.asked", atMs: at(turn), cause })) return;
  if (run.workers.get(allocation.id)?.presence === "heard") run.drain(allocation.id);
  turn.requireSync();
}

/** Its machine is not ours any more: its time is booked. */
function close(turn: FleetTurn, fleet: Fleet, allocation: Allocation): void {
  fleet.machineMs += ranMs(allocation, at(turn));
  forgetOldest(turn, fleet);
  writeFleet(turn, fleet);
  turn.requireSync();
}

function forgetOldest(turn: FleetTurn, fleet: Fleet): void {
  const over = [...fleet.allocations.values()].filter(isOver);
  for (const { id } of over.slice(0, Math.max(0, over.length - REMEMBERED))) {
    fleet.allocations.delete(id);
    turn.delete(allocationKey(id));
  }
}

function announce(turn: FleetTurn, fleet: Fleet, allocation: Allocation, effect: string): void {
  const about = { fleet: fleet.name, allocation: allocation.id };
  const { context } = allocation.row;
  switch (effect) {
    case "announceJoined": {
      const tookMs = Math.max(0, at(turn) - context.askedAtMs);
      fleet.learned = learnJoin(fleet.learned, tookMs);
      fleet.launches = { count: 0, sinceMs: 0 };
      moveFleet(turn, fleet, { type: "start.joined" });
      writeFleet(turn, fleet);
      return turn.emit("allocation_joined", { ...about, took_ms: Math.round(tookMs) });
    }
    case "announceEnded":
      return turn.emit("allocation_ended", {
        ...{ ...about, outcome: outcomeOf(allocation), cause: context.cause ?? "" },
        ran_ms: Math.round(ranMs(allocation, at(turn))),
      });
    case "announceFailed":
      return turn.emit("allocation_failed", { ...about, reason: failureOf(allocation) });
    default:
      assert(false, `nothing carries out ${effect} of an allocation`);
  }
}

/** Why it has not started, in words. */
export function failureOf({ row: { context } }: Allocation): string {
  if (context.reason !== "") return context.reason;
  if (context.cause === "start_timeout") return "its worker did not join within start_timeout";
  if (context.cause === "queue_timeout") return "its machine did not come within queue_timeout";
  return context.isPreempted
    ? "its machine was taken away before its worker joined"
    : "its machine ended before its worker joined";
}

/** A start has failed: the next one waits, the longer the more have. */
export function startFailed(turn: FleetTurn, fleet: Fleet, reason: string, random: Random): void {
  const waitMs = jittered(BACKOFF, fleet.row.context.failuresInRow + 1, random);
  moveFleet(turn, fleet, { type: "start.failed", untilMs: at(turn) + waitMs, reason });
}

/** There is no room: it is asked again, and that says nothing against the fleet. */
export function providerFull(turn: FleetTurn, fleet: Fleet, reason: string, random: Random): void {
  const waitMs = jittered(FULL, fleet.row.context.fullsInRow + 1, random);
  moveFleet(turn, fleet, { type: "provider.full", untilMs: at(turn) + waitMs, reason });
}

/** Half of it is chance: a provider is not asked again at once. */
function jittered(range: BackoffRange, attempt: number, random: Random): number {
  return Math.ceil((backoffCapMs(range, attempt) + backoffMs(range, attempt, random)) / 2);
}

/** Whether one that is over and had joined has failed to start all the same. */
export function leftTooSoon({ row, hasWorked }: Allocation): boolean {
  const { joinedAtMs, endedAtMs, endingAtMs, cause, isPreempted } = row.context;
  if (joinedAtMs === null || hasWorked || isPreempted) return false;
  if (cause !== null && cause !== "left" && cause !== "mute") return false;
  return (endingAtMs ?? endedAtMs ?? joinedAtMs) - joinedAtMs < WORKED_MS;
}

/** False when the chart ignores it. */
export function moveFleet(turn: FleetTurn, fleet: Fleet, event: FleetEvent): boolean {
  const effects: ChartEffect[] = [];
  const from = fleetStateOf(fleet);
  const after = fleetChart.step(fleet.row, event, effects);
  if (after === fleet.row) return false;
  fleet.row = after;
  const to = fleetStateOf(fleet);
  turn.stepped({ chart: "fleet", address: `fleet/${fleet.name}`, event: event.type, from, to });
  const about = { fleet: fleet.name, reason: fleet.row.context.reason };
  for (const { type } of effects)
    turn.emit(type === "announceHalted" ? "fleet_halted" : "fleet_spent", about);
  writeFleet(turn, fleet);
  turn.requireSync();
  return true;
}

export function writeFleet(turn: FleetTurn, fleet: Fleet): void {
  const key = fleetKey(fleet.name);
  const { machineMs, learned, scale, launches, backlog } = fleet;
  const standing = standingOf(charts.fleet.machine, fleetChart, fleet.row);
  const record = { standing, machineMs, learned, scale, launches, backlog };
  turn.put({ key, value: encodeRecord(fleetRecord, key, record) });
  fleet.isLearning = false;
  fleet.writtenAtMs = turn.nowMs;
}

export function writeAllocation(turn: FleetTurn, allocation: Allocation): void {
  const key = allocationKey(allocation.id);
  const { fleet, slots, log, request, launchedWith, row } = allocation;
  const standing = standingOf(charts.allocation.machine, allocationChart, row);
  turn.put({
    key,
    value: encodeRecord(allocationRecord, key, { fleet, slots, log, request, launchedWith, standing }),
  });
}

/** Allocations are timed by the steady clock, which the next leader goes on with. */
export function at({ steadyMs }: FleetTurn): number {
  return Math.floor(steadyMs);
}
