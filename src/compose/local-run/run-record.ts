// The record of a local run's directory: of which run and task it is, by which command it was begun, how far its results have got and what
// it came to. One file, replaced as a whole, so that its parts are of one moment. Keeps true: a database that was lost is not taken for one
// that was never made, so that nothing that is finished runs again, and no result is replaced, unless somebody wants it so; an outcome is
// gone before anything can change in the database that it speaks of.
//
// 0.1 has each part in a file of its own: they are read, and taken over with the first change.
import { readdir, readFile, rm, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { errnoOf, failure } from "../../base/errors.ts";
import type { RolloutError } from "../../base/errors.ts";
import { jsonFields } from "../../base/exact-json.ts";
import type { JsonObject } from "../../base/exact-json.ts";
import { ifThere, isThere, replaceFile } from "../../base/file-system.ts";
import { isUlid, parseUlid } from "../../base/ids.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import { systemReason, asUnwritable } from "../../base/system-reason.ts";
import { filledFiles, refuseChanged, writtenBy } from "../../cli/results/cursor-file.ts";
import type { Written } from "../../cli/results/cursor-file.ts";
import type { FailedInside } from "../../cli/results/result-sink.ts";
import { shellWords, shownPath } from "../../cli/shell-words.ts";
import type { ItemFields } from "../../client/item-fields.ts";
import type { FailureMessage } from "../../client/run-status.ts";
import { SECRET_MODE } from "../../transport/tls/credential-files.ts";

export const RECORD_FILE = "task.json";
export const DATABASE = "rollout.db";
export const STATE = "state";
/** Manifests of further versions, or links to them: its workers watch it. Not there before there is one. */
export const PLUGINS = "plugins";
/** Held by the `rollout run` whose directory it is. */
export const LOCK = "supervisor";
const VERSION = 2;

export interface RunRecord {
  /** 1: of 0.1, with its other parts in files of their own. */
  readonly version: 1 | 2;
  readonly runId: RunId;
  /** The task's, hexadecimal. */
  readonly digest: string;
  readonly summary: string;
  /** Where lines have their keys; undefined for a run without. */
  readonly fields?: ItemFields | undefined;
  readonly begunBy?: BegunBy | undefined;
  /** How far the files of results have got, as src/cli/results/cursor-file.ts has it. */
  readonly results?: unknown;
  readonly finished?: Finished | undefined;
  /** The outcome of a run that was cancelled, for people. */
  readonly cancelled?: Pick<Finished, "done" | "failed"> | undefined;
  /** How far a run was when its processes left it paused, and why it was. */
  readonly paused?: Paused | undefined;
}

interface Paused extends Pick<Finished, "done" | "failed"> {
  readonly reason: string;
}

/** The command that a run was begun by, and where. */
interface BegunBy {
  readonly workingDirectory: string;
  /** Undefined: it is not to be shown. */
  readonly command?: string | undefined;
}

/** The outcome of a run that was complete, and the request that it was of. */
export interface Finished {
  readonly asked: Asked;
  /** How many the input has; earlier versions have not kept it. */
  readonly items?: number;
  readonly done: number;
  readonly failed: number;
  readonly failedByClass: Readonly<Record<string, number>>;
  /** With which words; 0.1 has kept none. */
  readonly failureMessages?: readonly FailureMessage[];
  /** One that has failed, if one was seen. */
  readonly failedItem?: string | undefined;
  readonly failedInside?: FailedInside;
  /** As `lengthsOf` found them. */
  readonly lengths: readonly (number | null)[];
}

export interface Asked extends Request {
  /** SHA-256 of the input, hexadecimal. */
  readonly input: string;
}

/** The rest of it, known before the input is read. */
export interface Request {
  readonly kind: string;
  readonly output: string;
  readonly errors: string;
  readonly format: string;
  readonly order: string;
}

/** Parts of a record that say how its run has ended, or stopped. */
export type Ends = Pick<RunRecord, "finished" | "cancelled" | "paused">;

/** For a run that goes on. */
export const NO_END: Ends = { finished: undefined, cancelled: undefined, paused: undefined };

/** By the names that 0.1 has given to them. */
const EARLIER_FILES = { begunBy: "command.json", results: "results.cursor", finished: "finished.json" };

/** The text of a file of the directory; undefined where there is none. Throws run_directory_unusable for one that cannot be read. */
export async function readFileOf(directory: string, name: string): Promise<string | undefined> {
  return ifThere(readFile(join(directory, name), "utf8")).catch((error: unknown) => {
    throw unreadable(directory, name, error);
  });
}

function unreadable(directory: string, name: string, cause: unknown): RolloutError {
  const reason = `${name} cannot be read: ${systemReason(cause)}`;
  return failure("run_directory_unusable", { directory, reason }, cause);
}

/**
 * Undefined where there is none. Throws run_directory_unusable for one that cannot be read, store_newer for one of a newer rollout, and for
 * one that is damaged store_lost, or run_directory_unusable where nothing is recorded. `about` names for people what the directory is of.
 */
export async function readRecord(directory: string, about = directory): Promise<RunRecord | undefined> {
  const found = await findRecord(directory);
  if (found === undefined || "runId" in found) return found;
  refuseNewer(directory, found);
  const recorded = await readRecorded(directory);
  refuseLoss(directory, about, true, recorded);
  if (recorded.hasDatabase)
    throw lossOf(directory, about, recorded, `has a ${RECORD_FILE} beside it that is damaged`);
  const reason = `${RECORD_FILE} is not what was written`;
  throw failure("run_directory_unusable", { directory, reason });
}

/** A record that is not what this rollout has written: damaged, unless it has a version that is newer than any of ours. */
interface OtherRecord {
  readonly newer: number | undefined;
}

/** Throws run_directory_unusable for one that cannot be read, of which nothing is known. */
async function findRecord(directory: string): Promise<RunRecord | OtherRecord | undefined> {
  const text = await readFileOf(directory, RECORD_FILE);
  if (text === undefined) return undefined;
  const fields = jsonFields(text);
  const record = recordIn(fields);
  const { version } = fields;
  if (record === undefined)
    return { newer: typeof version === "number" && version > VERSION ? version : undefined };
  if (record.version !== 1) return record;
  return { ...record, ...(await earlierParts(directory)) };
}

/** Throws store_newer. */
function refuseNewer(directory: string, { newer }: OtherRecord): void {
  const path = join(directory, DATABASE);
  if (newer !== undefined)
    throw failure("store_newer", { path, key: RECORD_FILE, found: newer, known: VERSION });
}

/** On disk when it resolves. `writer` tells two processes apart that may write at the same time. Throws file_unwritable. */
export async function writeRecord(
  directory: string,
  record: RunRecord,
  writer: "run" | "coordinator",
): Promise<RunRecord> {
  const file = join(directory, RECORD_FILE);
  const { runId, digest, summary, fields, begunBy, results, ...ends } = record;
  const { finished, cancelled, paused } = ends;
  const parts = { begunBy, results, finished, cancelled, paused };
  const next = { version: VERSION, runId, digest, summary, fields, ...parts } as const;
  // The first one has to be there after a loss of power: later ones may be the one before.
  const synced = record.version === 1 ? "name" : "content";
  const how = { temporary: `${file}.${writer}`, mode: SECRET_MODE, synced } as const;
  await replaceFile(file, `${JSON.stringify(next)}\n`, how).catch(asUnwritable(file));
  if (record.version === 1)
    for (const name of Object.values(EARLIER_FILES)) await rm(join(directory, name), { force: true });
  return next;
}

/** As far as anything can be told, also where the record is gone or damaged. Throws run_directory_unusable when the system does not tell. */
export async function knownParts(directory: string): Promise<Partial<RunRecord>> {
  const found = await findRecord(directory);
  return found !== undefined && "runId" in found ? found : earlierParts(directory);
}

async function earlierParts(directory: string): Promise<Pick<RunRecord, keyof typeof EARLIER_FILES>> {
  const partIn = async (name: string): Promise<unknown> => {
    const text = await readFileOf(directory, name);
    return text === undefined ? undefined : jsonFields(text);
  };
  const [begunBy, results, kept] = await Promise.all(Object.values(EARLIER_FILES).map(partIn));
  const { finished, lengths } = (kept ?? {}) as { readonly finished?: object; readonly lengths?: unknown };
  return partsIn({ begunBy, results, finished: { ...finished, lengths } });
}

function recordIn({ version, runId, digest, summary, ...parts }: JsonObject): RunRecord | undefined {
  if ((version !== 1 && version !== 2) || typeof runId !== "string" || !isUlid(runId)) return undefined;
  if (typeof digest !== "string" || typeof summary !== "string") return undefined;
  return { version, runId: runId as RunId, digest, summary, fields: fieldsIn(parts), ...partsIn(parts) };
}

function fieldsIn({ fields }: JsonObject): ItemFields | undefined {
  const { key, eventId } = (fields ?? {}) as Partial<ItemFields>;
  return typeof key === "string" ? { key, eventId } : undefined;
}

/** A part that is not what was written is none; about results the files decide that they stand in. */
function partsIn(parts: JsonObject): Pick<RunRecord, keyof typeof EARLIER_FILES | keyof Ends> {
  const { workingDirectory, command } = (parts["begunBy"] ?? {}) as Partial<BegunBy>;
  const finished = parts["finished"] as Partial<Finished> | null | undefined;
  const cancelled = parts["cancelled"] as Partial<Finished> | null | undefined;
  const paused = parts["paused"] as Partial<Paused> | null | undefined;
  const isWhole = (outcome: Partial<Pick<Finished, "done" | "failed">> | null | undefined): boolean =>
    Number.isSafeInteger(outcome?.done) && Number.isSafeInteger(outcome?.failed);
  return {
    begunBy: typeof workingDirectory === "string" ? { workingDirectory, command } : undefined,
    results: parts["results"],
    finished: isWhole(finished) && finished?.asked !== undefined ? (finished as Finished) : undefined,
    cancelled: isWhole(cancelled) ? (cancelled as Finished) : undefined,
    paused: isWhole(paused) && typeof paused?.reason === "string" ? (paused as Paused) : undefined,
  };
}

/** Errors of a directory in which nothing can be found: a database cannot be opened there either, and its own error says more. */
const NO_WAY_IN: readonly (string | undefined)[] = ["ENOTDIR", "EACCES", "EPERM"];

/** Whether the database at this path is, or was, that of a local run. Throws run_directory_unusable when the system does not tell. */
export async function isOfLocalRun(databasePath: string): Promise<boolean> {
  if (basename(databasePath) !== DATABASE) return false;
  const directory = dirname(databasePath);
  return isThere(join(directory, RECORD_FILE)).catch((error: unknown) => {
    if (NO_WAY_IN.includes(errnoOf(error))) return false;
    throw unreadable(directory, RECORD_FILE, error);
  });
}

/**
 * To be called before anything may change in the database at `databasePath`. Nothing, where that is of no local run. Throws
 * run_directory_unusable for a record that cannot be read, store_newer, and file_unwritable: an outcome may be in it.
 */
export async function forgetFinished(databasePath: string): Promise<void> {
  if (basename(databasePath) !== DATABASE) return;
  const directory = dirname(databasePath);
  const record = await findRecord(directory);
  if (record === undefined) return;
  if (!("runId" in record)) refuseNewer(directory, record);
  else if ((record.finished ?? record.cancelled ?? record.paused) !== undefined)
    await writeRecord(directory, { ...record, ...NO_END }, "coordinator");
}

/**
 * The outcome of the very same request, if it is all still there: its files are as long as they were and have the bytes that were written.
 * Throws output_not_continued for one that has others.
 */
export async function finishedAs(
  directory: string,
  { finished, results }: RunRecord,
  asked: Asked,
): Promise<Finished | undefined> {
  if (finished === undefined || !isSame(finished.asked, asked)) return undefined;
  const lengths = await lengthsOf(asked);
  const { failed, failedInside } = finished;
  if (lengths[0] === null || (lengths[1] === null && failed + (failedInside?.failed ?? 0) > 0))
    return undefined;
  if (JSON.stringify(lengths) !== JSON.stringify(finished.lengths)) return undefined;
  const written = writtenBy(results, join(directory, RECORD_FILE));
  if (written !== undefined) await refuseChanged(written);
  return finished;
}

function isSame(one: Asked, other: Asked): boolean {
  return (Object.keys(other) as (keyof Asked)[]).every((name) => one[name] === other[name]);
}

/** Lengths of output and errors file; null for one that is not there. */
export async function lengthsOf({
  output,
  errors,
}: Pick<Request, "output" | "errors">): Promise<Finished["lengths"]> {
  const lengthOf = async (file: string): Promise<number | null> =>
    (await stat(file).catch(() => undefined))?.size ?? null;
  return [await lengthOf(output), await lengthOf(errors)];
}

/** The files of the directory's results, as the record has them; undefined where it has none. */
export async function writtenOf(directory: string): Promise<Written | undefined> {
  return writtenBy((await knownParts(directory)).results, join(directory, RECORD_FILE));
}

/** Facts that speak of a database, read without looking into it. */
export interface Recorded {
  readonly hasDatabase: boolean;
  /** Results that were written, failures not counted: these never change. */
  readonly done: number;
  readonly failed: number;
  readonly workers: number;
  /** Files of results in which something stands, as far as they are known. */
  readonly files: readonly string[];
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
  const written = await writtenOf(path);
  const { results = 0, failures = 0 } = written?.progress ?? {};
  const hasDatabase = await readdir(join(path, DATABASE)).then(
    (names) => names.length > 0,
    (error: unknown) => errnoOf(error) !== "ENOENT",
  );
  const files = written === undefined ? [] : await filledFiles(written);
  const workers = (await workersIn(path)).length;
  return { hasDatabase, done: results - failures, failed: failures, workers, files };
}

/**
 * Ids of the workers that have a state of their own in there. They are started when there is a database, and not before. Throws
 * run_directory_unusable when the system does not tell.
 */
export async function workersIn(path: string): Promise<WorkerId[]> {
  const place = join(STATE, "workers");
  const found = await ifThere(readdir(join(path, place))).catch((error: unknown) => {
    throw unreadable(path, place, error);
  });
  const names = found ?? [];
  return names.flatMap((name) => parseUlid<WorkerId>(name) ?? []).sort();
}

/** Throws store_lost when what is recorded speaks of a database, or a task, that is not there. */
export function refuseLoss(path: string, about: string, hasTask: boolean, recorded: Recorded): void {
  const { hasDatabase, done, failed, workers } = recorded;
  const hasBegun = done + failed + workers > 0;
  if (hasBegun && !hasDatabase) throw lossOf(path, about, recorded, "is gone");
  if ((hasBegun || hasDatabase) && !hasTask)
    throw lossOf(path, about, recorded, `is without ${RECORD_FILE}, which says which run and task it is of`);
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
