// Executes items by a user's JavaScript, in processes of their own: one for each attempt that runs at once, kept for the
// next. A process and not a thread: what user code can do to its own process (exhaust its memory, crash natively, exit), in
// a thread it does to the worker.
//
// Keeps true: a process that did not end an attempt in time, or died, executes nothing more; what cannot start charges no
// item.
import { assert } from "../../../base/assert.ts";
import { sleep, unlessAborted } from "../../../base/clock.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import { ownFile } from "../../../base/own-file.ts";
import type { Random } from "../../../base/random.ts";
import type { Backend, ChildBackendOptions, ItemAttempt, ItemReport, Learner, Outcome } from "../backend.ts";
import { FalseStarts } from "../false-starts.ts";
import { Shortage } from "../shortage.ts";
import { forHowLong, loadingWords } from "../trouble-words.ts";
import type { LoadMessage } from "./code-messages.ts";
import { CodeProcess } from "./code-process.ts";
import type { CodeStart } from "./code-process.ts";

export interface CodeBackendOptions extends ChildBackendOptions {
  /** The program of the process: a file of ours that loads the user's. */
  readonly program: string;
  readonly load: Pick<LoadMessage, "module" | "export" | "options">;
  /** Absolute; where the processes start. */
  readonly workingDirectory: string;
  /** All of their environment. */
  readonly env: Readonly<Record<string, string>>;
  /** As Node decides when undefined. */
  readonly memoryLimitBytes: number | undefined;
  readonly loadTimeoutMs: number;
  readonly abortGraceMs: number;
  readonly random: Random;
}

type Loaded =
  | { readonly kind: "ready"; readonly process: CodeProcess }
  | Extract<CodeStart, { kind: "unusable" }>
  /** It is not wanted any more. */
  | { readonly kind: "ended" };

const MIB = 1_024 * 1_024;
const PREEMPTED: Outcome = { kind: "preempted" };

export class CodeBackend implements Backend {
  readonly #options: CodeBackendOptions;
  /** Processes that wait for an attempt; the last one that was used goes first. */
  readonly #idle: CodeProcess[] = [];
  readonly #processes = new Set<CodeProcess>();
  readonly #falseStarts: FalseStarts;
  readonly #shortage: Shortage;
  readonly #closing = new AbortController();
  /** Attempts that have no process yet. */
  #waiting = 0;
  #isBroken = false;

  constructor(options: CodeBackendOptions) {
    this.#options = options;
    this.#falseStarts = new FalseStarts(options);
    this.#shortage = new Shortage(options.clock, options.startTimeoutMs);
  }

  /**
   * Starts the first process, so that code that cannot be executed is found before there is an item. Undefined when it can be;
   * else why not, of which `onBroken` is not told.
   */
  async prepare(): Promise<string | undefined> {
    const found = await this.#loaded(this.#closing.signal, () => undefined);
    if (found.kind === "ready") this.#giveBack(found.process);
    return found.kind === "unusable" ? found.reason : undefined;
  }

  async execute(
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    assert(!this.#closing.signal.aborted, "what is closed executes nothing");
    this.#waiting++;
    const found = await this.#loaded(signal, () => report({ kind: "waiting" }));
    this.#waiting--;
    if (found.kind === "unusable") this.#breakDown(found.reason);
    if (found.kind !== "ready") return PREEMPTED;
    const { process: taken } = found;
    try {
      if (attempt.mayBegin?.() === false) return PREEMPTED;
      report({ kind: "executing" });
      return await taken.execute(attempt, signal, report);
    } finally {
      this.#giveBack(taken);
    }
  }

  trouble(): string | undefined {
    const shortage = this.#shortage.trouble();
    if (shortage !== undefined) return shortage;
    const { last } = this.#falseStarts;
    if (last !== undefined && this.#waiting > 0) {
      const sinceMs = this.#options.clock.monotonicMs() - last.sinceMs;
      return `starting it again, ${forHowLong(sinceMs)}: it ended before the code was loaded: ${last.reason}`;
    }
    const alive = [...this.#processes].filter((one) => one.isAlive);
    const loading = alive.filter((one) => !one.isReady);
    const [sinceMs] = loading.map(({ startedAtMs }) => startedAtMs);
    const all = alive.length;
    const { clock, loadTimeoutMs: timeoutMs } = this.#options;
    return loadingWords({ sinceMs, ready: all - loading.length, all, timeoutMs }, clock.monotonicMs());
  }

  learners(): readonly Learner[] {
    return [...this.#processes].filter((one) => one.isLearned);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    const { abortGraceMs } = this.#options;
    await Promise.all([...this.#processes].map((one) => one.close(abortGraceMs)));
  }

  /** A process that has loaded the code. One that ended on its way is followed by another, after a wait. */
  async #loaded(signal: AbortSignal, onWaiting: () => void): Promise<Loaded> {
    const { clock, log } = this.#options;
    for (;;) {
      const taken = this.#take();
      if (!taken.isReady) onWaiting();
      const start = await unlessAborted(signal, taken.started);
      if (start?.kind === "ready") {
        this.#falseStarts.over();
        return { kind: "ready", process: taken };
      }
      this.#giveBack(taken);
      if (start === undefined || start.kind === "closed") return { kind: "ended" };
      if (start.kind === "unusable") return start;
      const works = [...this.#processes].some((one) => one.isAlive && one.isReady);
      const { reason } = start;
      const waitMs = this.#falseStarts.count({ reason, startedAtMs: taken.startedAtMs }, works);
      if (waitMs === undefined) return { kind: "unusable", reason };
      log.warn("a process ended before it had loaded the code", { reason });
      await sleep(clock, waitMs, signal);
      if (signal.aborted || this.#closing.signal.aborted) return { kind: "ended" };
    }
  }

  #breakDown(reason: string): void {
    if (this.#isBroken || this.#closing.signal.aborted) return;
    this.#isBroken = true;
    this.#options.onBroken(reason);
  }

  #take(): CodeProcess {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.isAlive) return idle;
      this.#processes.delete(idle);
    }
    const { program, memoryLimitBytes, workingDirectory, env, load } = this.#options;
    const { maxOutputBytes, maxCheckpointBytes, maxStateBytes } = this.#options;
    const heap = memoryLimitBytes === undefined ? [] : [`--max-old-space-size=${memoryLimitBytes / MIB}`];
    const command = [process.execPath, ...heap, program];
    const started = new CodeProcess({
      ...this.#options,
      shortage: this.#shortage,
      request: { command, cwd: workingDirectory, env, channel: true },
      load: { kind: "load", ...load, maxOutputBytes, maxCheckpointBytes, maxStateBytes },
    });
    this.#processes.add(started);
    return started;
  }

  #giveBack(taken: CodeProcess): void {
    if (taken.isAlive) this.#idle.push(taken);
    else void taken.close().then(() => this.#processes.delete(taken));
  }
}

/** The options of a backend for one kind of code, but for those that follow from the kind. */
interface FileOptions extends Omit<CodeBackendOptions, "program" | "load"> {
  /** Absolute path of a JavaScript or TypeScript file. */
  readonly module: string;
}

interface CodeOptions extends FileOptions {
  /** The name of the function, or of the machine, that it exports. */
  readonly export: string;
}

const MODULE_PROGRAM = ownFile("src/worker/backends/module/module-program");
const MACHINE_PROGRAM = ownFile("src/worker/backends/machine/machine-program");
const ACTOR_PROGRAM = ownFile("src/worker/backends/actor/actor-program");

/** Executes items by a function, which is given the parameters with each of them. */
export function moduleBackend(options: CodeOptions & { readonly parameters: JsonObject }): CodeBackend {
  const { module, export: name, parameters } = options;
  const load = { module, export: name, options: { parameters } };
  return new CodeBackend({ ...options, program: MODULE_PROGRAM, load });
}

/**
 * Runs an XState machine to its final state, once for each item. Its snapshot is the item's checkpoint, so that another worker goes on
 * where this one stopped; it is kept that often at most, and after each transition when that is 0.
 */
export function machineBackend(
  options: CodeOptions & { readonly checkpointIntervalMs: number },
): CodeBackend {
  const { module, export: name, checkpointIntervalMs } = options;
  const load = { module, export: name, options: { checkpointIntervalMs } };
  return new CodeBackend({ ...options, program: MACHINE_PROGRAM, load });
}

/** Sends events to durable actors, each by the key of its item. The state of an actor is that of its key, from event to event. */
export function actorBackend(
  options: FileOptions & { readonly types: readonly string[]; readonly stateVersion: number },
): CodeBackend {
  const { module, types, stateVersion } = options;
  const load = { module, export: types, options: { stateVersion } };
  return new CodeBackend({ ...options, program: ACTOR_PROGRAM, load });
}
