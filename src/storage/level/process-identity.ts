// Which process a line in a file means: a pid alone names another process after the next reboot or the next wrap.
//
// Keeps true: `isAlive` says yes only for the very process that was written down, on this host and in this boot.
import { hostname } from "node:os";
import { acceptsSignals, bootId, findProcess } from "../../base/process-table.ts";

export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** Clock ticks from boot to the start of the process; null where there is no /proc. */
  readonly startTicks: string | null;
  /** Null where there is no /proc. */
  readonly bootId: string | null;
}

export async function thisProcess(): Promise<ProcessIdentity> {
  const { pid } = process;
  const boot = bootId();
  const startTicks = findProcess(pid)?.startedAt ?? null;
  return { pid, host: hostname(), startTicks, bootId: boot === "" ? null : boot };
}

export function isSame(one: ProcessIdentity, other: ProcessIdentity): boolean {
  return (
    one.pid === other.pid &&
    one.host === other.host &&
    one.bootId === other.bootId &&
    one.startTicks === other.startTicks
  );
}

/** Whether `identity` still runs, as far as `self` can see: of another host or boot it cannot, and says no. */
export async function isAlive(identity: ProcessIdentity, self: ProcessIdentity): Promise<boolean> {
  if (identity.host !== self.host || identity.bootId !== self.bootId) return false;
  if (self.startTicks === null) return acceptsSignals(identity.pid);
  return findProcess(identity.pid)?.startedAt === identity.startTicks;
}
