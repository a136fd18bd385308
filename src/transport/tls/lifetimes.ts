// How long certificates are valid, in one table. All are data, so that a test can make one that expires at once.
import type { Role } from "./identity.ts";

const HOUR_MS = 60 * 60 * 1_000;
const DAY_MS = 24 * HOUR_MS;

export const LIFETIMES = {
  /** Long, because replacing an authority means touching every host; its key never leaves the coordinator's. */
  authorityMs: 3_650 * DAY_MS,
  /** Renewed by the coordinator itself when a third is left, so a month of downtime does no harm. */
  coordinatorMs: 90 * DAY_MS,
  /** The command line on the coordinator's host; renewed by the coordinator like its own. */
  operatorMs: 90 * DAY_MS,
  /** Travels to other hosts in a file, so it has to last for a campaign, and not for ever when it leaks: `enrolment.lifetime`. */
  enrolmentMs: 30 * DAY_MS,
  /** Renewed over the same RPC that gave it. */
  workerMs: DAY_MS,
  /** How far `notBefore` lies back, so that a host whose clock is slow can join. */
  backdateMs: DAY_MS,
};

export type Lifetimes = Readonly<typeof LIFETIMES>;

/** The lifetime of a certificate of this role. */
export function lifetimeMsOf(lifetimes: Lifetimes, role: Role): number {
  return lifetimes[`${role}Ms`];
}
