// Machine-hours and money: pure. A launch is claimed before it is made, so what runs can always be ended within the budget.
import type { FleetSettings } from "../../config/fleet.ts";

export const HOUR_MS = 3_600_000;
/** A worker drains within so long when it is asked to. */
export const DRAIN_MS = 15_000;
/** A machine is not started for less. */
const LEASE_MIN_MS = 5 * 60_000;

type Limits = Pick<
  FleetSettings,
  "pollIntervalMs" | "pricePerHour" | "maxMachineHours" | "maxCost" | "maxCostPerHour" | "stopAtMs"
>;

export interface Account {
  /** Time of machines that are over. */
  readonly machineMs: number;
  /** Time of each other machine until now; 0 for one that is not there yet. */
  readonly runningMs: readonly number[];
}

export interface Allowance {
  /** How many more may be started. */
  readonly launches: number;
  /** Why all of them are to end; undefined while something is left. */
  readonly spent: string | undefined;
}

/** The longest time of machines that the budget buys; undefined without one. */
function limitMsOf({ maxMachineHours, maxCost, pricePerHour }: Limits): number | undefined {
  const limits = [
    ...(maxMachineHours === undefined ? [] : [maxMachineHours * HOUR_MS]),
    ...(maxCost === undefined || !pricePerHour ? [] : [(maxCost / pricePerHour) * HOUR_MS]),
  ];
  return limits.length === 0 ? undefined : Math.min(...limits);
}

/** `wallMs` is for the day on which it all ends. */
export function allowanceOf(limits: Limits, account: Account, wallMs: number): Allowance {
  const { stopAtMs, pricePerHour, maxCostPerHour, pollIntervalMs } = limits;
  if (stopAtMs !== undefined && wallMs >= stopAtMs) return { launches: 0, spent: "stop_at has come" };
  const atOnce =
    maxCostPerHour === undefined || !pricePerHour ? Infinity : Math.floor(maxCostPerHour / pricePerHour);
  const { runningMs } = account;
  const byRate = Math.max(0, atOnce - runningMs.length);
  const limitMs = limitMsOf(limits);
  if (limitMs === undefined) return { launches: byRate, spent: undefined };
  const toEndMs = DRAIN_MS + pollIntervalMs;
  const spentMs = spentMsOf(account);
  const leftMs = limitMs - spentMs - runningMs.length * toEndMs;
  if (leftMs <= 0 && runningMs.length > 0) return { launches: 0, spent: limitNamed(limits, limitMs) };
  const claimedMs = runningMs.reduce((sum, ranMs) => sum + Math.max(toEndMs, LEASE_MIN_MS - ranMs), 0);
  const byTime = Math.max(0, Math.floor((limitMs - spentMs - claimedMs) / LEASE_MIN_MS));
  const launches = Math.min(byRate, byTime);
  return {
    launches,
    spent: runningMs.length === 0 && byTime === 0 ? limitNamed(limits, limitMs) : undefined,
  };
}

/** Time of machines until now. */
export function spentMsOf({ machineMs, runningMs }: Account): number {
  return runningMs.reduce((sum, ranMs) => sum + ranMs, machineMs);
}

/** Undefined without a price. */
export function costOf(machineMs: number, pricePerHour: number | undefined): number | undefined {
  return pricePerHour === undefined ? undefined : (machineMs / HOUR_MS) * pricePerHour;
}

export function hoursOf(machineMs: number): number {
  return machineMs / HOUR_MS;
}

function limitNamed({ maxMachineHours }: Limits, limitMs: number): string {
  return maxMachineHours !== undefined && maxMachineHours * HOUR_MS === limitMs
    ? `max_machine_hours is used up`
    : `max_cost is used up`;
}
