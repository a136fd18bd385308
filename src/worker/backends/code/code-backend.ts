// Executes items by a user's JavaScript, in processes of their own: one for each attempt that runs at once, kept for the
// next. A process and not a thread: what user code can do to its own process (exhaust its memory, crash natively, exit), in
// a thread it does to the worker.
//
// Keeps true: a process that did not end an attempt in time, or died, executes nothing more; what cannot start charges no
// item.
import { assert } from "../../../base/assert.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../observe/log.ts";
import type { Backend, ItemAttempt, ItemReport, Outcome } from "../backend.ts";
import type { Children } from "../child.ts";
import { loadingWords } from "../trouble-words.ts";
import { CodeProcess } from "./code-process.ts";
import type { CodeStart } from "./code-process.ts";
import type { LoadMessage } from "./messages.ts";

export interface CodeBackendOptions {
  /** What runs in the process: a file of ours that loads the user's. */
  readonly program: string;
  readonly load: Omit<LoadMessage, "kind" | "maxOutputBytes" | "maxCheckpointBytes">;
  /** Absolute; where the processes start. */
  readonly workingDirectory: string;
  /** All of their environment. */
  readonly env: Readonly<Record<string, string>>;
  /** As Node decides when undefined. */
  readonly memoryLimitBytes: number | undefined;
  readonly loadTimeoutMs: number;
  readonly abortGraceMs: number;
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly children: Children;
  readonly clock: Clock;
  readonly log: Logger;
  /** The code cannot be executed at all. At most once. */
  readonly onBroken: (reason: string) => void;
}

const MIB = 1_024 * 1_024;
const PREEMPTED: Outcome = { kind: "preempted" };

export class CodeBackend implements Backend {
  readonly #options: CodeBackendOptions;
  /** Those that wait for an attempt; the last one that was used goes first. */
  readonly #idle: CodeProcess[] = [];
  readonly #processes = new Set<CodeProcess>();
  #isBroken = false;
  #isClosed = false;

  constructor(options: CodeBackendOptions) {
    this.#options = options;
  }

  /**
   * Starts the first process, so that code that cannot be executed is found before there is an item. Undefined when it can be;
   * else why not, of which `onBroken` is not told.
   */
  async prepare(): Promise<string | undefined> {
    const taken = this.#take();
    const start = await taken.started;
    this.#giveBack(taken);
    return start.kind === "unusable" ? start.reason : undefined;
  }

  async execute(
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    assert(!this.#isClosed, "what is closed executes nothing");
    const taken = this.#take();
    try {
      if (!taken.isReady) report({ kind: "waiting" });
      const start = await Promise.race([taken.started, aborted(signal)]);
      if (start === "aborted" || !this.#canGoOn(start)) return PREEMPTED;
      report({ kind: "executing" });
      return await taken.execute(attempt, signal, report);
    } finally {
      this.#giveBack(taken);
    }
  }

  trouble(): string | undefined {
    const alive = [...this.#processes].filter((one) => one.isAlive);
    const loading = alive.filter((one) => !one.isReady);
    const [sinceMs] = loading.map(({ startedAtMs }) => startedAtMs);
    const all = alive.length;
    return loadingWords({ sinceMs, ready: all - loading.length, all }, this.#options.clock.monotonicMs());
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    const { abortGraceMs } = this.#options;
    await Promise.all([...this.#processes].map((one) => one.close(abortGraceMs)));
  }

  #canGoOn(start: CodeStart): boolean {
    if (start.kind === "unusable" && !this.#isBroken && !this.#isClosed) {
      this.#isBroken = true;
      this.#options.onBroken(start.reason);
    }
    return start.kind === "ready";
  }

  #take(): CodeProcess {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      if (idle.isAlive) return idle;
      this.#processes.delete(idle);
    }
    const { program, memoryLimitBytes, workingDirectory, env, load } = this.#options;
    const { maxOutputBytes, maxCheckpointBytes } = this.#options;
    const heap = memoryLimitBytes === undefined ? [] : [`--max-old-space-size=${memoryLimitBytes / MIB}`];
    const command = [process.execPath, ...heap, program];
    const started = new CodeProcess({
      ...this.#options,
      request: { command, cwd: workingDirectory, env, channel: true },
      load: { kind: "load", ...load, maxOutputBytes, maxCheckpointBytes },
    });
    this.#processes.add(started);
    return started;
  }

  #giveBack(taken: CodeProcess): void {
    if (taken.isAlive) this.#idle.push(taken);
    else void taken.close().then(() => this.#processes.delete(taken));
  }
}

function aborted(signal: AbortSignal): Promise<"aborted"> {
  return new Promise((resolve) => {
    const onAbort = (): void => resolve("aborted");
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort, { once: true });
  });
}
