// What the system says of other processes: from /proc where there is one, else from `ps`.
//
// Keeps true: a process is told from a later one of the same number by when it started, and from one of another boot by that.
import { execFile } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { promisify } from "node:util";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";

export interface KernelProcess {
  readonly pid: number;
  readonly group: number;
  /** Undefined where `ps` is asked, which does not tell everywhere. */
  readonly session: number | undefined;
  readonly startedAt: string;
}

const HAS_PROC = existsSync("/proc/self/stat");
/** `ps` tells whole seconds, and is told them by another clock than ours. */
const PS_TOLERANCE_S = 2;

/** Of this start of the machine; "" where the system does not tell. */
export function bootId(): string {
  return HAS_PROC ? readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim() : "";
}

/** When a process that has just been started did; undefined when it is gone already. Digits. */
export function startOf(pid: number, clock: Clock): string | undefined {
  if (!HAS_PROC) return String(Math.floor(clock.wallMs() / 1_000));
  return readStat(pid)?.startedAt;
}

/** Whether what was written down of a process can mean one that is found now. */
export function isSameStart(written: string, found: string): boolean {
  return HAS_PROC ? written === found : Math.abs(Number(written) - Number(found)) <= PS_TOLERANCE_S;
}

/** The table is one and so is its reading: whoever asks while it is being read shares the next reading. */
let rested: Promise<unknown> = Promise.resolve();
let next: Promise<KernelProcess[]> | undefined;
/** On a machine with thousands of processes a reading holds the thread up for long: so many times as long it is left alone then. */
const REST_FACTOR = 3;

/** All that run; those that have ended and wait for their parent to look are none. Rejects when the system does not tell. */
export function runningProcesses(clock: Clock): Promise<KernelProcess[]> {
  next ??= rested.then(() => {
    next = undefined;
    const startedMs = clock.monotonicMs();
    const reading = HAS_PROC ? readProc() : readPs();
    const rest = async (): Promise<void> => sleep(clock, REST_FACTOR * (clock.monotonicMs() - startedMs));
    rested = reading.then(rest, rest);
    return reading;
  });
  return next;
}

async function readPs(): Promise<KernelProcess[]> {
  const { stdout } = await promisify(execFile)("ps", ["-axo", "pid=,pgid=,stat=,lstart="], {
    env: { PATH: "/usr/bin:/bin", LC_ALL: "C" },
  });
  return parsePs(stdout);
}

function readProc(): Promise<KernelProcess[]> {
  const all = readdirSync("/proc").flatMap((name) =>
    /^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : [],
  );
  return Promise.resolve(all);
}
/** From `man 5 proc`: the name stands in brackets and may hold anything; after it come state, parent, group, session. */
function readStat(pid: number): KernelProcess | undefined {
  let line: string;
  try {
    line = readFileSync(`/proc/${pid}/stat`, "utf8");
  } catch {
    // It has ended, or is not ours to look at.
    return undefined;
  }
  const fields = line.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state, , group, session] = fields;
  const startedAt = fields[19];
  if (startedAt === undefined || state === "Z" || state === "X") return undefined;
  return { pid, group: Number(group), session: Number(session), startedAt };
}

/** @internal */
export function parsePs(text: string): KernelProcess[] {
  return text.split("\n").flatMap((line) => {
    const [pid, group, state, ...started] = line.trim().split(/\s+/);
    const startedMs = Date.parse(started.join(" "));
    if (Number.isNaN(startedMs) || state?.startsWith("Z") !== false) return [];
    const startedAt = String(Math.floor(startedMs / 1_000));
    return [{ pid: Number(pid), group: Number(group), session: undefined, startedAt }];
  });
}
