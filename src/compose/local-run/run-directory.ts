// The directory in which a local run keeps everything: database, certificates, workers' state, logs, and which task it is of.
// Keeps true: one `rollout run` at a time has it, by the kernel's lock, so that kill -9 frees it; it belongs to one task for
// good, once anything came of it; and what an earlier run's processes still hold is waited for and not fought over.
import { createHash } from "node:crypto";
import { readFile, readdir, rename, rm, rmdir, stat } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
import { stringify } from "smol-toml";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { errnoOf, failure, RolloutError } from "../../base/errors.ts";
import { isUlid, newUlid } from "../../base/ids.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import { makeDirectory } from "../../base/make-directory.ts";
import type { Random } from "../../base/random.ts";
import { systemReason, unwritable } from "../../base/system-reason.ts";
import { keepTreePrivate } from "../../base/trusted-place.ts";
import { CONFIG_FILE_NAME } from "../../config/load.ts";
import type { Task } from "../../config/task.ts";
import type { Logger } from "../../observe/log.ts";
import { describeHolder, findLiveHolder } from "../../storage/level/holder-file.ts";
import { openLevelStore } from "../../storage/level/level-store.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { replaceFile, SECRET_MODE } from "../../transport/tls/credential-files.ts";
import { isByHand } from "../holder-names.ts";
import { forgetRun, hasNothingRecorded } from "./former-task.ts";
import type { GivenSetting } from "./local-settings.ts";
import {
  DATABASE,
  filesToRemove,
  readRecorded,
  refuseFewer,
  refuseLoss,
  STATE,
  TASK_FILE,
  workersIn,
} from "./recorded.ts";
import type { Recorded } from "./recorded.ts";

export interface RunDirectoryPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** The record of the task, beside what `rollout status` would say. */
export interface KeptTask {
  readonly version: 1;
  readonly runId: RunId;
  /** Hexadecimal. */
  readonly digest: string;
  readonly summary: string;
}

export const LOCK = "supervisor";
const HOLDER_NAME = "rollout run";
const DIGEST_SHOWN = 16;
/** Longer than a drain that nobody hurries. */
const EARLIER_PATIENCE_MS = 40_000;
/** As long as a process takes that somebody has just told to end. */
const BY_HAND_PATIENCE_MS = 1_000;
const EARLIER_POLL_MS = 100;
/** A log that is longer when a run begins makes room for a new one; the last one is kept. */
const LOG_BYTES = 4 * 1024 * 1024;

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

interface Parts {
  readonly isNew: boolean;
  readonly about: string;
  readonly recorded: Recorded;
  readonly former: string | undefined;
  readonly release: () => Promise<void>;
}

export class RunDirectory {
  readonly path: string;
  readonly runId: RunId;
  /** The task that it was of, when that was given up because nothing was recorded of it. */
  readonly formerTask: string | undefined;
  /** As it was when it was claimed. */
  readonly #recorded: Recorded;
  readonly #about: string;
  readonly #ports: RunDirectoryPorts;
  readonly #release: () => Promise<void>;
  readonly #isNew: boolean;

  private constructor(
    path: string,
    runId: RunId,
    ports: RunDirectoryPorts,
    { isNew, about, recorded, former, release }: Parts,
  ) {
    this.#isNew = isNew;
    this.#about = about;
    this.formerTask = former;
    this.#recorded = recorded;
    this.path = path;
    this.runId = runId;
    this.#ports = ports;
    this.#release = release;
  }

  /**
   * Holds the directory until `close`. `about` names for people what it is the directory of. Only who submits its items again may have one
   * replaced of which nothing came: they are forgotten with it. Throws run_held, other_run_task,
   * run_directory_unusable, store_lost when something of it was lost, and the rows of the file system.
   */
  static async claim(
    path: string,
    about: string,
    task: Task,
    ports: RunDirectoryPorts,
    whenOfAnotherTask: "refuse" | "replace-if-nothing-came" = "refuse",
  ): Promise<RunDirectory> {
    const isNew = await refuseForeign(path);
    await makeDirectory(path).catch((error: unknown) => {
      throw unwritable(path, error);
    });
    await keepTreePrivate(path);
    const lock = await openLevelStore({
      ...{ path: join(path, LOCK), holderName: HOLDER_NAME, clock: ports.clock, log: ports.log },
    }).catch((error: unknown) => {
      if (!(error instanceof RolloutError) || error.code !== "store_held") throw error;
      throw failure("run_held", {
        ...{ directory: path, holder: error.params["holder"] ?? "another process" },
        advice:
          "wait until that has ended, or end it: what it has done is kept; the same command with a larger --workers adds workers to it",
      });
    });
    try {
      const found = await readTask(path);
      const recorded = await readRecorded(path);
      refuseLoss(path, about, found !== undefined, recorded);
      const isOther = found !== undefined && found.digest !== digestText(task);
      if (isOther) {
        const mayReplace = whenOfAnotherTask !== "refuse" && recorded.done + recorded.failed === 0;
        if (mayReplace) await untilEarlierHaveGone(path, ports);
        if (!mayReplace || !(await hasNothingRecorded(path, recorded, ports))) {
          const files = filesToRemove(path, about, recorded.files);
          throw failure("other_run_task", {
            ...{ output: about, found: found.summary, wanted: task.summary, files },
          });
        }
        await forgetRun(path);
      }
      const kept = found === undefined || isOther ? await keepTask(path, task, ports) : found;
      const former = isOther ? found.summary : undefined;
      const parts = { isNew, about, recorded, former, release: () => lock.close() };
      return new RunDirectory(path, kept.runId, ports, parts);
    } catch (error) {
      await lock.close();
      throw error;
    }
  }

  file(name: string): string {
    return join(this.path, name);
  }

  get configFile(): string {
    return this.file(CONFIG_FILE_NAME);
  }

  /** Makes the file, or replaces it as a whole. */
  write(name: string, text: string): Promise<void> {
    return replaceFile(this.file(name), text, SECRET_MODE, this.#ports.random);
  }

  /** The file's text; undefined when there is none. */
  async read(name: string): Promise<string | undefined> {
    return readIfThere(this.file(name));
  }

  /** The file for a process's log, made room in. */
  async logFile(who: string): Promise<string> {
    const file = this.file(`${who}.log`);
    const size = await stat(file).then(
      (found) => found.size,
      () => 0,
    );
    if (size > LOG_BYTES) await rename(file, `${file}.1`).catch(() => undefined);
    return file;
  }

  /** So many ids, always the same: a worker that was killed may have results that only it can deliver. */
  async workerIds(count: number): Promise<WorkerId[]> {
    const kept = (await this.#workersThere()).slice(0, count);
    const { clock, random } = this.#ports;
    while (kept.length < count) kept.push(newUlid<WorkerId>(clock, random));
    return kept;
  }

  /**
   * Waits until no process of an earlier run holds anything in here. `onWait` is told for whom, once each. Throws run_held
   * when that takes too long, and soon for a process that somebody has started by hand: nothing else ends it.
   */
  async waitForEarlier(onWait: (holder: string) => void, signal: AbortSignal): Promise<void> {
    await untilEarlierHaveGone(this.path, this.#ports, onWait, signal);
  }

  /** `done` as the database has it. Throws store_lost when that is less than was recorded: it is an older one, or a new one in its place. */
  refuseLessThanRecorded(done: number): void {
    refuseFewer(this.path, this.#about, this.#recorded, done);
  }

  /** Lets go of it. Idempotent. */
  close(): Promise<void> {
    return this.#release();
  }

  /** Nothing came of it: as `close`, and what this claim has made is gone. One that was there before stays. */
  async discard(): Promise<void> {
    if (this.#isNew) await rm(this.file(TASK_FILE), { force: true });
    await this.close();
    if (!this.#isNew) return;
    await rm(this.file(LOCK), { recursive: true, force: true });
    // Somebody else may have come meanwhile: then it is theirs.
    await dropIfEmpty(this.path);
  }

  #workersThere(): Promise<WorkerId[]> {
    return workersIn(this.path);
  }
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
    if (holder === undefined || signal.aborted) return;
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

/** The configuration that coordinator, workers and every other command read. `settings` are of docs/CONFIGURATION.md, by their keys. */
export function localConfigText(
  runId: RunId,
  listenAddr: string,
  manifest: string | undefined,
  settings: readonly GivenSetting[] = [],
): string {
  const tables: Record<string, Record<string, unknown>> = {
    storage: { path: `./${DATABASE}` },
    transport: { listen_addr: listenAddr, tls_dir: "./tls" },
    worker: { state_dir: `./${STATE}`, plugins: manifest === undefined ? [] : [manifest] },
  };
  for (const { key, value } of settings) {
    const [table = "", name = ""] = key.split(".");
    (tables[table] ??= {})[name] = value;
  }
  const about =
    "# Written by `rollout run`, anew each time. Other commands take it, or its directory, by --config.";
  return `${about}\n${stringify({ run_id: runId, ...tables })}\n`;
}

/** Somebody's directory is not ours to fill. Whether there is none. */
async function refuseForeign(path: string): Promise<boolean> {
  const names = await readdir(path).catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw failure("run_directory_unusable", { directory: path, reason: systemReason(error) }, error);
  });
  if (names === undefined) return true;
  const isOurs = names.length === 0 || [TASK_FILE, LOCK, DATABASE].some((name) => names.includes(name));
  if (isOurs) return false;
  const reason = `it has files of something else: ${names.slice(0, 3).join(", ")}`;
  throw failure("run_directory_unusable", { directory: path, reason });
}

async function readTask(path: string): Promise<KeptTask | undefined> {
  const text = await readIfThere(join(path, TASK_FILE));
  if (text === undefined) return undefined;
  const kept = parseTask(text);
  if (kept !== undefined) return kept;
  throw failure("run_directory_unusable", {
    directory: path,
    reason: `${TASK_FILE} is not what was written`,
  });
}

async function keepTask(path: string, task: Task, { clock, random }: RunDirectoryPorts): Promise<KeptTask> {
  const runId = newUlid<RunId>(clock, random);
  const kept = { version: 1, runId, digest: digestText(task), summary: task.summary } as const;
  await replaceFile(join(path, TASK_FILE), `${JSON.stringify(kept, undefined, 2)}\n`, SECRET_MODE, random);
  return kept;
}

function parseTask(text: string): KeptTask | undefined {
  try {
    const value = JSON.parse(text) as Partial<Record<keyof KeptTask, unknown>> | null;
    const { version, runId, digest, summary } = value ?? {};
    if (version !== 1 || typeof runId !== "string" || !isUlid(runId)) return undefined;
    if (typeof digest !== "string" || typeof summary !== "string") return undefined;
    return { version, runId: runId as RunId, digest, summary };
  } catch {
    return undefined;
  }
}

function digestText({ digest }: Task): string {
  return Buffer.from(digest).toString("hex");
}

async function readIfThere(file: string): Promise<string | undefined> {
  return readFile(file, "utf8").catch((error: unknown) => {
    if (errnoOf(error) === "ENOENT") return undefined;
    const reason = `${basename(file)} cannot be read: ${systemReason(error)}`;
    throw failure("run_directory_unusable", { directory: dirname(file), reason }, error);
  });
}
