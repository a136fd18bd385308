// One process of a local run: a coordinator or a worker, started as anybody would start it. Its log goes to a file, its events
// are read as they come, and it ends with whoever started it: the end of its standard input tells it to leave.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Writable } from "node:stream";
import { systemReason, unwritable } from "../../base/system-reason.ts";

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

export class Member {
  readonly ended: Promise<MemberEnd>;
  readonly #child: ChildProcess;
  #error: MemberError | undefined;

  /** Throws file_unwritable for the log. A program that cannot be started at all ends at once. */
  constructor({ program, words, logFile, keepsOpen, onEvent }: MemberOptions) {
    const log = openLog(logFile);
    try {
      // A session of its own: Ctrl-C in a terminal is for the one who started it, and leaves the order of things to it.
      this.#child = spawn(program.executable, [...program.words, ...words, "--json"], {
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
    const object = parseObject(line);
    const error = object?.["error"];
    if (object?.["kind"] === "domain") onEvent(object);
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

function parseObject(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return typeof value === "object" && value !== null ? { ...value } : undefined;
  } catch {
    return undefined;
  }
}
