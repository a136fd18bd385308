// Processor time, bytes written and memory of a process and all below it, and idle time of the machine, as the system counts them. Zero where it
// counts nothing.
import { readdirSync, readFileSync } from "node:fs";

export interface ProcessUsage {
  readonly cpuSeconds: number;
  readonly writtenBytes: number;
  /** Peak of the largest process. */
  readonly peakBytes: number;
}

const TICKS_PER_SECOND = 100;
const NONE: ProcessUsage = { cpuSeconds: 0, writtenBytes: 0, peakBytes: 0 };

/** Processes below that have ended count for the one that has waited for them. */
export function usageOf(pid: number): ProcessUsage {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // Behind the name, which may have any character: user and system time, its own and that of what it has waited for.
    const ticks = stat.slice(stat.lastIndexOf(")")).split(" ").slice(12, 16).map(Number);
    const io = readFileSync(`/proc/${pid}/io`, "utf8");
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    const own = {
      cpuSeconds: ticks.reduce((sum, some) => sum + some, 0) / TICKS_PER_SECOND,
      writtenBytes: Number(/^write_bytes: (\d+)/m.exec(io)?.[1] ?? 0),
      peakBytes: Number(/^VmHWM:\s+(\d+)/m.exec(status)?.[1] ?? 0) * 1_024,
    };
    return childrenOf(pid).map(usageOf).reduce(plus, own);
  } catch {
    // It has ended.
    return NONE;
  }
}

/** All of it, where it had not begun before. */
export function usageSince(before: ProcessUsage = NONE, after: ProcessUsage = NONE): ProcessUsage {
  return {
    cpuSeconds: Math.max(0, after.cpuSeconds - before.cpuSeconds),
    writtenBytes: Math.max(0, after.writtenBytes - before.writtenBytes),
    peakBytes: after.peakBytes,
  };
}

function plus(one: ProcessUsage, other: ProcessUsage): ProcessUsage {
  return {
    cpuSeconds: one.cpuSeconds + other.cpuSeconds,
    writtenBytes: one.writtenBytes + other.writtenBytes,
    peakBytes: Math.max(one.peakBytes, other.peakBytes),
  };
}

function childrenOf(pid: number): number[] {
  return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
    readFileSync(`/proc/${pid}/task/${thread}/children`, "utf8").split(" ").filter(Boolean).map(Number),
  );
}

/** Ticks of all cores since the machine was started. */
export interface MachineTime {
  readonly idle: number;
  readonly all: number;
}

export function machineTime(): MachineTime {
  const [, ...ticks] = (readFileSync("/proc/stat", "utf8").split("\n")[0] ?? "").split(/\s+/).map(Number);
  return { idle: ticks[3] ?? 0, all: ticks.slice(0, 8).reduce((sum, some) => sum + some, 0) };
}

export function idleShare(before: MachineTime, after: MachineTime): number {
  return (after.idle - before.idle) / Math.max(1, after.all - before.all);
}
