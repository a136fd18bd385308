// The records of a local run's directory about its database, read without looking into it: results that were written from it, workers that have
// worked for it. Keeps true: a database that was lost is not taken for one that was never made, so that nothing that is finished runs
// again, and no result is replaced, unless somebody wants it so.
import { access, readdir } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errnoOf, failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { parseUlid } from "../../base/ids.ts";
import type { WorkerId } from "../../base/ids.ts";
import { shellWords } from "../../cli/shell-words.ts";
import { filledFilesOf, readProgress } from "../../cli/results/cursor-file.ts";
import { shownPath } from "./shown-path.ts";

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
  /** Files of results in which something stands, as far as they are known. */
  readonly files: readonly string[];
}

/** Whether the database at this path is, or was, that of a local run. */
export function isOfLocalRun(databasePath: string): Promise<boolean> {
  const isIt = basename(databasePath) === DATABASE;
  return access(join(dirname(databasePath), TASK_FILE)).then(
    () => isIt,
    () => false,
  );
}

/**
 * To be called before a database is opened, or said to be none yet. Throws store_lost when it is gone and the directory of a local run that
 * it is of has something recorded of it.
 */
export async function refuseLostDatabase(databasePath: string): Promise<void> {
  if (!(await isOfLocalRun(databasePath))) return;
  const path = dirname(databasePath);
  refuseLoss(path, path, true, await readRecorded(path));
}

/** `done` as the database has it. Throws store_lost when that is less than the directory of the local run that it is of has recorded. */
export async function refuseFewerThanRecorded(
  databasePath: string,
  done: () => Promise<number>,
): Promise<void> {
  if (!(await isOfLocalRun(databasePath))) return;
  const path = dirname(databasePath);
  const recorded = await readRecorded(path);
  if (recorded.done > 0) refuseFewer(path, path, recorded, await done());
}

/** Throws store_lost when there are less: it is an older database, or a new one in its place. */
export function refuseFewer(path: string, about: string, recorded: Recorded, done: number): void {
  const items = done === 1 ? "1 done item" : `${done} done items`;
  if (done < recorded.done) throw lossOf(path, about, recorded, `has ${items}`);
}

export async function readRecorded(path: string): Promise<Recorded> {
  const progress = await readProgress(join(path, CURSOR_FILE));
  const { results = 0, failures = 0 } = progress ?? {};
  const hasDatabase = await readdir(join(path, DATABASE)).then(
    (names) => names.length > 0,
    (error: unknown) => errnoOf(error) !== "ENOENT",
  );
  const files = await filledFilesOf(join(path, CURSOR_FILE));
  const workers = (await workersIn(path)).length;
  return { hasDatabase, done: results - failures, failed: failures, workers, files };
}

/** Ids of the workers that have a state of their own in there. They are started when there is a database, and not before. */
export async function workersIn(path: string): Promise<WorkerId[]> {
  const names = await readdir(join(path, STATE, "workers")).catch(() => []);
  return names.flatMap((name) => parseUlid<WorkerId>(name) ?? []).sort();
}

/** Throws store_lost when what is recorded speaks of a database, or a task, that is not there. */
export function refuseLoss(path: string, about: string, hasTask: boolean, recorded: Recorded): void {
  const { hasDatabase, done, failed, workers } = recorded;
  const hasBegun = done + failed + workers > 0;
  if (hasBegun && !hasDatabase) throw lossOf(path, about, recorded, "is gone");
  if ((hasBegun || hasDatabase) && !hasTask)
    throw lossOf(path, about, recorded, `is without ${TASK_FILE}, which says which run and task it is of`);
}

/** With how to begin anew, for whom that is no loss. */
function lossOf(
  path: string,
  about: string,
  { done, failed, workers, files }: Recorded,
  state: string,
): RolloutError {
  const results = [`${done} done`, ...(failed > 0 ? [`${failed} failed`] : [])].join(", ");
  const worked = workers === 1 ? "1 worker has" : `${workers} workers have`;
  const known = done + failed > 0 ? `results were written from it (${results})` : `${worked} worked for it`;
  return failure("store_lost", {
    ...{ path: join(path, DATABASE), state, known },
    files: filesToRemove(path, about, files),
  });
}

/**
 * Everything that has to go before all of it can begin anew, as words to be typed: files of results would be in the way without the directory.
 * `written`: those that its record names; where it names none, `about` is the output.
 */
export function filesToRemove(path: string, about: string, written: Recorded["files"]): string {
  const unnamed = about === path ? [] : [about];
  const outputs = written.length > 0 ? written : unnamed;
  return shellWords([...outputs, path].map(shownPath));
}
