// Which process a line in a file means: a pid alone names another process after the next reboot or the next wrap.
//
// Keeps true: `isAlive` says yes only for the very process that was written down, on this host and in this boot.
import { readFile } from "node:fs/promises";
import { hostname } from "node:os";
import { errnoOf } from "../../base/errors.ts";

export interface ProcessIdentity {
  readonly pid: number;
  readonly host: string;
  /** Clock ticks from boot to the start of the process; null where there is no /proc. */
  readonly startTicks: string | null;
  /** Null where there is no /proc. */
  readonly bootId: string | null;
}

export async function thisProcess(): Promise<ProcessIdentity> {
  const bootId = await readFile("/proc/sys/kernel/random/boot_id", "utf8").catch(nullWhenAbsent);
  const stat = await readStat(process.pid);
  return {
    pid: process.pid,
    host: hostname(),
    startTicks: stat?.startTicks ?? null,
    bootId: bootId?.trim() ?? null,
  };
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
  const stat = await readStat(identity.pid);
  return stat !== undefined && !stat.ended && stat.startTicks === identity.startTicks;
}

interface ProcessStat {
  readonly startTicks: string;
  /** Killed and not yet reaped by its parent: it holds nothing any more. */
  readonly ended: boolean;
}

/** From `man 5 proc`: the name stands in brackets and may hold anything; state is field 3, the start time field 22. */
async function readStat(pid: number): Promise<ProcessStat | undefined> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8").catch(nullWhenAbsent);
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state, startTicks] = [fields?.[0], fields?.[19]];
  if (state === undefined || startTicks === undefined) return undefined;
  return { startTicks, ended: state === "Z" || state === "X" };
}

function acceptsSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return errnoOf(error) === "EPERM";
  }
}

function nullWhenAbsent(error: unknown): null {
  const errno = errnoOf(error);
  // ESRCH: it ended between opening the file and reading it.
  if (errno === "ENOENT" || errno === "ESRCH" || errno === "EACCES") return null;
  throw error;
}
