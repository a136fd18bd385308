// What the directory of a local run knows of its database without looking into it: results that were written from it, workers that have
// worked for it. Keeps true: a database that was lost is not taken for one that was never made, so that nothing that is finished runs
// again, and no result is replaced, unless somebody wants it so.
import { access, readdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { shellWords } from "../../cli/shell-words.ts";
import { readProgress } from "../../cli/results/cursor-file.ts";

export const TASK_FILE = "task.json";
export const DATABASE = "rollout.db";
export const STATE = "state";
/** How far the results' files have got. */
export const CURSOR_FILE = "results.cursor";

export interface Recorded {
  readonly hasDatabase: boolean;
  /** Results that were written, failures not counted: these never change. */
  readonly done: number;
  readonly failed: number;
  readonly workers: number;
}

/** Whether the database at this path is, or was, that of a local run. */
export function isOfLocalRun(databasePath: string): Promise<boolean> {
  const isIt = basename(databasePath) === DATABASE;
  return access(join(dirname(databasePath), TASK_FILE)).then(
    () => isIt,
    () => false,
  );
}

export async function readRecorded(path: string): Promise<Recorded> {
  const progress = await readProgress(join(path, CURSOR_FILE));
  const { results = 0, failures = 0 } = progress ?? {};
  const hasDatabase = await stat(join(path, DATABASE, "CURRENT")).then(
    () => true,
    () => false,
  );
  return { hasDatabase, done: results - failures, failed: failures, workers: (await workersIn(path)).length };
}

/** Ids of the workers that have a state of their own in there. They are started when there is a database, and not before. */
export async function workersIn(path: string): Promise<WorkerId[]> {
  const names = await readdir(join(path, STATE, "workers")).catch(() => []);
  return names.flatMap((name) => parseUlid<WorkerId>(name) ?? []).sort();
}

/** Throws store_corrupt when what is recorded speaks of a database, or a task, that is not there. */
export function refuseLoss(path: string, about: string, hasTask: boolean, recorded: Recorded): void {
  const { hasDatabase, done, failed, workers } = recorded;
  const hasBegun = done + failed + workers > 0;
  if (hasBegun && !hasDatabase)
    throw lossOf(path, about, recorded, { key: "all its files", reason: "they are gone" });
  if ((hasBegun || hasDatabase) && !hasTask)
    throw lossOf(path, about, recorded, {
      key: TASK_FILE,
      reason: "it is gone, and says which run and task this is",
    });
}

/** With how to begin anew, for whom that is no loss. */
export function lossOf(
  path: string,
  about: string,
  { done, failed, workers }: Recorded,
  { key, reason }: { readonly key: string; readonly reason: string },
): RolloutError {
  const results = [`${done} done`, ...(failed > 0 ? [`${failed} failed`] : [])].join(", ");
  const known =
    done + failed > 0 ? `results were written from it (${results})` : `${workers} workers have worked for it`;
  const all = shellWords([...new Set([about, path])]);
  return failure("store_corrupt", {
    path: join(path, DATABASE),
    key,
    reason: `${reason}, and ${known}; to run everything again on purpose remove ${all}`,
  });
}
