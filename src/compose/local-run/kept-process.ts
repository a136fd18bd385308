// A process that is there until it is told to end: one that dies is started again, after a wait that grows. Each of its lives is a member:
// a coordinator or a worker, started as anybody would start it, with its log in a file and its events read as they come. Keeps true:
// what cannot work is not tried for ever, and never silently; a member ends with the process that has started it.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { EXIT } from "../../base/error-row.ts";
import { failure, RolloutError } from "../../base/errors.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { jsonFields } from "../../base/exact-json.ts";
import { systemReason, unwritable } from "../../base/system-reason.ts";

/** Why a process is not started again. */
export interface GivenUp {
  readonly who: string;
  readonly error: MemberError;
  /** The exit code that goes with it; undefined when the process did not choose one. */
  readonly exit: number | undefined;
}

export interface KeptOptions {
  /** For people: "worker 2". */
  readonly who: string;
  readonly launch: () => Member;
  readonly clock: Clock;
  readonly logFile: string;
  /** A sentence on each end that was not asked for. */
  readonly say: (sentence: string) => void;
  readonly onGivenUp: (reason: GivenUp) => void;
  /** Told of each end that was not asked for, before it is decided what to do about it. */
  readonly onDied?: (end: MemberEnd) => void;
}

/** A process that has lived for less has not worked. */
const QUICK_MS = 10_000;
/** So many quick deaths in a row are no accident. */
const QUICK_MAX = 4;
const BACKOFF = { baseMs: 100, ceilingMs: 3_000 };
/** Nothing will change by itself: a wrong setting, a damaged database, a bug. */
const HOPELESS: readonly (number | null)[] = [EXIT.usage, EXIT.storage, EXIT.bug];
/** But this: a command that looks into a database while nobody has it open (`doctor`, `results`) lets go of it before long. */
const HELD: ErrorCode = "store_held";
const HELD_PATIENCE_MS = 60_000;
const HELD_WAIT_MS = 500;

export class KeptProcess {
  readonly #options: KeptOptions;
  readonly #ending = new AbortController();
  #member: Member | undefined;
  #kept: Promise<void> | undefined;

  constructor(options: KeptOptions) {
    this.#options = options;
  }

  /** Undefined between two lives. */
  get member(): Member | undefined {
    return this.#member;
  }

  start(): void {
    this.#kept ??= this.#keep();
  }

  /** Has it leave, and starts it again then. */
  restart(): void {
    this.#member?.stop();
  }

  /** Has it leave in good order and resolves when it has, however long that takes. Idempotent. */
  async stop(): Promise<void> {
    this.#ending.abort();
    this.#member?.stop();
    await this.#kept;
  }

  /** At once. */
  kill(): void {
    this.#ending.abort();
    this.#member?.kill();
  }

  async #keep(): Promise<void> {
    const { who, clock, say, onDied, onGivenUp } = this.#options;
    const { signal } = this.#ending;
    let heldSinceMs: number | undefined;
    for (let quick = 0; !signal.aborted;) {
      const startedAtMs = clock.monotonicMs();
      const end = await this.#live();
      this.#member = undefined;
      if (this.#hasToEnd()) return;
      onDied?.(end);
      const wasHeld = heldSinceMs !== undefined;
      heldSinceMs = end.error?.code === HELD ? (heldSinceMs ?? clock.monotonicMs()) : undefined;
      if (heldSinceMs !== undefined && clock.monotonicMs() - heldSinceMs < HELD_PATIENCE_MS) {
        if (!wasHeld) say(`${who} ${describeEnd(end)}; it is started again when that is over`);
        await sleep(clock, HELD_WAIT_MS, signal);
        continue;
      }
      quick = clock.monotonicMs() - startedAtMs < QUICK_MS ? quick + 1 : 1;
      if (HOPELESS.includes(end.code) || quick >= QUICK_MAX) {
        onGivenUp(this.#reason(end));
        return;
      }
      say(`${who} ${describeEnd(end)}; it is started again`);
      await sleep(clock, Math.min(BACKOFF.ceilingMs, BACKOFF.baseMs * 4 ** (quick - 1)), signal);
    }
  }

  #hasToEnd(): boolean {
    return this.#ending.signal.aborted;
  }

  /** One life. A process that could not even be launched has ended as well. */
  async #live(): Promise<MemberEnd> {
    try {
      this.#member = this.#options.launch();
      return await this.#member.ended;
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      return { code: error.row.exit, signal: null, error };
    }
  }

  #reason(end: MemberEnd): GivenUp {
    const { who, logFile } = this.#options;
    const advice = `look at ${logFile}; run the same command to go on`;
    const reason = `it ${describeEnd(end)} again and again`;
    const error = end.error ?? failure("process_given_up", { who, reason, advice });
    return { who, error, exit: end.code === null || end.code === 0 ? undefined : end.code };
  }
}

/** "was killed (SIGKILL)" */
function describeEnd({ code, signal, error }: MemberEnd): string {
  if (error !== undefined) return `has ended: ${error.message}`;
  if (signal !== null) return `was killed (${signal})`;
  return code === 0 ? "has left in good order" : `has ended with code ${String(code)}`;
}

/** How this very program is started again. */
export interface Program {
  readonly executable: string;
  /** Words before a command's own. */
  readonly words: readonly string[];
  readonly environment: NodeJS.ProcessEnv;
  readonly workingDirectory: string;
}

export interface MemberOptions {
  readonly program: Program;
  readonly words: readonly string[];
  /** Appended to. */
  readonly logFile: string;
  /** An input that another member reads: it sees no end of it while this member lives. */
  readonly keepsOpen?: Writable | undefined;
  readonly onEvent: (event: MemberEvent) => void;
}

/** A line of the event stream (docs/EVENTS.md). */
export type MemberEvent = Readonly<Record<string, unknown>>;

/** How a member has ended. */
export interface MemberEnd {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
  /** The row of the table of errors that it ended with, if it did. */
  readonly error: MemberError | undefined;
}

export interface MemberError {
  readonly code: string;
  readonly message: string;
  readonly hint: string;
}

const LOG_MODE = 0o600;
/**
 * The half of V8's young generation in each member, in MiB; a later flag of the user's goes before. V8 itself takes up to four times as
 * much, with which a busy process has several hundred MiB more of garbage, LevelDB's batches among it (docs/adr/0055).
 */
const HEAP_FLAGS = ["--max-semi-space-size=16"];

export class Member {
  readonly ended: Promise<MemberEnd>;
  readonly #child: ChildProcess;
  #error: MemberError | undefined;

  /** Throws file_unwritable for the log. A program that cannot be started at all ends at once. */
  constructor({ program, words, logFile, keepsOpen, onEvent }: MemberOptions) {
    const log = openLog(logFile);
    try {
      // A session of its own: Ctrl-C in a terminal is for the one who started it, and leaves the order of things to it.
      this.#child = spawn(program.executable, [...HEAP_FLAGS, ...program.words, ...words, "--json"], {
        cwd: program.workingDirectory,
        env: program.environment,
        detached: true,
        stdio: ["pipe", "pipe", log, ...(keepsOpen?.destroyed === false ? [keepsOpen] : [])],
      });
    } finally {
      closeSync(log);
    }
    const { stdin, stdout } = this.#child;
    stdin?.on("error", () => undefined);
    stdout?.on("error", () => undefined);
    if (stdout !== null) createInterface({ input: stdout }).on("line", (line) => this.#take(line, onEvent));
    this.ended = new Promise((resolve) => {
      this.#child.once("error", (error) => {
        const hint = "look at its log";
        this.#error ??= { code: "", message: `it could not be started: ${systemReason(error)}`, hint };
        resolve({ code: null, signal: null, error: this.#error });
      });
      this.#child.once("close", (code, signal) => resolve({ code, signal, error: this.#error }));
    });
  }

  /** Undefined when it could not be started. */
  get pid(): number | undefined {
    return this.#child.pid;
  }

  /** For a member that is to live no longer than those that keep this open. */
  get input(): Writable | undefined {
    return this.#child.stdin ?? undefined;
  }

  /** Asks it to leave in good order. */
  stop(): void {
    this.#child.kill("SIGTERM");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  #take(line: string, onEvent: (event: MemberEvent) => void): void {
    const object = jsonFields(line);
    const { kind, error } = object;
    if (kind === "domain") onEvent(object);
    else if (typeof error === "object" && error !== null) this.#error = readError({ ...error });
  }
}

function openLog(file: string): number {
  try {
    return openSync(file, "a", LOG_MODE);
  } catch (error) {
    throw unwritable(file, error);
  }
}

function readError({ code, message, hint }: Readonly<Record<string, unknown>>): MemberError {
  return { code: String(code), message: String(message), hint: String(hint) };
}
