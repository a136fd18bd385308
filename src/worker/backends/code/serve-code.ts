// The side of the process: loads the user's file, executes what the worker asks for, and ends when the worker does.
//
// Keeps true: whatever the user's code prints goes to standard error, before the mark of its attempt; nothing but this file
// speaks on the channel.
import { registerHooks } from "node:module";
import { Socket } from "node:net";
import { Writable } from "node:stream";
import { pathToFileURL } from "node:url";
import { describeError } from "../../../base/errors.ts";
import type { JsonObject } from "../../../config/manifest-fields.ts";
import { writeAllSync } from "../../../observe/write-sync.ts";
import { FrameReader, frameOf } from "./code-messages.ts";
import type { CodeOutcome, ExecuteMessage, FromCode, LoadMessage, ToCode } from "./code-messages.ts";

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

/** Makes of what the user's file exports what executes it. Throws when it cannot be executed. */
export type Loading = (exported: unknown, options: JsonObject, fileUrl: string) => Promise<Executing>;

/** The socket between the worker and this process. */
const CHANNEL_FD = 4;
const STDERR_FD = 2;
/** Packages that a user's file may import without having them. */
const LENT = /^xstate(?:\/|$)/;
/** Followed by the file whose view it is, and what it imports. */
const AS_SEEN_FROM = "rollout-as-seen-from:";

/** Serves for as long as the worker lives. Once in a process, before anything else is loaded. */
export function serveCode(load: Loading): void {
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
  const server = new Server(load, say);
  const reader = new FrameReader<ToCode>();
  channel.on("data", (chunk: Buffer) => {
    for (const message of reader.take(chunk)) server.take(message);
  });
}

class Server {
  readonly #load: Loading;
  readonly #say: (message: FromCode) => void;
  #execute: Executing | undefined;
  #limits = { maxOutputBytes: 0, maxCheckpointBytes: 0 };
  #aborting = new AbortController();

  constructor(load: Loading, say: (message: FromCode) => void) {
    this.#load = load;
    this.#say = say;
  }

  take(message: ToCode): void {
    if (message.kind === "load") void this.#prepare(message);
    else if (message.kind === "execute") void this.#run(message);
    else this.#aborting.abort();
  }

  async #prepare({ module, export: name, options, ...limits }: LoadMessage): Promise<void> {
    this.#limits = limits;
    const fileUrl = pathToFileURL(module).href;
    try {
      const exports = (await import(fileUrl)) as Readonly<Record<string, unknown>>;
      if (!Object.hasOwn(exports, name)) {
        const names = Object.keys(exports).join(", ");
        throw new Error(names === "" ? "it exports nothing" : `it has no export ${name}, only ${names}`);
      }
      this.#execute = await this.#load(exports[name], options, fileUrl);
      this.#say({ kind: "ready" });
    } catch (error) {
      tell(stackOf(error));
      this.#say({ kind: "unusable", reason: `${module}: ${describeError(error)}` });
    }
  }

  async #run(message: ExecuteMessage): Promise<void> {
    const aborting = (this.#aborting = new AbortController());
    const { signal } = aborting;
    Object.assign(process.env, message.env);
    const { maxOutputBytes, maxCheckpointBytes } = this.#limits;
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
    if (outcome.kind === "success" && outcome.output.length > maxOutputBytes)
      outcome = {
        kind: "too_large",
        message: `the output is ${outcome.output.length} bytes; ${maxOutputBytes} are allowed`,
      };
    tell(message.mark);
    this.#say({ kind: "ended", outcome });
  }
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

/** Synchronous: what was printed before the process is killed is not lost, and stands before the mark. */
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

/** A user's file may import what this program has anyway, without installing it. */
function lendOurPackages(): void {
  registerHooks({
    resolve(asked, asking, next) {
      const [specifier, context] = asked.startsWith(AS_SEEN_FROM)
        ? foreignView(asked.slice(AS_SEEN_FROM.length), asking)
        : [asked, asking];
      try {
        return next(specifier, context);
      } catch (error) {
        if (!LENT.test(specifier)) throw error;
        return next(specifier, { ...context, parentURL: import.meta.url });
      }
    },
  });
}

function foreignView<Context extends object>(text: string, context: Context): [string, Context] {
  const [specifier = "", ...parent] = text.split(" ");
  return [specifier, { ...context, parentURL: parent.join(" ") }];
}

/** The module that the file gets when it imports that package. */
export async function importAsSeenFrom(specifier: string, fileUrl: string): Promise<unknown> {
  return await import(`${AS_SEEN_FROM}${specifier} ${fileUrl}`);
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
