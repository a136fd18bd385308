// The one door by which a worker starts processes: asks the starter, a small process that was begun before any database was
// opened, and gets the pid and the streams of what it has started.
//
// Keeps true: nothing that is started has a descriptor but those that were asked for; a starter that dies is replaced by the next
// start, and what it had started is said to have ended with an end that nobody knows.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { Socket } from "node:net";
import { assert } from "../../base/assert.ts";
import { describeError, errnoOf } from "../../base/errors.ts";
import { ownFile } from "../../base/own-file.ts";
import { countBy } from "../../observe/metrics/count-by.ts";
import type { Exposition } from "../../observe/metrics/exposition.ts";
import type { ChildEnd } from "./child.ts";
import { openDescriptors, openFilesLimit } from "../../base/process-table.ts";

export interface StartRequest {
  /** Absolute. */
  readonly file: string;
  readonly args: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** All of its environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Its descriptors, from standard input on. It says nothing on them before it was written to on one of them. */
  readonly streams: readonly StreamKind[];
}

export interface StartedProcess {
  /** The number of the process, of its session and of its group. */
  readonly pid: number;
  /** As many as were asked for; those that were ignored are undefined. */
  readonly streams: readonly (Socket | undefined)[];
  readonly exited: Promise<ChildEnd>;
}

export type StartResult =
  | { readonly kind: "started"; readonly process: StartedProcess }
  | { readonly kind: "failed"; readonly failure: StartFailure };

/** A start on its way, or a process that lives. */
interface Entry {
  readonly streams: (Socket | undefined)[];
  /** Descriptors that are kept free for it. */
  expected: number;
  /** How many of them are to come. */
  missing: number;
  hasStarted: boolean;
  readonly started: PromiseWithResolvers<StartResult>;
  readonly exited: PromiseWithResolvers<ChildEnd>;
}

const PROGRAM = ownFile("src/worker/children/starter-program");
/** Both ends of its standard input, of the channel to it, and of a pipe for the moment of the spawn. */
const OWN_DESCRIPTORS = 6;
const UNKNOWN_END: ChildEnd = { code: null, signal: null };
const LOST: StartFailure = {
  errno: "EAGAIN",
  message: "the process that starts others has died",
  hasNul: false,
};
const NOT_HANDED: StartFailure = { errno: "EAGAIN", message: "its streams did not arrive", hasNul: false };

export class Starter {
  readonly #entries = new Map<number, Entry>();
  readonly #room = new DescriptorRoom();
  readonly #started = countBy("rollout_worker_processes_started_total", "result");
  readonly #ended = countBy("rollout_worker_processes_ended_total", "end");
  #process: ChildProcess | undefined;
  #lastId = 0;
  #isClosed = false;

  /**
   * Begins the process now, and not with the first start, so that it is there before the caller opens anything. One that cannot
   * begin is tried again at each start.
   */
  static begin(): Starter {
    const starter = new Starter();
    starter.#begun();
    return starter;
  }

  /** The starter's own; undefined while there is none. */
  get pid(): number | undefined {
    return this.#process?.pid;
  }

  addMetrics(exposition: Exposition): void {
    const living = this.#started.started - this.#ended.clean - this.#ended.failed;
    exposition.add("rollout_worker_processes", living);
    exposition.addEach("rollout_worker_processes_started_total", "result", this.#started);
    exposition.addEach("rollout_worker_processes_ended_total", "end", this.#ended);
  }

  /** Another process of the worker's, which one of those that were started here has started. */
  countStarted(): void {
    this.#started.started++;
  }

  countEnded({ code }: ChildEnd): void {
    this.#ended[code === 0 ? "clean" : "failed"]++;
  }

  /** Never rejects. */
  async start(request: StartRequest): Promise<StartResult> {
    assert(!this.#isClosed, "a starter that is closed starts nothing");
    const starter = this.#begun();
    if (starter instanceof Error) {
      return this.#failed({ errno: errnoOf(starter), message: describeError(starter), hasNul: false });
    }
    const expected = request.streams.filter((kind) => kind === "pipe").length;
    if (!this.#room.expect(expected)) return this.#failed(noRoom(this.#room.limit));
    const id = ++this.#lastId;
    const entry: Entry = {
      streams: request.streams.map(() => undefined),
      ...{ expected, missing: expected, hasStarted: false },
      started: Promise.withResolvers(),
      exited: Promise.withResolvers(),
    };
    this.#entries.set(id, entry);
    starter.channel?.ref();
    const message: StartMessage = { ...request, id };
    // One that could not be begun has no channel, where there were no descriptors for that, and its end is on its way.
    if (starter.pid === undefined) return entry.started.promise;
    starter.send(message, (error) => {
      if (error !== null) this.#lost(starter);
    });
    return entry.started.promise;
  }

  /** Resolves when the process has ended; what it has started lives on. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    const starter = this.#process;
    if (starter?.pid === undefined) return;
    const gone = once(starter, "exit");
    starter.ref();
    if (starter.connected) starter.disconnect();
    // It does not hear of that while it hands streams over.
    starter.stdin?.destroy();
    await gone;
  }

  /** The process that there is, else a new one. */
  #begun(): ChildProcess | Error {
    if (this.#process !== undefined) return this.#process;
    // A spawn that fails for want of them keeps some of those that it has got, for good.
    if (!this.#room.expect(OWN_DESCRIPTORS))
      return Object.assign(new Error(noRoom(this.#room.limit).message), { code: "EMFILE" });
    let starter: ChildProcess;
    try {
      starter = spawn(process.execPath, [PROGRAM], {
        // In a session of its own: what ends the worker's, Ctrl-C for one, is not to end it. It holds no directory.
        detached: true,
        cwd: "/",
        env: {},
        stdio: ["pipe", "ignore", "inherit", "ipc"],
      });
    } catch (error) {
      return error instanceof Error ? error : new Error(String(error));
    } finally {
      this.#room.arrived(OWN_DESCRIPTORS);
    }
    this.#process = starter;
    starter.on("message", (message, stream) => this.#hear(message as StarterMessage, stream));
    // Nothing is written to it: its end is what the other side waits for.
    starter.stdin?.on("error", () => undefined);
    for (const event of ["error", "disconnect", "exit"]) starter.once(event, () => this.#lost(starter));
    // It keeps a worker that has nothing more to do from ending only while something of it lives.
    starter.unref();
    starter.channel?.unref();
    return starter;
  }

  #hear(message: StarterMessage, stream: unknown): void {
    const entry = this.#entries.get(message.id);
    // It is of a starter that was given up.
    if (entry === undefined) return void (stream instanceof Socket && stream.destroy());
    switch (message.kind) {
      case "handed":
        if (!(stream instanceof Socket)) return;
        entry.streams[message.at] = stream;
        entry.missing--;
        return;
      case "started": {
        const { pid } = message;
        this.#arrived(entry);
        if (entry.missing > 0) return this.#abort(entry, pid);
        const { streams, exited } = entry;
        entry.hasStarted = true;
        this.countStarted();
        return entry.started.resolve({ kind: "started", process: { pid, streams, exited: exited.promise } });
      }
      case "failed":
        this.#forget(message.id);
        this.#arrived(entry);
        return entry.started.resolve(this.#failed(message.failure));
      case "exited":
        this.#forget(message.id);
        if (entry.hasStarted) this.countEnded(message);
        // It may have ended before its streams had arrived.
        else entry.started.resolve(this.#failed(NOT_HANDED));
        entry.exited.resolve({ code: message.code, signal: message.signal });
    }
  }

  /** Nothing of its program runs: it waits for a word. */
  #abort({ started, streams }: Entry, pid: number): void {
    for (const stream of streams) stream?.destroy();
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      // It has ended.
    }
    started.resolve({ kind: "failed", failure: NOT_HANDED });
  }

  #failed(failure: StartFailure): StartResult {
    this.#started.failed++;
    return { kind: "failed", failure };
  }

  #arrived(entry: Entry): void {
    this.#room.arrived(entry.expected);
    entry.expected = 0;
  }

  #forget(id: number): void {
    this.#entries.delete(id);
    if (this.#entries.size === 0) this.#process?.channel?.unref();
  }

  #lost(lost: ChildProcess): void {
    if (this.#process !== lost) return;
    this.#process = undefined;
    const entries = [...this.#entries.values()];
    this.#entries.clear();
    // Nobody would answer it any more.
    if (!this.#isClosed) lost.kill("SIGKILL");
    for (const entry of entries) {
      this.#arrived(entry);
      const { started, exited } = entry;
      if (entry.hasStarted) this.countEnded(UNKNOWN_END);
      else started.resolve(this.#failed(LOST));
      exited.resolve(UNKNOWN_END);
    }
  }
}

function noRoom(limit: number): StartFailure {
  const message = `this worker has no descriptors left of the ${limit} that it may have (ulimit -n)`;
  return { errno: "EMFILE", message, hasNul: false };
}

/** Asks the starter's program for one start; `id` is in every answer to it. */
export interface StartMessage extends StartRequest {
  readonly id: number;
}

/** A stream that is not a pipe is /dev/null. */
type StreamKind = "pipe" | "ignore";

export type StarterMessage =
  /** With one end of a stream. `at`: its descriptor in the child. */
  | { readonly kind: "handed"; readonly id: number; readonly at: number }
  /** After the last stream. */
  | { readonly kind: "started"; readonly id: number; readonly pid: number }
  | { readonly kind: "failed"; readonly id: number; readonly failure: StartFailure }
  | {
      readonly kind: "exited";
      readonly id: number;
      readonly code: number | null;
      readonly signal: NodeJS.Signals | null;
    };

export interface StartFailure {
  /** As the system calls it; undefined for what did not come to it. */
  readonly errno: string | undefined;
  readonly message: string;
  /** An argument or a variable has a NUL byte. */
  readonly hasNul: boolean;
}

// Whether this process has descriptors for the streams of another child. They arrive whether there is room or not, and what
// finds none is lost on its way, with the one that hands it over: so it is asked before.

/** For files that are open for a moment. */
const MARGIN = 4;

/** @internal */
export class DescriptorRoom {
  readonly limit: number;
  readonly #count: () => number;
  /** How many may be taken before it is counted again. */
  #known = 0;
  #expected = 0;

  /** `count` says Infinity when descriptors cannot even be counted: that takes one. */
  constructor(
    limit: number = openFilesLimit() ?? Infinity,
    count = (): number => openDescriptors()?.length ?? Infinity,
  ) {
    this.limit = limit;
    this.#count = count;
  }

  /** False when there may be no room for so many. True: they are expected until `arrived` says how many of them have. */
  expect(descriptors: number): boolean {
    if (this.#known < descriptors) {
      const free = this.limit - this.#count() - this.#expected - MARGIN;
      if (free < descriptors) return false;
      // Others take some meanwhile: half of them is ours without another look.
      this.#known = Math.max(descriptors, Math.floor(free / 2));
    }
    this.#known -= descriptors;
    this.#expected += descriptors;
    return true;
  }

  /** They are here, or will not come. */
  arrived(descriptors: number): void {
    this.#expected -= descriptors;
  }
}
