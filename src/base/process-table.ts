// The kernel's account of processes, their descriptors and their limits: the one reader of /proc/PID.
//
// Keeps true: a process is told from a later one of the same number by when it started, and from one of another boot by that.
import { closeSync, readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Clock } from "./clock.ts";
import { sleep } from "./clock.ts";
import { errnoOf } from "./errors.ts";

export interface KernelProcess {
  readonly pid: number;
  readonly group: number;
  readonly session: number;
  /** Clock ticks from boot to its start. Digits. */
  readonly startedAt: string;
}

/** The id of this start of the machine; "" where there is none. Throws when the system does not tell. */
export function bootId(): string {
  return contents("/proc/sys/kernel/random/boot_id")?.trim() ?? "";
}

/**
 * Undefined when no such process runs: one that has ended and waits for its parent to look holds nothing any more. Also when it is
 * hidden, and where there is no /proc. Throws when the system does not tell: a process that nobody can look at may well run.
 *
 * From `man 5 proc`: the name stands in brackets and may hold anything; after it come state, parent, group, session.
 */
export function findProcess(pid: number): KernelProcess | undefined {
  const line = contents(`/proc/${pid}/stat`);
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ") ?? [];
  const [state, , group, session] = fields;
  const startedAt = fields[19];
  if (startedAt === undefined || state === "Z" || state === "X") return undefined;
  return { pid, group: Number(group), session: Number(session), startedAt };
}

/** Where a link of a process leads, such as `cwd`; undefined when there is none that can be read. */
export function processLink(pid: number, name: string): string | undefined {
  try {
    return readlinkSync(`/proc/${pid}/${name}`);
  } catch {
    return undefined;
  }
}

/** Whether there is a process of this number, one that has ended and that nobody has waited for included. */
export function acceptsSignals(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // It is there, and somebody else's.
    return errnoOf(error) === "EPERM";
  }
}

/** The table is one and so is its reading: a call while it is being read shares the next reading. */
let rested: Promise<unknown> = Promise.resolve();
let next: Promise<KernelProcess[]> | undefined;
/** On a machine with thousands of processes a reading holds the thread up for long: so many times as long it is left alone then. */
const REST_FACTOR = 3;

/** All that run. Rejects when the system does not tell. */
export function runningProcesses(clock: Clock): Promise<KernelProcess[]> {
  next ??= rested.then(() => {
    next = undefined;
    const startedMs = clock.monotonicMs();
    const reading = readTable();
    const rest = async (): Promise<void> => sleep(clock, REST_FACTOR * (clock.monotonicMs() - startedMs));
    rested = reading.then(rest, rest);
    return reading;
  });
  return next;
}

async function readTable(): Promise<KernelProcess[]> {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name));
  return pids.flatMap((pid) => findProcess(Number(pid)) ?? []);
}

/** How many files and sockets this process and those that it starts may have open; undefined when nothing limits them. */
export function openFilesLimit(): number | undefined {
  const soft = /^Max open files\s+(\d+)/m.exec(contents("/proc/self/limits", () => true) ?? "")?.[1];
  return soft === undefined ? undefined : Number(soft);
}

/** Descriptors that this process has open, the one that they are read by included; undefined when there is none left to read them by. */
export function openDescriptors(): number[] | undefined {
  try {
    return readdirSync("/proc/self/fd").map(Number);
  } catch {
    return undefined;
  }
}

/** Flags of a descriptor of this process, as open(2) has them; undefined when it is closed. */
function descriptorFlags(descriptor: number): number | undefined {
  const flags = /^flags:\s*([0-7]+)$/m.exec(
    contents(`/proc/self/fdinfo/${descriptor}`, () => true) ?? "",
  )?.[1];
  return flags === undefined ? undefined : Number.parseInt(flags, 8);
}

/** The errnos of a process that has ended, or is not ours to look at. */
const ABSENT = ["ENOENT", "ENOTDIR", "ESRCH", "EACCES", "EPERM"];

function contents(
  file: string,
  isAbsence = (error: unknown): boolean => ABSENT.includes(errnoOf(error) ?? ""),
): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch (error) {
    if (!isAbsence(error)) throw error;
    return undefined;
  }
}

// Descriptors that a process was given at its start and did not ask for: files of the program that started it, or of a shell.

const STANDARD_STREAMS = 3;
/** O_CLOEXEC as Linux writes it, in octal. */
const CLOSE_ON_EXEC = 0o2000000;

/**
 * Closes every descriptor but the standard streams that this process would hand on to its children. Node opens its own so that
 * they are not handed on, and marks the first that it was given; what is left was inherited.
 *
 * Call it before anything else has begun. A thread may open a file without that mark, as the one does that reads the certificates of
 * NODE_EXTRA_CA_CERTS: closed here and once more by the thread, its number is by then a file of somebody else's.
 */
export function closeInherited(): void {
  for (const descriptor of openDescriptors() ?? [])
    if (descriptor >= STANDARD_STREAMS && isHandedOn(descriptor)) close(descriptor);
}

function isHandedOn(descriptor: number): boolean {
  const flags = descriptorFlags(descriptor);
  return flags !== undefined && (flags & CLOSE_ON_EXEC) === 0;
}

function close(descriptor: number): void {
  try {
    closeSync(descriptor);
  } catch {
    // It is closed already.
  }
}
