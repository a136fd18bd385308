// The side of the process: loads the user's file, executes what the worker asks for, and ends when the worker does.
//
// Keeps true: whatever the user's code prints is with the system, on standard error, before the answer of its attempt is; nothing but this
// file speaks on the channel.
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { describeError } from "../../../base/errors.ts";
import type { JsonObject } from "../../../base/exact-json.ts";
import { writeAllSync } from "../../../observe/line-output.ts";
import { FrameReader, frameOf } from "./code-messages.ts";
import type { CodeOutcome, ExecuteMessage, FromCode, LoadMessage, ToCode } from "./code-messages.ts";
import { lendOurPackages } from "./lent-packages.ts";

/** One attempt, as the code that executes it sees it. */
export interface CodeAttempt {
  readonly message: ExecuteMessage;
  /** Aborts when the attempt is not wanted any more, or its time is over. */
  readonly signal: AbortSignal;
  /** Kept by the worker: the next attempt gets it. Larger than a limit of the run, it is left out. */
  readonly saveCheckpoint: (checkpoint: Uint8Array) => void;
}

/** Executes attempts. Rejects with whatever the user's code throws. */
export type Executing = (attempt: CodeAttempt) => Promise<CodeOutcome>;

/**
 * Makes of what the user's file exports what executes it. Throws when it cannot be executed. `exported`: an object with the exports by
 * their names when several are asked for.
 */
export type Loading = (exported: unknown, options: JsonObject, fileUrl: string) => Promise<Executing>;

/** The socket between the worker and this process. */
const CHANNEL_FD = 4;
const STDERR_FD = 2;

/** Saves what a user's code has learned. Throws, or rejects with, whatever that throws. */
export type Saving = (time: { readonly timeLeftMs: number; readonly signal: AbortSignal }) => unknown;

/**
 * Serves for as long as the worker lives. Once in a process, before anything else is loaded. `saver`: the name of the export that
 * saves what the file has learned, where it has one.
 */
export function serveCode(load: Loading, saver?: string): void {
  printToStandardError();
  lendOurPackages();
  const channel = new Socket({ fd: CHANNEL_FD, readable: true, writable: true });
  const say = (message: FromCode): void => void channel.write(frameOf(message));
  // There is nobody left to work for.
  channel.on("close", () => process.exit(0));
  channel.on("error", () => process.exit(0));
  process.on("uncaughtException", (error) => {
    tell(stackOf(error));
    channel.end(
      frameOf({ kind: "dying", reason: `an error that nothing caught: ${describeError(error)}` }),
      () => process.exit(1),
    );
  });
  const server = new Server(load, saver, say);
  const reader = new FrameReader<ToCode>();
  channel.on("data", (chunk: Buffer) => {
    for (const message of reader.take(chunk)) server.take(message);
  });
}

class Server {
  readonly #load: Loading;
  readonly #saver: string | undefined;
  readonly #say: (message: FromCode) => void;
  #execute: Executing | undefined;
  #save: Saving | undefined;
  #limits = { maxOutputBytes: 0, maxCheckpointBytes: 0, maxStateBytes: 0 };
  #aborting = new AbortController();

  constructor(load: Loading, saver: string | undefined, say: (message: FromCode) => void) {
    this.#load = load;
    this.#saver = saver;
    this.#say = say;
  }

  take(message: ToCode): void {
    if (message.kind === "load") void this.#prepare(message);
    else if (message.kind === "execute") void this.#run(message);
    else if (message.kind === "save") void this.#saveLearned(message.timeLeftMs);
    else this.#aborting.abort();
  }

  async #prepare({ module, export: name, options, ...limits }: LoadMessage): Promise<void> {
    this.#limits = limits;
    const fileUrl = pathToFileURL(module).href;
    try {
      const exports = (await import(fileUrl)) as Readonly<Record<string, unknown>>;
      const exported =
        typeof name === "string"
          ? exportOf(exports, name)
          : Object.fromEntries(name.map((one) => [one, exportOf(exports, one)]));
      this.#execute = await this.#load(exported, options, fileUrl);
      const save = this.#saver === undefined ? undefined : exports[this.#saver];
      if (save !== undefined) refuseUnlessFunction(`its export ${this.#saver}`, save);
      this.#save = save as Saving | undefined;
      this.#say({ kind: "ready", saves: this.#save !== undefined });
    } catch (error) {
      tell(stackOf(error));
      this.#say({ kind: "unusable", reason: `${module}: ${describeError(error)}` });
    }
  }

  async #saveLearned(timeLeftMs: number): Promise<void> {
    const aborting = (this.#aborting = new AbortController());
    try {
      await this.#save?.({ timeLeftMs, signal: aborting.signal });
      this.#say({ kind: "saved" });
    } catch (error) {
      tell(stackOf(error));
      this.#say({ kind: "saved", failure: describeError(error) });
    }
  }

  async #run(message: ExecuteMessage): Promise<void> {
    const aborting = (this.#aborting = new AbortController());
    const { signal } = aborting;
    Object.assign(process.env, message.env);
    const { maxCheckpointBytes } = this.#limits;
    const saveCheckpoint = (checkpoint: Uint8Array): void => {
      if (checkpoint.length <= maxCheckpointBytes) this.#say({ kind: "checkpoint", checkpoint });
      else
        tell(`a checkpoint of ${checkpoint.length} bytes is left out: ${maxCheckpointBytes} are allowed\n`);
    };
    let outcome: CodeOutcome;
    try {
      outcome = await (this.#execute?.({ message, signal, saveCheckpoint }) ?? neverLoaded());
    } catch (error) {
      tell(stackOf(error));
      outcome = signal.aborted
        ? { kind: "preempted" }
        : { kind: "error", message: describeError(error) || "it threw an error without a message" };
    }
    this.#say({ kind: "ended", outcome: this.#bounded(outcome) });
  }

  #bounded(outcome: CodeOutcome): CodeOutcome {
    if (outcome.kind !== "success") return outcome;
    const { maxOutputBytes, maxStateBytes } = this.#limits;
    const tooLarge = (what: string, bytes: number, max: number): CodeOutcome => ({
      ...{ kind: "too_large", message: `the ${what} is ${bytes} bytes; ${max} are allowed` },
    });
    const { output, state = "removed" } = outcome;
    if (output.length > maxOutputBytes) return tooLarge("output", output.length, maxOutputBytes);
    if (state === "removed" || state.length <= maxStateBytes) return outcome;
    return tooLarge("state", state.length, maxStateBytes);
  }
}

/** Throws when it has none of that name. */
function exportOf(exports: Readonly<Record<string, unknown>>, name: string): unknown {
  if (Object.hasOwn(exports, name)) return exports[name];
  const names = Object.keys(exports).join(", ");
  throw new Error(names === "" ? "it exports nothing" : `it has no export ${name}, only ${names}`);
}

/** Throws, with `what` it is of the user's file. */
export function refuseUnlessFunction(what: string, value: unknown): void {
  if (typeof value !== "function") throw new TypeError(`${what} is ${kindOf(value)}, not a function`);
}

/** The words for its type. */
export function kindOf(value: unknown): string {
  return value === null || value === undefined ? String(value) : `a ${typeof value}`;
}

function neverLoaded(): never {
  throw new Error("nothing is loaded");
}

/** For the log of the attempt. Returns when it is with the system. */
export function tell(text: string): void {
  writeAllSync(STDERR_FD, text);
}

function stackOf(error: unknown): string {
  return `${error instanceof Error ? (error.stack ?? error.message) : String(error)}\n`;
}

/** Synchronous: what was printed before the process is killed is not lost, and is there before the answer is. */
function printToStandardError(): void {
  for (const name of ["stdout", "stderr"] as const) {
    const stream = new Writable({
      decodeStrings: false,
      write: (chunk: string | Buffer, _encoding, done) => {
        tell(chunk.toString());
        done();
      },
    });
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
  }
}

/** The JSON value; the text itself when it is not JSON. */
export function parseJsonText(bytes: Uint8Array): unknown {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
