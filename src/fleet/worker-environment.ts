// Settings that a worker of a fleet has beside its configuration: it ends by itself, so that nobody has to live for its machine to be given
// back.
import type { FleetSettings } from "../config/fleet.ts";

/** Names and values for the environment of one that is launched now. */
export function workerEnvironment(
  {
    orphanTimeoutMs,
    maxLifetimeMs,
    stopAtMs,
  }: Pick<FleetSettings, "orphanTimeoutMs" | "maxLifetimeMs" | "stopAtMs">,
  wallMs: number,
): Readonly<Record<string, string>> {
  const untilStopMs = stopAtMs === undefined ? Infinity : Math.max(LEAST_MS, Math.ceil(stopAtMs - wallMs));
  const leaveAfterMs = Math.min(maxLifetimeMs ?? Infinity, untilStopMs);
  return {
    ROLLOUT_WORKER_ORPHAN_TIMEOUT: `${orphanTimeoutMs}ms`,
    ...(leaveAfterMs <= LIFETIME_MAX_MS && { ROLLOUT_WORKER_LEAVE_AFTER: `${leaveAfterMs}ms` }),
  };
}

/** The range of `worker.leave_after`: what is further away is no limit. */
const LEAST_MS = 1_000;
const LIFETIME_MAX_MS = 365 * 86_400_000;
