// A cgroup for each child, below the one that the worker is in, where the worker may make one: it holds every process that the child
// starts, one that leaves its session too, and is killed as a whole. Elsewhere there is none, and what leaves a session gets away.
import { mkdir, readFile, rmdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { GroupName } from "./group-records.ts";

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
    (error: unknown) => error instanceof Error && "code" in error && error.code === "ENOENT",
  );
}
