// Which groups of children live, on the worker's disk: a file for each, whose name says it all. A worker that starts ends what
// the one before could not, nor its guardian.
//
// Keeps true: only the very processes that were written down are killed, not later ones of the same number. Nothing is
// synced: what a machine loses with its power, it no longer executes.
import { readdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { makeDirectory } from "../../base/file-system.ts";
import { bootId, runningProcesses } from "../../base/process-table.ts";
import { keepTreePrivate } from "../../base/trusted-place.ts";
import { ChildGroup } from "./child-group.ts";
import type { GroupName } from "./child-group.ts";

export interface Reaped {
  /** How many groups were ended. */
  readonly ended: number;
  /** Groups that are still there. */
  readonly stuck: readonly GroupName[];
  /** All of this start of the machine that were written down. */
  readonly written: readonly GroupName[];
}

const FILE = /^(\d+)-(\d+)(?:-(.+))?$/;

export class ChildRecords {
  readonly #directory: string;
  readonly #boot = bootId();

  constructor(directory: string) {
    this.#directory = directory;
  }

  /**
   * Kills every group that an earlier worker wrote down and did not see end. One that cannot be ended within `limitMs` keeps its
   * record: the next start tries it again.
   */
  async reap(clock: Clock, limitMs: number): Promise<Reaped> {
    await makeDirectory(this.#directory);
    await keepTreePrivate(this.#directory);
    const names = await readdir(this.#directory);
    const written = names.flatMap((name) => this.#parse(name) ?? []);
    // Groups of an earlier start of the machine are gone with it.
    const suspects = written.filter(({ boot }) => boot === this.#boot);
    const left = suspects.length === 0 ? [] : await stillThere(suspects, clock);
    const ended = await Promise.all(left.map(({ pid }) => new ChildGroup(pid, clock).endWithin(limitMs)));
    const stuck = left.filter((_, at) => ended[at] === false);
    for (const name of names)
      if (!stuck.some((group) => this.#fileOf(group) === join(this.#directory, name)))
        await rm(join(this.#directory, name), { force: true });
    return { ended: left.length - stuck.length, stuck, written: suspects };
  }

  /** Makes the directory again when somebody has removed it. Rejects as the file system does. */
  async add(group: GroupName): Promise<void> {
    const write = (): Promise<void> => writeFile(this.#fileOf(group), "", { mode: 0o600 });
    await write().catch(async (error: unknown) => {
      if (errnoOf(error) !== "ENOENT") throw error;
      await makeDirectory(this.#directory);
      await write();
    });
  }

  /** Idempotent. */
  async remove(group: GroupName): Promise<void> {
    await rm(this.#fileOf(group), { force: true });
  }

  #fileOf({ pid, startedAt }: GroupName): string {
    return join(this.#directory, `${pid}-${startedAt}${this.#boot === "" ? "" : `-${this.#boot}`}`);
  }

  #parse(name: string): (GroupName & { readonly boot: string }) | undefined {
    const [, pid, startedAt, boot = ""] = FILE.exec(name) ?? [];
    if (pid === undefined || startedAt === undefined || Number(pid) < 2) return undefined;
    return { pid: Number(pid), startedAt, boot };
  }
}

/** Those of which something lives: the leader itself, or others while no process has its number. */
async function stillThere<Group extends GroupName>(groups: readonly Group[], clock: Clock): Promise<Group[]> {
  const running = await runningProcesses(clock);
  return groups.filter(({ pid, startedAt }) => {
    const leader = running.find((one) => one.pid === pid);
    if (leader !== undefined) return startedAt === leader.startedAt;
    return running.some(({ group, session }) => group === pid || session === pid);
  });
}
