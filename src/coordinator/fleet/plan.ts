// The rule of a fleet: what there is against what is wanted, and from that how many to launch and which to end. Pure: the same state and
// demand give the same plan, whatever has happened in between.
//
// Keeps true: never more than `max` machines; only what is idle ends for want of work; what waits to join is counted like what has joined.
import type { EndCause } from "../../../machines/allocation.ts";
import type { FleetSettings } from "../../config/fleet.ts";
import { comesInTime, wanted } from "./demand.ts";
import type { Demand } from "./demand.ts";

/** An allocation as the rule sees it. */
export interface Unit {
  readonly id: string;
  readonly state: "Requested" | "Queued" | "Booting" | "Joined" | "Ending";
  readonly slots: number;
  /** How long it has been in that state, or was asked for. */
  readonly forMs: number;
  /** How long its machine has been ours; 0 while it is not. */
  readonly ranMs: number;
  /** How long its worker has had nothing to do; undefined while it has. */
  readonly idleMs: number | undefined;
  /** Its machine may be taken away, or its worker is given no work. */
  readonly isPoor: boolean;
  /** It was launched with other settings than there are now. */
  readonly isOutdated: boolean;
}

export interface Situation {
  readonly settings: FleetSettings;
  readonly units: readonly Unit[];
  readonly demand: Demand;
  /** Expected from a request to a join. */
  readonly joinMs: number;
  /** For how long there have been more than are wanted; undefined: there are not. */
  readonly surplusMs: number | undefined;
  /** Why nothing is to be launched: its chart, its budget, a list that is not there yet. Undefined: nothing is in the way. */
  readonly obstacle: string | undefined;
  /** Launches that budget, ceiling and failures allow now. */
  readonly launchesMax: number;
  /** Launches since the last poll, and units that there were then. */
  readonly grown: { readonly launches: number; readonly from: number };
  /** Why all of it is to end; undefined while it is not. */
  readonly over: EndCause | undefined;
}

export interface Plan {
  readonly want: number;
  readonly launches: number;
  readonly ends: readonly { readonly id: string; readonly cause: EndCause }[];
  /** There are more than are wanted. */
  readonly hasSurplus: boolean;
  /** Why there are not as many as are wanted, in words; empty: there are. */
  readonly why: string;
}

export function planOf(situation: Situation): Plan {
  const { settings, units, demand, over } = situation;
  const live = units.filter(({ state }) => state !== "Ending");
  if (over !== undefined) {
    const ends = live.map(({ id }) => ({ id, cause: over }));
    return { want: 0, launches: 0, ends, hasSurplus: false, why: "" };
  }
  const overdue = live.flatMap((unit) => {
    const cause = overdueCause(unit, settings);
    return cause === undefined ? [] : [{ id: unit.id, cause }];
  });
  const gone = new Set(overdue.map(({ id }) => id));
  const staying = live.filter(({ id }) => !gone.has(id));
  const want = wanted(demand, settings);
  const excess = staying.length - want;
  const unneeded = excess > 0 ? surplusOf(situation, staying, excess) : [];
  const { launches, why } = launchesOf(situation, { staying: staying.length, want });
  const replaced = replacedOf(situation, { staying, want });
  return { want, launches, ends: [...overdue, ...unneeded, ...replaced], hasSurplus: excess > 0, why };
}

/**
 * One that was launched with other settings, when nothing else is on its way to or from: the one before has been replaced then, and settings
 * that start nobody cost one worker. First those that have not joined, then idle ones, then the oldest.
 */
function replacedOf(
  { units, obstacle }: Situation,
  { staying, want }: { readonly staying: readonly Unit[]; readonly want: number },
): Plan["ends"] {
  const isUnderWay = units.some(
    ({ state, isOutdated }) => state === "Ending" || (state !== "Joined" && !isOutdated),
  );
  if (isUnderWay || obstacle !== undefined || staying.length !== want) return [];
  const [next] = staying
    .filter(({ isOutdated }) => isOutdated)
    .toSorted(
      (one, other) =>
        Number(one.state === "Joined") - Number(other.state === "Joined") ||
        Number(one.idleMs === undefined) - Number(other.idleMs === undefined) ||
        other.ranMs - one.ranMs,
    );
  return next === undefined ? [] : [{ id: next.id, cause: "replaced" }];
}

function overdueCause(
  { state, forMs, ranMs }: Unit,
  { startTimeoutMs, queueTimeoutMs, maxLifetimeMs }: FleetSettings,
): EndCause | undefined {
  if (maxLifetimeMs !== undefined && ranMs >= maxLifetimeMs) return "lifetime";
  if (state === "Booting" && forMs >= startTimeoutMs) return "start_timeout";
  return state === "Queued" && queueTimeoutMs !== undefined && forMs >= queueTimeoutMs
    ? "queue_timeout"
    : undefined;
}

/**
 * Allocations to end: first those that have not joined, the youngest first, where those that have joined are enough for every item; then idle
 * ones, poor ones first, then the oldest.
 */
function surplusOf(
  { settings: { idleTimeoutMs }, surplusMs = 0, demand }: Situation,
  staying: readonly Unit[],
  excess: number,
): Plan["ends"] {
  const joined = staying.filter(({ state }) => state === "Joined");
  const slots = joined.reduce((sum, { slots: own }) => sum + own, demand.slotsElsewhere);
  const isEnough = surplusMs >= idleTimeoutMs && slots >= demand.pending + demand.executing;
  const coming = isEnough ? staying.filter(({ state }) => state !== "Joined") : [];
  const idle = joined.filter(({ idleMs }) => idleMs !== undefined && idleMs >= idleTimeoutMs);
  const ordered = [
    ...coming.toSorted((one, other) => one.forMs - other.forMs),
    ...idle.toSorted((one, other) => Number(other.isPoor) - Number(one.isPoor) || other.ranMs - one.ranMs),
  ];
  return ordered
    .slice(0, excess)
    .map(({ id, state }) => ({ id, cause: state === "Joined" ? "idle" : "surplus" }));
}

function launchesOf(
  { settings, units, demand, joinMs, obstacle, launchesMax, grown }: Situation,
  { staying, want }: { readonly staying: number; readonly want: number },
): Pick<Plan, "launches" | "why"> {
  const short = want - staying;
  if (short <= 0) return { launches: 0, why: "" };
  if (obstacle !== undefined) return { launches: 0, why: obstacle };
  const room = settings.max - units.length;
  if (room <= 0) return { launches: 0, why: "those that end are waited for" };
  const slotsThere =
    demand.slotsElsewhere +
    units.reduce((sum, { state, slots }) => sum + (state === "Ending" ? 0 : slots), 0);
  const isBelowMin = staying < settings.min;
  if (!isBelowMin && !comesInTime(demand, slotsThere, joinMs))
    return { launches: 0, why: "the work will be done before another could join" };
  const coming = units.filter(({ state }) => state !== "Joined" && state !== "Ending").length;
  const byPending = settings.maxPending - coming;
  if (byPending <= 0) return { launches: 0, why: `max_pending (${settings.maxPending}) have not joined yet` };
  const byGrowth = Math.max(1, grown.from) - grown.launches;
  const launches = Math.max(0, Math.min(short, room, byPending, byGrowth, launchesMax));
  if (launches === short) return { launches, why: "" };
  return {
    launches,
    why: launchesMax <= launches ? "its failures and limits allow no more now" : "it grows step by step",
  };
}
