// One long-lived child: its start until it is ready, the items that it has, the save of what it has learned, its end.
//
// Keeps true: each item that it was given is settled once, and not while something of the child still executes it; what it
// dies of while it has one item is that item's doing, and nobody's while it has several.
import type { Clock, Timer } from "../../../base/clock.ts";
import { printable } from "../../../base/safe-text.ts";
import type { Logger } from "../../../observe/log.ts";
import { describeEnd, endOfStreams, ErrorOutput, isUnknown } from "../../children/child-output.ts";
import type { Child, ChildEnd } from "../../children/child.ts";
import { AT_ONCE } from "../backend.ts";
import type { ItemAttempt, ItemReport, Learner, Outcome } from "../backend.ts";
import { LineReader, cancelLine, helloLine, itemLine, readLine, saveLine } from "./process-protocol.ts";
import type { ChildLine, Hello, PayloadForm } from "./process-protocol.ts";

/** An item on its way through the backend. */
export interface Job {
  readonly attempt: ItemAttempt;
  readonly signal: AbortSignal;
  readonly report: (report: ItemReport) => void;
  readonly settle: (outcome: Outcome) => void;
}

export interface ItemProcessOptions extends Hello {
  readonly readyTimeoutMs: number;
  readonly killGraceMs: number;
  readonly maxLineBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
  readonly onReady: () => void;
  /** It can take one more than before. */
  readonly onRoom: () => void;
  /** Nothing of it is left. `wasReady` says whether it ever was; `reason` is how it ended, in words. */
  readonly onGone: (wasReady: boolean, reason: string) => void;
}

interface InFlight extends Job {
  readonly onAbort: () => void;
  /** Over when it has not answered the request to cancel. */
  grace: Timer | undefined;
  /** The answer, once it is there; only the end of its standard error is waited for then. */
  answer: Outcome | undefined;
}

/** How long its last words are waited for. */
const OUTPUT_PATIENCE_MS = 1_000;
const SHOWN_CHARACTERS = 200;

export class ItemProcess implements Learner {
  /** Monotonic. */
  readonly startedAtMs: number;
  readonly #child: Child;
  readonly #options: ItemProcessOptions;
  readonly #lines: LineReader;
  readonly #errors: ErrorOutput;
  readonly #inFlight = new Map<number, InFlight>();
  readonly #readyTimer: Timer;
  #form: PayloadForm = "json";
  #state: "starting" | "ready" | "ending" = "starting";
  #wasReady = false;
  #saves = false;
  #saving: PromiseWithResolvers<void> | undefined;
  #lastId = 0;
  /** Why it was made to end; undefined when it did so itself. */
  #verdict: string | undefined;
  /** The outcome of that for an item that it has alone. */
  #blame: "crash" | "error" | "too_large" = "crash";
  #isClosed = false;
  readonly #gone: Promise<void>;

  constructor(child: Child, options: ItemProcessOptions) {
    this.#child = child;
    this.#options = options;
    this.#lines = new LineReader(options.maxLineBytes);
    this.#errors = new ErrorOutput(child.stderr, (chunk) => this.#logOf(chunk));
    child.stdout.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stdin.write(helloLine(options));
    const { readyTimeoutMs, clock } = options;
    this.startedAtMs = clock.monotonicMs();
    this.#readyTimer = clock.after(
      readyTimeoutMs,
      () => this.#condemn(`it was not ready within ${readyTimeoutMs} ms`),
      { background: true },
    );
    this.#gone = child.exited.then((end) => this.#bury(end));
  }

  get isStarting(): boolean {
    return this.#state === "starting";
  }

  get isReady(): boolean {
    return this.#state === "ready";
  }

  get load(): number {
    return this.#inFlight.size;
  }

  get hasRoom(): boolean {
    return this.isReady && this.#inFlight.size < this.#options.concurrency;
  }

  /** Whether it has learned something and can save it. */
  get isLearned(): boolean {
    return this.isReady && this.#saves && this.#lastId > 0;
  }

  /** Once, for one that has no item. */
  save(timeLeftMs: number): Promise<void> {
    this.#saving = Promise.withResolvers();
    this.#child.stdin.write(saveLine(timeLeftMs));
    return this.#saving.promise;
  }

  /** For one that has room, and a job that is wanted. */
  give(job: Job): void {
    const id = ++this.#lastId;
    const onAbort = (): void => this.#cancel(id);
    this.#inFlight.set(id, { ...job, onAbort, grace: undefined, answer: undefined });
    job.signal.addEventListener("abort", onAbort, { once: true });
    this.#child.stdin.write(itemLine(id, job.attempt, this.#form));
  }

  /** Ends it, whatever it does. Resolves when nothing of it is left. Idempotent. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#end();
    // With the end of its input it may end by itself; SIGTERM says so too.
    void this.#child.kill(this.#options.killGraceMs);
    await this.#gone;
  }

  #read(chunk: Buffer): void {
    if (this.#verdict !== undefined) return;
    const lines = this.#lines.push(chunk);
    if (lines === undefined)
      return this.#condemn(`it wrote a line of more than ${this.#options.maxLineBytes} bytes`, "too_large");
    for (const line of lines) if (line.length > 0) this.#take(line);
  }

  #take(bytes: Buffer): void {
    // A line before it may have been the last one that counts.
    if (this.#verdict !== undefined) return;
    const line = readLine(bytes);
    const isOfItem = line !== undefined && "id" in line;
    const isKnown = isOfItem ? line.id >= 1 && line.id <= this.#lastId : line !== undefined;
    if (line !== undefined && isKnown) return this.#obey(line);
    const shown = printable(bytes.toString().slice(0, SHOWN_CHARACTERS)).toWellFormed();
    // Libraries greet on standard output when they are loaded.
    if (this.#state === "starting")
      return this.#options.log.warn("a process wrote to standard output before it was ready", {
        line: shown,
      });
    this.#condemn(
      `it wrote a line to standard output that is not of the protocol (print to standard error instead): ${shown}`,
      "error",
    );
  }

  #obey(line: ChildLine): void {
    switch (line.kind) {
      case "ready":
        [this.#form, this.#saves] = [line.payload, line.saves];
        return this.#becomeReady();
      case "saved":
        return line.failure === undefined
          ? this.#saving?.resolve()
          : this.#saving?.reject(new Error(line.failure));
      case "retire":
        if (this.#state === "ready") this.#state = "ending";
        return this.#endWhenEmpty();
      case "checkpoint":
        return this.#wanted(line.id)?.report({ kind: "checkpoint", checkpoint: line.checkpoint });
      case "log":
        return this.#wanted(line.id)?.report({ kind: "log", chunk: line.chunk });
      case "result":
        return this.#answer(line.id, () => {
          const { output, state } = line;
          return { kind: "success", output, ...(state !== undefined && { state }) };
        });
      case "error":
        return this.#answer(line.id, ({ signal }) =>
          signal.aborted ? { kind: "preempted" } : { kind: "error", message: line.message },
        );
      case "cancelled":
        return this.#answer(line.id, ({ signal }) =>
          signal.aborted
            ? { kind: "preempted" }
            : { kind: "error", message: "the process cancelled it without being asked to" },
        );
    }
  }

  #becomeReady(): void {
    if (this.#state !== "starting") return;
    this.#readyTimer.cancel();
    this.#state = "ready";
    this.#wasReady = true;
    this.#options.onReady();
  }

  /** Undefined when it has been answered already. */
  #wanted(id: number): InFlight | undefined {
    const job = this.#inFlight.get(id);
    return job?.answer === undefined ? job : undefined;
  }

  #answer(id: number, outcomeFor: (job: InFlight) => Outcome): void {
    const job = this.#wanted(id);
    if (job === undefined) return;
    const outcome = outcomeFor(job);
    job.answer = outcome;
    // Text that it wrote to standard error before may be there and not be read yet.
    this.#options.clock.nextTurn(() => {
      if (!this.#settle(id, outcome)) return;
      this.#options.onRoom();
      this.#endWhenEmpty();
    });
  }

  /** False when it has been. */
  #settle(id: number, outcome: Outcome): boolean {
    const job = this.#inFlight.get(id);
    if (job === undefined) return false;
    this.#inFlight.delete(id);
    job.grace?.cancel();
    job.signal.removeEventListener("abort", job.onAbort);
    job.settle(outcome);
    return true;
  }

  #cancel(id: number): void {
    const job = this.#wanted(id);
    if (job === undefined) return;
    if (job.signal.reason === AT_ONCE) return this.#condemn("an item of it has to end at once");
    this.#child.stdin.write(cancelLine(id));
    const { clock, killGraceMs } = this.#options;
    const over = (): void => this.#condemn("it did not answer a request to cancel");
    job.grace = clock.after(killGraceMs, over, { background: true });
  }

  #endWhenEmpty(): void {
    if (this.#state === "ending" && this.#inFlight.size === 0) void this.close();
  }

  #end(): void {
    this.#state = "ending";
    this.#readyTimer.cancel();
    this.#child.stdin.end();
  }

  /** It cannot be used any more. `kind`: what that makes of the item, if it has one alone. */
  #condemn(reason: string, kind: "crash" | "error" | "too_large" = "crash"): void {
    if (this.#verdict !== undefined) return;
    this.#verdict = reason;
    this.#blame = kind;
    if (this.#inFlight.size === 0 && this.#wasReady)
      this.#options.log.warn("a process is replaced", { reason });
    this.#end();
    void this.#child.kill(0);
  }

  /** It has ended: so does all that it started, and then what it had. */
  async #bury(end: ChildEnd): Promise<void> {
    const { clock, onGone } = this.#options;
    const { stdin, stdout, stderr } = this.#child;
    await endOfStreams([stdout, stderr], OUTPUT_PATIENCE_MS, clock);
    this.#end();
    await this.#child.kill(0);
    for (const stream of [stdin, stdout, stderr]) stream.destroy();
    const reason = this.#verdict ?? describeEnd(end, this.#errors.lastLine);
    const outcome: Outcome = isUnknown(end) ? { kind: "preempted" } : this.#outcomeOfEnd(reason);
    for (const [id, { signal, answer }] of [...this.#inFlight])
      this.#settle(id, answer ?? (signal.aborted || this.#isClosed ? { kind: "preempted" } : outcome));
    this.#saving?.reject(new Error(`its process has ended: ${reason}`));
    onGone(this.#wasReady, reason);
  }

  #outcomeOfEnd(reason: string): Outcome {
    const blamed = [...this.#inFlight.values()].filter(({ answer }) => answer === undefined);
    if (blamed.length > 1) return { kind: "crash_shared", message: `with other items beside it: ${reason}` };
    return { kind: this.#blame, message: reason };
  }

  /** The log of the item that it has, if that is one; else it may be of any. */
  #logOf(chunk: Uint8Array): void {
    for (const { report } of this.#inFlight.values()) report({ kind: "log", chunk });
  }
}
