// A process for each item: the payload on its standard input and in its arguments, the output on its standard output, and its
// exit code says whether that is one.
//
// Keeps true: nothing that an attempt started runs when the attempt has ended; what a child does after it was told to end is
// no success, whatever its exit code.
import { join } from "node:path";
import { assert } from "../../../base/assert.ts";
import type { Timer } from "../../../base/clock.ts";
import { systemReason } from "../../../base/system-reason.ts";
import {
  describeEnd,
  endOfStreams,
  ErrorOutput,
  isUnknown,
  BoundedOutput,
} from "../../children/child-output.ts";
import type { Child } from "../../children/child.ts";
import { AT_ONCE } from "../backend.ts";
import type { Backend, ChildBackendOptions, ItemAttempt, ItemReport, Outcome } from "../backend.ts";
import { Shortage, startPatiently, writePatiently } from "../shortage.ts";
import type { Patience } from "../shortage.ts";
import { fillCommand, fillShellText, isTemplate } from "./argv-template.ts";
import { AttemptDirectories } from "./attempt-directories.ts";
import { CheckpointFile } from "./checkpoint-file.ts";
import { StateFile } from "./state-file.ts";

export interface CommandBackendOptions extends ChildBackendOptions {
  /** The program and its arguments; with `shell`, one text for `/bin/sh -c`. */
  readonly command: readonly string[];
  readonly shell: boolean;
  /** Absolute. */
  readonly cwd: string;
  /** All of the environment of the children, but for what the item adds. */
  readonly env: Readonly<Record<string, string>>;
  /** Between SIGTERM and SIGKILL. */
  readonly killGraceMs: number;
  /** How often it is looked for what a command has left, while it runs. */
  readonly checkpointIntervalMs: number;
  /** Absolute. This backend's alone, for the files of its attempts: emptied at the first, removed at the end. */
  readonly directory: string;
}

/** The files of one attempt, in a directory of its own. */
interface AttemptFiles {
  readonly directory: string;
  readonly checkpoint: CheckpointFile;
  /** Undefined for an item without a key. */
  readonly state: StateFile | undefined;
}

/** How long output is waited for that something else than the command itself may hold back. */
const OUTPUT_PATIENCE_MS = 1_000;

export class CommandBackend implements Backend {
  readonly #options: CommandBackendOptions;
  /** Attempts that execute, each with the controller that ends it. */
  readonly #executing = new Map<Promise<unknown>, AbortController>();
  readonly #children = new Set<Child>();
  readonly #shortage: Shortage;
  readonly #directories: AttemptDirectories;
  #isClosed = false;
  #isBroken = false;
  /** Too large, which was said. */
  readonly #oversized = new WeakSet<CheckpointFile>();

  constructor(options: CommandBackendOptions) {
    assert(options.command.length > 0, "a command has a first word");
    this.#options = options;
    this.#shortage = new Shortage(options.clock, options.startTimeoutMs);
    this.#directories = new AttemptDirectories(options.directory);
  }

  execute(attempt: ItemAttempt, signal: AbortSignal, report: (report: ItemReport) => void): Promise<Outcome> {
    const ending = new AbortController();
    const onAbort = (): void => ending.abort(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const executing = this.#execute(attempt, ending.signal, report);
    this.#executing.set(executing, ending);
    const forget = (): void => void this.#executing.delete(executing);
    executing.then(forget, forget);
    return executing;
  }

  trouble(): string | undefined {
    return this.#shortage.trouble();
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const ending of this.#executing.values()) ending.abort();
    for (const child of this.#children) void child.kill(0);
    await Promise.allSettled(this.#executing.keys());
    await this.#directories.close();
  }

  async #execute(
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    const { command: words, shell, directory, log } = this.#options;
    const { payload } = attempt;
    if (this.#isBroken) return untilAborted(signal);
    const filled = shell ? fillShellText(words[0] ?? "", payload) : fillCommand(words, payload);
    if (filled.kind === "lacking") return { kind: "error", message: filled.message };
    let file: AttemptFiles | undefined;
    try {
      file = await writePatiently(() => this.#filesOf(attempt), signal, this.#patience(report));
    } catch (error) {
      return await this.#broken(`${directory}: ${systemReason(error)}`, signal);
    }
    if (file === undefined) return { kind: "preempted" };
    try {
      return await this.#executeWith(file, filled.command, attempt, signal, report);
    } finally {
      await this.#directories.giveBack(file.directory).catch((error: unknown) => {
        log.warn("the files of an attempt stay", { directory, reason: systemReason(error) });
      });
    }
  }

  async #executeWith(
    files: AttemptFiles,
    command: readonly string[],
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
    byStarter = false,
  ): Promise<Outcome> {
    const { children, cwd, env, shell } = this.#options;
    const { checkpoint, state } = files;
    const variables = {
      ...{ ...attempt.env, ROLLOUT_CHECKPOINT: checkpoint.path },
      ...(state && { ROLLOUT_STATE: state.path }),
    };
    const { mayBegin, payload: input } = attempt;
    const request = { command, cwd, env, variables, input, byStarter, ...(mayBegin && { mayBegin }) };
    const start = await startPatiently(children, request, signal, this.#patience(report));
    if (start.kind === "aborted") return { kind: "preempted" };
    report({ kind: "executing" });
    if (start.kind === "started") {
      const outcome = await this.#conduct(start.child, files, signal, report);
      return outcome ?? this.#executeWith(files, command, attempt, signal, report, true);
    }
    const { kind, reason } = start.failure;
    // A program that an item names may be missing for that item alone.
    const isOfItem =
      kind === "refused" || (kind === "unusable" && !shell && isTemplate(this.#options.command[0] ?? ""));
    return isOfItem ? { kind: "error", message: reason } : this.#broken(reason, signal);
  }

  /** Undefined when its program could not be executed. */
  async #conduct(
    child: Child,
    { checkpoint: file, state }: AttemptFiles,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome | undefined> {
    const { killGraceMs, maxOutputBytes, maxStateBytes, clock } = this.#options;
    this.#children.add(child);
    const graceMs = (): number => (this.#isClosed || signal.reason === AT_ONCE ? 0 : killGraceMs);
    const onAbort = (): void => {
      void child.kill(graceMs());
      // A checkpoint that it has saved by now counts even if nobody waits for its end.
      void this.#reportSaved(file, report);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
    const watch = this.#watch(file, report);
    const errors = new ErrorOutput(child.stderr, (chunk) => report({ kind: "log", chunk }));
    const output = new BoundedOutput(child.stdout, maxOutputBytes, () => void child.kill(0));
    const end = await child.exited;
    watch.cancel();
    const wasAborted = signal.aborted;
    signal.removeEventListener("abort", onAbort);
    await endOfStreams([child.stdout, child.stderr], OUTPUT_PATIENCE_MS, clock);
    await child.kill(wasAborted ? graceMs() : 0);
    this.#children.delete(child);
    for (const stream of [child.stdin, child.stdout, child.stderr]) stream.destroy();
    if ((await child.isUnbegun?.()) === true) return undefined;
    if (output.isOver) return { kind: "too_large" };
    if (wasAborted || isUnknown(end)) return preempted(await this.#saved(file));
    if (end.signal !== null || end.code !== 0) await this.#reportSaved(file, report);
    if (end.signal !== null) return { kind: "crash", message: describeEnd(end, errors.lastLine) };
    if (end.code !== 0) return { kind: "error", message: describeEnd(end, errors.lastLine) };
    return state?.success(output.bytes(), maxStateBytes) ?? { kind: "success", output: output.bytes() };
  }

  /** Until it is cancelled: a command that dies with the worker has left something. */
  #watch(file: CheckpointFile, report: (report: ItemReport) => void): Timer {
    const { clock, checkpointIntervalMs } = this.#options;
    let isOver = false;
    let timer: Timer | undefined;
    const look = (): void => void this.#reportSaved(file, report).then(wait);
    const wait = (): void => {
      if (!isOver) timer = clock.after(checkpointIntervalMs, look, { background: true });
    };
    wait();
    const cancel = (): void => {
      isOver = true;
      timer?.cancel();
    };
    return { cancel };
  }

  async #reportSaved(file: CheckpointFile, report: (report: ItemReport) => void): Promise<void> {
    const checkpoint = await this.#saved(file);
    if (checkpoint !== undefined) report({ kind: "checkpoint", checkpoint });
  }

  async #saved(file: CheckpointFile): Promise<Uint8Array | undefined> {
    const { maxCheckpointBytes, log } = this.#options;
    const checkpoint = await file.read(maxCheckpointBytes);
    if (checkpoint === undefined || checkpoint.length <= maxCheckpointBytes) return checkpoint;
    if (!this.#oversized.has(file))
      log.warn("a checkpoint over the limit was left out", { limit: maxCheckpointBytes });
    this.#oversized.add(file);
    return undefined;
  }

  /** None of the time counts in which the machine has no room for the attempt. */
  #patience(report: (report: ItemReport) => void): Patience {
    const { clock, log } = this.#options;
    return { clock, log, shortage: this.#shortage, onWait: () => report({ kind: "waiting" }) };
  }

  async #filesOf({ itemId, attempt, checkpoint, keyed }: ItemAttempt): Promise<AttemptFiles> {
    const directory = await this.#directories.take();
    const path = join(directory, `${Buffer.from(itemId).toString("hex")}-${attempt}`);
    try {
      return {
        directory,
        checkpoint: await CheckpointFile.create(path, checkpoint),
        state: keyed && (await StateFile.create(`${path}.state`, keyed.state)),
      };
    } catch (error) {
      await this.#directories.giveBack(directory).catch(() => undefined);
      throw error;
    }
  }

  #broken(reason: string, signal: AbortSignal): Promise<Outcome> {
    if (!this.#isBroken) this.#options.onBroken(reason);
    this.#isBroken = true;
    return untilAborted(signal);
  }
}

/** No item is charged for a backend that is broken, nor given back before the worker ends: it would come again at once. */
function untilAborted(signal: AbortSignal): Promise<Outcome> {
  return new Promise((resolve) => {
    const end = (): void => resolve({ kind: "preempted" });
    if (signal.aborted) end();
    else signal.addEventListener("abort", end, { once: true });
  });
}

function preempted(checkpoint: Uint8Array | undefined): Outcome {
  return checkpoint === undefined ? { kind: "preempted" } : { kind: "preempted", checkpoint };
}
