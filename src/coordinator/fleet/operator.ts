// Fleets for operators: how they stand, and what a person decides. Each decision may come twice, and changes something once.
import type { ErrorCode } from "../../base/errors.ts";
import { allocationStateOf, isOver, outcomeOf, ranMs } from "./allocation.ts";
import type { Allocation, AllocationState } from "./allocation.ts";
import { at, end, failureOf, moveFleet, writeFleet } from "./books.ts";
import { costOf, hoursOf, spentMsOf } from "./budget.ts";
import { accountOf, countsOf, fleetStateOf, settingsOf } from "./fleet.ts";
import type { Fleet, FleetState, Scale } from "./fleet.ts";
import type { FleetRun, FleetTurn } from "./ports.ts";

/** The fleets of the run. */
interface FleetBoard {
  readonly all: readonly Fleet[];
  named(name: string): Fleet | undefined;
  allocation(id: string): { readonly fleet: Fleet; readonly allocation: Allocation } | undefined;
}

export type FleetDecision =
  | { readonly action: "pause"; readonly fleet: string; readonly reason: string }
  | { readonly action: "resume"; readonly fleet: string }
  /** Undefined: as the file says. */
  | { readonly action: "scale"; readonly fleet: string; readonly scale: Partial<Scale> | undefined }
  /** A fleet, which is paused first, or one allocation. */
  | { readonly action: "end"; readonly target: string; readonly reason: string };

export type FleetVerdict =
  | { readonly kind: "fleet"; readonly fleet: ShownFleet }
  | {
      readonly kind: "refused";
      readonly code: ErrorCode;
      readonly params: Readonly<Record<string, string | number>>;
    };

export interface ShownAllocation {
  readonly allocation: string;
  readonly fleet: string;
  readonly state: AllocationState;
  readonly ref: string;
  readonly reason: string;
  readonly askedAtMs: number;
  readonly ranMs: number;
  readonly log: string | undefined;
  /** Nothing of it is left. */
  readonly isOver: boolean;
}

export interface ShownFleet {
  readonly name: string;
  readonly provider: string;
  readonly state: Exclude<FleetState, "Deferred">;
  readonly want: number;
  readonly joined: number;
  readonly starting: number;
  readonly queued: number;
  readonly ending: number;
  readonly min: number;
  readonly max: number;
  readonly machineHours: number;
  readonly cost: number | undefined;
  readonly reason: string;
}

export interface ShownDetail {
  readonly fleet: ShownFleet;
  /** Why it is as large as it is, in sentences. */
  readonly facts: readonly string[];
  /** Why its last list failed; empty where it did not. */
  readonly listTrouble: string;
  /** The latest first; those that are over included. */
  readonly allocations: readonly ShownAllocation[];
}

export interface FleetsShown {
  readonly fleets: readonly ShownDetail[];
}

export function shownDetail(turn: FleetTurn, fleet: Fleet): ShownDetail {
  const allocations = [...fleet.allocations.values()].toReversed();
  return {
    fleet: shownFleet(turn, fleet),
    ...{ facts: factsOf(fleet), listTrouble: fleet.lists.trouble },
    allocations: allocations.map((each) => shownAllocation(turn, each)),
  };
}

export function shownFleet(turn: FleetTurn, fleet: Fleet): ShownFleet {
  const { requested, queued, booting, joined, ending } = countsOf(fleet);
  const { name, want, settings, row } = fleet;
  const { min, max } = settingsOf(fleet);
  const machineMs = spentMsOf(accountOf(fleet, at(turn)));
  return {
    ...{ name, provider: settings.provider.kind, state: shownState(fleet), want },
    ...{ joined, starting: requested + booting, queued, ending, min, max },
    ...{ machineHours: hoursOf(machineMs), cost: costOf(machineMs, settings.pricePerHour) },
    reason: row.context.reason === "" ? fleet.why : row.context.reason,
  };
}

/** That a person was asked is the run's to show. */
function shownState(fleet: Fleet): ShownFleet["state"] {
  const state = fleetStateOf(fleet);
  return state === "Deferred" ? "Spent" : state;
}

function factsOf(fleet: Fleet): string[] {
  const { learned, want, why, scale, row, lists } = fleet;
  const { failuresInRow, by } = row.context;
  const { min, max, slots } = settingsOf(fleet);
  const itemMs = learned.ended === 0 ? undefined : learned.busyMs / learned.ended;
  return [
    `it wants ${want} (at least ${min}, at most ${max}), each with ${slots} slot${slots === 1 ? "" : "s"}`,
    itemMs === undefined
      ? "no item has ended yet, so it is not known how long one takes"
      : `an item takes ${Math.round(itemMs)} ms of a slot`,
    ...(learned.joinMs === 0
      ? []
      : [`a worker joins ${Math.round(learned.joinMs)} ms after it is asked for`]),
    ...(why === "" ? [] : [`no more are started now: ${why}`]),
    ...(failuresInRow === 0 ? [] : [`starts that failed in a row: ${failuresInRow}`]),
    ...(lists.trouble === "" ? [] : [`its last list failed: ${lists.trouble}`]),
    ...lists.silent.map((reason) => `its last list says nothing of ${reason}`),
    ...(scale === null ? [] : ["its limits were set by an operator"]),
    ...(by === "" ? [] : [`last decided by ${by}`]),
  ];
}

function shownAllocation(turn: FleetTurn, allocation: Allocation): ShownAllocation {
  const { context } = allocation.row;
  const state = allocationStateOf(allocation);
  const ended = state === "Gone" ? outcomeOf(allocation) : "";
  return {
    ...{ allocation: allocation.id, fleet: allocation.fleet, state, ref: context.ref },
    reason: state === "Failed" ? failureOf(allocation) : (context.cause ?? (context.reason || ended)),
    ...{ askedAtMs: context.askedAtMs, ranMs: ranMs(allocation, at(turn)), log: allocation.log },
    isOver: isOver(allocation),
  };
}

export function steerFleet(
  turn: FleetTurn,
  fleets: FleetBoard,
  { by, decision }: { readonly by: string; readonly decision: FleetDecision },
  run: FleetRun,
): FleetVerdict {
  // The fleet as it is now is on stable storage when this is answered.
  turn.requireSync();
  if (decision.action === "end") return endTarget(turn, fleets, { by, ...decision }, run);
  const fleet = fleets.named(decision.fleet);
  if (fleet === undefined) return unknown(fleets, decision.fleet);
  switch (decision.action) {
    case "pause":
      moveFleet(turn, fleet, { type: "fleet.paused", reason: decision.reason, by });
      break;
    case "resume":
      moveFleet(turn, fleet, { type: "fleet.resumed", by });
      break;
    case "scale": {
      const scale = scaleOf(fleet, decision.scale);
      if (scale !== null && scale.min > scale.max)
        return { kind: "refused", code: "fleet_min_over_max", params: { fleet: fleet.name, ...scale } };
      fleet.scale = scale;
      writeFleet(turn, fleet);
    }
  }
  return { kind: "fleet", fleet: shownFleet(turn, fleet) };
}

function scaleOf(fleet: Fleet, said: Partial<Scale> | undefined): Scale | null {
  if (said === undefined) return null;
  const { min, max } = settingsOf(fleet);
  return { min: said.min ?? min, max: said.max ?? max };
}

function endTarget(
  turn: FleetTurn,
  fleets: FleetBoard,
  { target, reason, by }: { readonly target: string; readonly reason: string; readonly by: string },
  run: FleetRun,
): FleetVerdict {
  const one = fleets.allocation(target);
  const fleet = one?.fleet ?? fleets.named(target);
  if (fleet === undefined) return unknown(fleets, target);
  if (one === undefined) moveFleet(turn, fleet, { type: "fleet.paused", reason, by });
  for (const allocation of one === undefined ? fleet.allocations.values() : [one.allocation])
    if (!isOver(allocation)) end(turn, fleet, allocation, { cause: "operator", run });
  return { kind: "fleet", fleet: shownFleet(turn, fleet) };
}

function unknown({ all }: FleetBoard, fleet: string): FleetVerdict {
  const known = all.map(({ name }) => name).join(", ");
  return { kind: "refused", code: "fleet_unknown", params: { fleet, known: known === "" ? "none" : known } };
}
