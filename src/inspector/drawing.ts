// Definitions of strangers, read and laid out in a thread of their own: one at a time, each within a time limit, in turns by program, so
// that a definition that is slow or large costs its own program a picture and nobody else more than the wait for it.
import { Worker } from "node:worker_threads";
import type { Clock, Timer } from "../base/clock.ts";
import { ownFile } from "../base/own-file.ts";

export interface DrawingTask {
  /** To be read, drawn, or told of as a list of states and transitions. */
  readonly kind: "read" | "draw" | "outline";
  readonly text: string;
}

export type DrawingAnswer =
  | { readonly kind: "read"; readonly isCut: boolean }
  /** A ChartPicture as JSON. */
  | { readonly kind: "drawn"; readonly picture: string }
  /** The reason is for a person, about "it". */
  | { readonly kind: "unreadable"; readonly reason: string };

interface Waiting extends DrawingTask {
  readonly programId: string;
  readonly settle: (answer: DrawingAnswer) => void;
}

export interface DrawingOptions {
  readonly clock: Clock;
  /** How long one task may take. */
  readonly limitMs?: number;
}

/** A chart of a few hundred states takes two seconds on a slow machine. */
const LIMIT_MS = 10_000;
/** Tasks of one program; more are refused. */
const WAITING_MAX = 256;
const MEMORY_MIB = 256;

const THREAD = ownFile("src/inspector/drawing-thread");

export class Drawing {
  readonly #clock: Clock;
  readonly #limitMs: number;
  /** By program, in the order of their turns. */
  readonly #waiting = new Map<string, Waiting[]>();
  #thread: Worker | undefined;
  #current: { readonly task: Waiting; readonly timer: Timer } | undefined;
  #isClosed = false;

  constructor({ clock, limitMs = LIMIT_MS }: DrawingOptions) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /** Never rejects. */
  async answer(programId: string, task: DrawingTask): Promise<DrawingAnswer> {
    const { promise, resolve: settle } = Promise.withResolvers<DrawingAnswer>();
    const own = this.#waiting.get(programId) ?? [];
    if (this.#isClosed || own.length >= WAITING_MAX)
      return { kind: "unreadable", reason: "too many definitions wait to be read" };
    own.push({ ...task, programId, settle });
    this.#waiting.set(programId, own);
    this.#next();
    return promise;
  }

  /** Its tasks are answered as unreadable; one that is under way goes on. */
  forget(programId: string): void {
    const own = this.#waiting.get(programId) ?? [];
    this.#waiting.delete(programId);
    for (const { settle } of own) settle({ kind: "unreadable", reason: "its program has gone" });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    for (const programId of [...this.#waiting.keys()]) this.forget(programId);
    this.#settle({ kind: "unreadable", reason: "the inspector ends" });
    await this.#thread?.terminate();
  }

  #next(): void {
    if (this.#current !== undefined) return;
    const [turn] = this.#waiting;
    if (turn === undefined) return;
    const [programId, [task, ...later]] = turn;
    // Its next turn comes after all others.
    this.#waiting.delete(programId);
    if (later.length > 0) this.#waiting.set(programId, later);
    if (task === undefined) return;
    const limit = `it takes longer than ${this.#limitMs / 1_000} s to ${task.kind}`;
    const timer = this.#clock.after(this.#limitMs, () => this.#giveUp(limit), { background: true });
    this.#current = { task, timer };
    this.#threadOf().postMessage({ kind: task.kind, text: task.text } satisfies DrawingTask);
  }

  #threadOf(): Worker {
    if (this.#thread !== undefined) return this.#thread;
    // XState warns on the console, in the words of the definition: nobody reads that.
    const thread = new Worker(THREAD, {
      ...{ stdout: true, stderr: true },
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    });
    thread.unref();
    thread.stdout.resume();
    thread.stderr.resume();
    const isCurrent = (): boolean => this.#thread === thread;
    thread.on("message", (answer: DrawingAnswer) => {
      if (isCurrent()) this.#settle(answer);
    });
    // It has thrown, or needed more memory than it has.
    thread.on("error", () => {
      if (isCurrent()) this.#giveUp("it cannot be drawn");
    });
    return (this.#thread = thread);
  }

  /** The thread may be in the middle of anything: the next task has a new one. */
  #giveUp(reason: string): void {
    const thread = this.#thread;
    this.#thread = undefined;
    void thread?.terminate();
    this.#settle({ kind: "unreadable", reason });
  }

  #settle(answer: DrawingAnswer): void {
    const current = this.#current;
    this.#current = undefined;
    current?.timer.cancel();
    current?.task.settle(answer);
    this.#next();
  }
}
