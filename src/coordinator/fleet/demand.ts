// From what there is to do to how many workers are wanted: pure. Work is spread over the time in which it is to be finished, as far as it is
// known how long an item takes; before that, one worker finds out.
import type { FleetSettings } from "../../config/fleet.ts";

/** The work, and who does it without this fleet. */
export interface Demand {
  /** Items that could start now, if there were a slot. */
  readonly pending: number;
  readonly executing: number;
  /** Slots of workers that are nobody's, and of other fleets: those that are wanted there count. */
  readonly slotsElsewhere: number;
  /** Since items last came in. */
  readonly grownForMs: number;
  /** How long one item takes one slot; undefined while none has ended and none has executed for long. */
  readonly itemMs: number | undefined;
}

/** The share of the time for the work that is always left: a target that is over asks for no more than that. */
const TIME_LEFT_SHARE_MIN = 1 / 4;

type Target = Pick<FleetSettings, "slots" | "min" | "max" | "finishWithinMs">;

/** How many workers of the fleet there should be. */
export function wanted(demand: Demand, { slots, min, max, finishWithinMs }: Target): number {
  const slotsShort = slotsWanted(demand, { slots, finishWithinMs }) - demand.slotsElsewhere;
  return Math.min(max, Math.max(min, Math.ceil(slotsShort / slots)));
}

/** Slots for the work, whoever has them; `slots` of one worker are the least that there is work for. */
export function slotsWanted(
  { pending, executing, grownForMs, itemMs }: Omit<Demand, "slotsElsewhere">,
  { slots, finishWithinMs }: Pick<Target, "slots" | "finishWithinMs">,
): number {
  const bySlots = pending + executing;
  if (finishWithinMs === 0 || bySlots === 0) return bySlots;
  const one = Math.min(slots, bySlots);
  if (itemMs === undefined) return one;
  const leftMs = Math.max(finishWithinMs - grownForMs, finishWithinMs * TIME_LEFT_SHARE_MIN);
  // Items that execute are half done, in the mean.
  const workMs = (pending + executing / 2) * itemMs;
  return Math.min(bySlots, Math.max(one, Math.ceil(workMs / leftMs)));
}

/** Whether anything would be left for a worker that joins after so long, while those that are there go on. */
export function comesInTime(
  { pending, itemMs }: Pick<Demand, "pending" | "itemMs">,
  slotsThere: number,
  joinMs: number,
): boolean {
  if (itemMs === undefined || itemMs === 0) return pending > 0;
  return pending - (slotsThere * joinMs) / itemMs >= 1;
}

/** Experience of a fleet with its work, kept in its row. */
export interface Learned {
  /** Time that slots were busy, and items that ended in it: both fade. */
  readonly busyMs: number;
  readonly ended: number;
  /** From the request of a worker to when it joined; 0: none has. */
  readonly joinMs: number;
}

export const NOTHING_LEARNED: Learned = { busyMs: 0, ended: 0, joinMs: 0 };

/** So many items count: of those before, the weight is halved each time. */
const ITEMS_REMEMBERED = 1_000;
const JOIN_WEIGHT = 0.3;
/** An item that executes for so long says something, though none has ended. */
const TELLING_MS = 5_000;

export function learnWork(learned: Learned, busyMs: number, ended: number): Learned {
  const sum = { ...learned, busyMs: learned.busyMs + busyMs, ended: learned.ended + ended };
  return sum.ended < ITEMS_REMEMBERED ? sum : { ...sum, busyMs: sum.busyMs / 2, ended: sum.ended / 2 };
}

export function learnJoin(learned: Learned, tookMs: number): Learned {
  const { joinMs } = learned;
  return { ...learned, joinMs: joinMs === 0 ? tookMs : joinMs + JOIN_WEIGHT * (tookMs - joinMs) };
}

/** How long an item takes a slot. `executingForMs`: how long something has executed while nothing ended. */
export function itemMsOf({ busyMs, ended }: Learned, executingForMs: number): number | undefined {
  if (ended > 0) return busyMs / ended;
  return executingForMs >= TELLING_MS ? executingForMs : undefined;
}
