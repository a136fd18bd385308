// The directory in which a local run keeps everything: database, certificates, workers' state, logs, and a record of it.
// Keeps true: one `rollout run` at a time has it, by the kernel's lock, so that kill -9 frees it; it belongs to one task for
// good, once anything came of it; and what an earlier run's processes still hold is waited for and not fought over.
import { createHash } from "node:crypto";
import { readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { errnoOf, failure, RolloutError } from "../../base/errors.ts";
import { newUlid } from "../../base/ids.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import { makeDirectory } from "../../base/file-system.ts";
import type { Random } from "../../base/random.ts";
import { systemReason, asUnwritable } from "../../base/system-reason.ts";
import { keepTreePrivate } from "../../base/trusted-place.ts";
import { dropEmptyResults } from "../../cli/results/cursor-file.ts";
import type { CursorPlace } from "../../cli/results/cursor-file.ts";
import { shownPath } from "../../cli/shell-words.ts";
import { fieldsText, sameFields } from "../../client/item-fields.ts";
import type { ItemFields } from "../../client/item-fields.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import type { Task } from "../../config/task.ts";
import { DONE_PREFIX, FAILED_PREFIX } from "../../storage/keys.ts";
import { describeHolder, findLiveHolder } from "../../storage/level/holder-file.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { prefixRange } from "../../storage/store.ts";
import type { Store } from "../../storage/store.ts";
import { replaceFile, SECRET_MODE } from "../../transport/tls/credential-files.ts";
import { isByHand } from "../store-holders.ts";
import { hasComeTo } from "./released-tasks.ts";
import {
  DATABASE,
  filesToRemove,
  LOCK,
  PLUGINS,
  readFileOf,
  readRecord,
  readRecorded,
  RECORD_FILE,
  refuseFewer,
  refuseLoss,
  STATE,
  workersIn,
  writeRecord,
  writtenOf,
} from "./run-record.ts";
import type { Ends, Recorded, RunRecord } from "./run-record.ts";

export interface RunDirectoryPorts {
  readonly clock: Clock;
  readonly random: Random;
}

export const HOLDER_NAME = "rollout run";
const DIGEST_SHOWN = 16;
/** Longer than a drain that nobody hurries. */
const EARLIER_PATIENCE_MS = 40_000;
/** As long as a process takes that somebody has just told to end. */
const BY_HAND_PATIENCE_MS = 1_000;
const EARLIER_POLL_MS = 100;
/** A log that is longer when a run begins makes room for a new one; the last one is kept. */
const LOG_BYTES = 4 * 1024 * 1024;

/** Files that speak of the database go before it. Logs stay. */
const OF_ONE_TASK = [STATE, DATABASE, `${DATABASE}.lock`, "tls", "rollout.toml", "plugin.toml", PLUGINS];

/** Below the working directory, for runs whose results are not kept. */
export const HIDDEN = ".rollout";

/** `<OUT>.rollout`, or without an output a place below the working directory that is the task's and the input's own. */
export function runDirectoryOf(place: {
  readonly directory: string | undefined;
  readonly output: string | undefined;
  readonly digest: Uint8Array;
  /** The name of the input: where it is, or what is in it. */
  readonly input: string;
}): string {
  if (place.directory !== undefined) return place.directory;
  if (place.output !== undefined) return `${place.output}.rollout`;
  const digest = createHash("sha256").update(place.digest).update(place.input).digest("hex");
  return join(HIDDEN, digest.slice(0, DIGEST_SHOWN));
}

/** Takes away a directory that is empty. */
export async function dropIfEmpty(path: string): Promise<void> {
  await rmdir(path).catch(() => undefined);
}

/** A task, and where lines have the keys of its items. */
export interface KeyedTask extends Task {
  readonly fields?: ItemFields | undefined;
}

interface Claimed {
  readonly path: string;
  /** The words for it in errors. */
  readonly about: string;
  /** This claim has made it. */
  readonly isNew: boolean;
  readonly lock: Store;
  /** As it was when it was claimed. */
  readonly recorded: Recorded;
  readonly ports: RunDirectoryPorts;
}

export class RunDirectory {
  /** The task that it was of, when that was given up because nothing was recorded of it. */
  readonly formerTask: string | undefined;
  readonly #claimed: Claimed;
  /** As it was claimed, or written since. On disk another process may have forgotten the outcome in it meanwhile. */
  #record: RunRecord;

  private constructor(claimed: Claimed, record: RunRecord, formerTask: string | undefined) {
    [this.#claimed, this.#record, this.formerTask] = [claimed, record, formerTask];
  }

  /**
   * Holds the directory until `close`. `about` names for people what it is the directory of. Only who submits its items again may have one
   * replaced of which nothing came: they are forgotten with it. Throws run_held, other_run_task,
   * run_directory_unusable, store_lost when something of it was lost, store_unusable for a damaged lock, store_newer, and the rows of the file system.
   */
  static async claim(
    path: string,
    about: string,
    task: KeyedTask,
    ports: RunDirectoryPorts,
    whenOfAnotherTask: "refuse" | "replace-if-nothing-came" = "refuse",
  ): Promise<RunDirectory> {
    const isNew = await refuseForeign(path);
    await makeDirectory(path).catch(asUnwritable(path));
    // The workers that watch it look at each link themselves: one that they cannot trust is a warning.
    await keepTreePrivate(path, undefined, (directory) => directory === join(path, PLUGINS));
    const lock = await openLevelStore({
      ...{ path: join(path, LOCK), holderName: HOLDER_NAME, clock: ports.clock },
    }).catch((error: unknown) => {
      if (!(error instanceof RolloutError)) throw error;
      // Not made anew here: of two that find it damaged, one could take away what the other has made and holds.
      if (error.code === "store_broken")
        throw failure("store_unusable", {
          ...{ path: join(path, LOCK), reason: "it is damaged" },
          advice: `remove it, when no rollout run is in ${shownPath(path)}: it holds a lock and nothing else, so nothing is lost`,
        });
      if (error.code !== "store_held") throw error;
      throw failure("run_held", {
        ...{ directory: path, holder: error.params["holder"] ?? "another process" },
        advice:
          "wait until that has ended, or end it: what it has done is kept; the same command with a larger --workers adds workers to it",
      });
    });
    try {
      const found = await readRecord(path, about);
      const recorded = await readRecorded(path);
      refuseLoss(path, about, found !== undefined, recorded);
      const isOther =
        found !== undefined && !isOf(found, task) && !(await isReleased(path, found, recorded, task, ports));
      if (isOther) {
        const mayReplace = whenOfAnotherTask !== "refuse" && recorded.done + recorded.failed === 0;
        if (mayReplace) await untilEarlierHaveGone(path, ports);
        if (!mayReplace || !(await hasNothingRecorded(path, recorded, ports))) {
          const files = filesToRemove(path, about, recorded.files);
          throw failure("other_run_task", {
            ...{ output: about, found: textOf(found), wanted: textOf(task), files },
          });
        }
        await forgetRun(path);
      }
      const record = found === undefined || isOther ? await newRecord(path, task, ports) : found;
      const claimed = { path, about, isNew, lock, recorded, ports };
      return new RunDirectory(claimed, record, isOther ? textOf(found) : undefined);
    } catch (error) {
      await lock.close();
      throw error;
    }
  }

  get path(): string {
    return this.#claimed.path;
  }

  get runId(): RunId {
    return this.#record.runId;
  }

  /** Where it is kept how far the files of results have got. */
  get cursorPlace(): CursorPlace {
    return {
      file: this.file(RECORD_FILE),
      read: () => Promise.resolve(this.#record.results),
      write: (results) => this.keep({ results }),
      remove: () => this.keep({ results: undefined }),
    };
  }

  file(name: string): string {
    return join(this.path, name);
  }

  /** Changes parts of the record: on disk when it resolves. One change at a time, when nothing of an earlier run is left. Throws file_unwritable. */
  async keep(parts: Partial<Pick<RunRecord, "begunBy" | "results"> & Ends>): Promise<void> {
    this.#record = await writeRecord(this.path, { ...this.#record, ...parts }, "run");
  }

  get configFile(): string {
    return this.file(CONFIG_FILE_NAME);
  }

  /** Makes the file, or replaces it as a whole. */
  write(name: string, text: string): Promise<void> {
    return replaceFile(this.file(name), text, SECRET_MODE, this.#claimed.ports.random);
  }

  /** The file's text; undefined when there is none. */
  async read(name: string): Promise<string | undefined> {
    return readFileOf(this.path, name);
  }

  /** The file for a process's log, made room in. */
  async logFile(who: string): Promise<string> {
    const file = this.file(`${who}.log`);
    const { size = 0 } = (await stat(file).catch(() => undefined)) ?? {};
    if (size > LOG_BYTES) await rename(file, `${file}.1`).catch(() => undefined);
    return file;
  }

  /** So many ids, always the same: a worker that was killed may have results that only it can deliver. */
  async workerIds(count: number): Promise<WorkerId[]> {
    const kept = (await workersIn(this.path)).slice(0, count);
    const { clock, random } = this.#claimed.ports;
    while (kept.length < count) kept.push(newUlid<WorkerId>(clock, random));
    return kept;
  }

  /**
   * Waits until no process of an earlier run holds anything in here. `onWait` is told for whom, once each. Throws run_held
   * when that takes too long, and soon for a process that somebody has started by hand: nothing else ends it; interrupted when the
   * signal aborts.
   */
  async waitForEarlier(onWait: (holder: string) => void, signal: AbortSignal): Promise<void> {
    await untilEarlierHaveGone(this.path, this.#claimed.ports, onWait, signal);
  }

  /** `done` as the database has it. Throws store_lost when that is less than was recorded: it is an older one, or a new one in its place. */
  refuseLessThanRecorded(done: number): void {
    const { path, about, recorded } = this.#claimed;
    refuseFewer(path, about, recorded, done);
  }

  /** Lets go of it. Idempotent. */
  close(): Promise<void> {
    return this.#claimed.lock.close();
  }

  /** Nothing came of it: as `close`, and what this claim has made is gone. One that was there before stays. */
  async discard(): Promise<void> {
    const { isNew } = this.#claimed;
    if (isNew) await rm(this.file(RECORD_FILE), { force: true });
    await this.close();
    if (!isNew) return;
    await rm(this.file(LOCK), { recursive: true, force: true });
    // Somebody else may have come meanwhile: then it is theirs.
    await dropIfEmpty(this.path);
  }
}

/** Whether it is a task that the run has come to by a release. Its record stays that of the first. */
async function isReleased(
  path: string,
  found: RunRecord,
  { hasDatabase }: Recorded,
  task: KeyedTask,
  ports: RunDirectoryPorts,
): Promise<boolean> {
  if (!hasDatabase || !sameFields(found.fields, task.fields)) return false;
  try {
    await untilEarlierHaveGone(path, ports);
  } catch (error) {
    // Nobody can look into it then.
    if (error instanceof RolloutError && error.code === "run_held") return false;
    throw error;
  }
  return hasComeTo({ path, holderName: HOLDER_NAME, clock: ports.clock }, task, textOf(found));
}

async function untilEarlierHaveGone(
  path: string,
  { clock }: RunDirectoryPorts,
  onWait: (holder: string) => void = () => undefined,
  signal = new AbortController().signal,
): Promise<void> {
  const self = await thisProcess();
  const told = new Set<number>();
  const startMs = clock.monotonicMs();
  for (;;) {
    const workers = (await workersIn(path)).map((id) => join(STATE, "workers", id));
    const found = await Promise.all(
      [DATABASE, ...workers].map((name) => findLiveHolder(join(path, name), self)),
    );
    const holder = found.find((each) => each !== undefined);
    if (signal.aborted) throw failure("interrupted", {});
    if (holder === undefined) return;
    const isOurs = !isByHand(holder.command);
    if (isOurs && !told.has(holder.pid)) onWait(describeHolder(holder));
    told.add(holder.pid);
    if (clock.monotonicMs() - startMs > (isOurs ? EARLIER_PATIENCE_MS : BY_HAND_PATIENCE_MS))
      throw failure("run_held", {
        ...{ directory: path, holder: describeHolder(holder) },
        advice: `end that process, by Ctrl-C where it runs or by \`kill ${holder.pid}\`, and give the same command again: what it has recorded is kept`,
      });
    await sleep(clock, EARLIER_POLL_MS, signal);
  }
}

/** Whether no item has come to an end. A database that somebody has open, or that cannot be read, is left to those who know it. */
async function hasNothingRecorded(
  path: string,
  { hasDatabase, done, failed }: Recorded,
  { clock }: RunDirectoryPorts,
): Promise<boolean> {
  if (done + failed > 0) return false;
  if (!hasDatabase) return true;
  try {
    const store = await openLevelStore({ path: join(path, DATABASE), holderName: HOLDER_NAME, clock });
    try {
      const pages = [DONE_PREFIX, FAILED_PREFIX].map((prefix) =>
        store.scan({ ...prefixRange(prefix), limit: 1 }),
      );
      return (await Promise.all(pages)).every((page) => page.length === 0);
    } finally {
      await store.close();
    }
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return false;
  }
}

/**
 * Gives up a run of which nothing was recorded: a mistyped command must not make an output its own. A process that dies meanwhile
 * leaves a run that begins anew.
 */
async function forgetRun(path: string): Promise<void> {
  const written = await writtenOf(path);
  if (written !== undefined) await dropEmptyResults(written);
  for (const name of OF_ONE_TASK) await rm(join(path, name), { recursive: true, force: true });
}

/** Somebody's directory is not ours to fill. Whether there is none. */
async function refuseForeign(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw failure("run_directory_unusable", { directory: path, reason: systemReason(error) }, error);
  });
  if (names === undefined) return true;
  const isOurs = names.length === 0 || [RECORD_FILE, LOCK, DATABASE].some((name) => names.includes(name));
  if (isOurs) return false;
  const reason = `it has files of something else: ${names.slice(0, 3).join(", ")}`;
  throw failure("run_directory_unusable", { directory: path, reason });
}

async function newRecord(
  path: string,
  task: KeyedTask,
  { clock, random }: RunDirectoryPorts,
): Promise<RunRecord> {
  const runId = newUlid<RunId>(clock, random);
  // Version 1 has parts in other files, which go with it.
  const { summary, fields } = task;
  const record = { version: 1, runId, digest: digestText(task), summary, fields } as const;
  return writeRecord(path, record, "run");
}

/** Whether the directory with this record, or what is known of it, is of the task, and has keys in the same fields. */
export function isOf({ digest, fields }: Partial<RunRecord>, task: KeyedTask): boolean {
  return digest === digestText(task) && sameFields(fields, task.fields);
}

function digestText({ digest }: Task): string {
  return Buffer.from(digest).toString("hex");
}

function textOf({ summary, fields }: Pick<KeyedTask, "summary" | "fields">): string {
  return `${summary}${fieldsText(fields)}`;
}
