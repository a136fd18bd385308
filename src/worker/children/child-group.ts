// All that a child has started and that has not left for a session of its own: ended together.
//
// Keeps true: once nothing of it is left, its number is never signalled again, which may be another's by then.
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { isDoneWithin, sleep } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { runningProcesses } from "../../base/process-table.ts";
import type { KernelProcess } from "../../base/process-table.ts";
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

/** A group by its leader. */
export interface GroupName {
  readonly pid: number;
  /** As the system tells it. */
  readonly startedAt: string;
}

/** How often it is looked whether something is left: soon at first, for most end at once. */
const LOOK_FIRST_MS = 1;
const LOOK_MAX_MS = 50;

export class ChildGroup {
  /** The number of the leader, of the group and of the session. */
  readonly pid: number;
  readonly #clock: Clock;
  #isGone = false;
  #killAtMs = Infinity;
  #ending: Promise<void> | undefined;

  constructor(pid: number, clock: Clock) {
    // A signal to the group 1 would be one to every process.
    assert(pid > 1, "a child is neither the system's first process nor all of them");
    this.pid = pid;
    this.#clock = clock;
  }

  /** Nothing of it was left when that was looked at last. */
  get isGone(): boolean {
    return this.#isGone;
  }

  /** The leader has been waited for: from now on the number lives only as long as others of the group do. */
  leaderExited(): void {
    if (!this.#accepts(0)) this.#isGone = true;
  }

  /** The leader has been waited for, and somebody who knows all that it has started says that nobody is left. */
  nothingIsLeft(): void {
    this.#isGone = true;
  }

  /**
   * SIGKILL at once. False when something of it is left after `limitMs`: another user's, one that waits for a disk, one that is in
   * another PID namespace. It is not signalled any more then.
   */
  async endWithin(limitMs: number): Promise<boolean> {
    const isEnded = await isDoneWithin(this.#clock, limitMs, this.end(0));
    if (!isEnded) this.#isGone = true;
    return isEnded;
  }

  /** SIGTERM, and SIGKILL after `graceMs` unless an earlier call said sooner. Resolves when nothing is left. */
  end(graceMs: number): Promise<void> {
    this.#killAtMs = Math.min(this.#killAtMs, this.#clock.monotonicMs() + graceMs);
    this.#ending ??= this.#end();
    return this.#ending;
  }

  async #end(): Promise<void> {
    if (this.#isGone) return;
    if (this.#killAtMs > this.#clock.monotonicMs()) this.#accepts("SIGTERM");
    for (let waitMs = LOOK_FIRST_MS; this.#accepts(0); waitMs = Math.min(2 * waitMs, LOOK_MAX_MS)) {
      // Again each time: something of it may have forked at the very moment.
      if (this.#killAtMs <= this.#clock.monotonicMs()) this.#accepts("SIGKILL");
      // Processes that have ended and that nobody waits for accept signals for ever.
      if (waitMs === LOOK_MAX_MS && (await this.#members()).length === 0) break;
      await sleep(this.#clock, waitMs);
    }
    await this.#sweep();
    this.#isGone = true;
  }

  /** Kills processes of the session that have a group of their own, as a shell makes one for each of its jobs. */
  async #sweep(): Promise<void> {
    for (let waitMs = LOOK_FIRST_MS; ; waitMs = Math.min(2 * waitMs, LOOK_MAX_MS)) {
      const members = await this.#members();
      if (members.length === 0 || this.#isGone) return;
      for (const { pid } of members) kill(pid, "SIGKILL");
      await sleep(this.#clock, waitMs);
    }
  }

  async #members(): Promise<KernelProcess[]> {
    const all = await runningProcesses(this.#clock);
    return all.filter(({ group, session }) => group === this.pid || session === this.pid);
  }

  /** False when there is nobody to take it. */
  #accepts(signal: NodeJS.Signals | 0): boolean {
    return !this.#isGone && kill(-this.pid, signal);
  }
}

/** False when there is no such process. One of another user's is there and stays. */
function kill(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    if (errnoOf(error) === "EPERM") return true;
    if (errnoOf(error) === "ESRCH") return false;
    throw error;
  }
}

// A cgroup for each child, below the one that the worker is in, where the worker may make one: it holds every process that the child
// starts, one that leaves its session too, and is killed as a whole. Elsewhere there is none, and what leaves a session gets away.

/** How long the kernel may take to end what was killed: what is not gone then is left to it. */
const END_MAX_MS = 5_000;
const LOOK_MS = 5;

/** Where cgroups of children can be made; undefined where this process may not, or the system has no cgroup v2 that can be killed. */
export async function findCgroupBase(): Promise<string | undefined> {
  const base = await ownCgroup().catch(() => undefined);
  if (base === undefined) return undefined;
  const probe = join(base, `rollout-probe-${process.pid}`);
  try {
    await mkdir(probe);
    // Since Linux 5.14, in every cgroup but the root.
    await writeFile(join(probe, "cgroup.kill"), "1");
    return base;
  } catch {
    return undefined;
  } finally {
    await rmdir(probe).catch(() => undefined);
  }
}

/** The directory of the cgroup v2 that this process is in. */
async function ownCgroup(): Promise<string | undefined> {
  const [memberships, mounts] = await Promise.all(
    ["/proc/self/cgroup", "/proc/self/mountinfo"].map((file) => readFile(file, "utf8")),
  );
  const path = /^0::(\/.*)$/m.exec(memberships ?? "")?.[1];
  for (const line of (mounts ?? "").split("\n")) {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "", point = ""] = before.split(" ");
    if (!after.startsWith("cgroup2 ") || path === undefined) continue;
    // The mount may be a part of the tree, as in a container.
    if (root === "/" || path === root || path.startsWith(`${root}/`))
      return join(point, root === "/" ? path : path.slice(root.length));
  }
  return undefined;
}

/** As the guardian finds it, too. */
function directoryOf(base: string, { pid, startedAt }: GroupName): string {
  return join(base, `rollout-${pid}-${startedAt}`);
}

/** The file that names who is in the cgroup of that child. */
export function membersFile(base: string, name: GroupName): string {
  return join(directoryOf(base, name), "cgroup.procs");
}

/** Puts a child that waits at its gate into a cgroup of its own. False when that cannot be: it does without. */
export async function confine(base: string, name: GroupName): Promise<boolean> {
  const directory = directoryOf(base, name);
  try {
    await mkdir(directory);
    await writeFile(join(directory, "cgroup.procs"), String(name.pid));
    return true;
  } catch {
    await rmdir(directory).catch(() => undefined);
    return false;
  }
}

/** Kills what is left in the cgroup of that child, and removes it. Nothing when there is none. */
export async function endConfined(base: string, name: GroupName, clock: Clock): Promise<void> {
  const directory = directoryOf(base, name);
  const untilMs = clock.monotonicMs() + END_MAX_MS;
  // An empty one, as it mostly is, can be removed at once.
  while (!(await isGone(directory)) && clock.monotonicMs() < untilMs) {
    await writeFile(join(directory, "cgroup.kill"), "1").catch(() => undefined);
    await sleep(clock, LOOK_MS);
  }
}

async function isGone(directory: string): Promise<boolean> {
  return rmdir(directory).then(
    () => true,
    (error: unknown) => errnoOf(error) === "ENOENT",
  );
}
