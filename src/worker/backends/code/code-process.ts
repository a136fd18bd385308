// One process that executes a user's code, one attempt after the other, seen from the worker.
//
// Keeps true: an attempt that was asked to end has ended soon after `abortGraceMs`, and its process with all that it started;
// what the process dies of while it executes an attempt is that attempt's doing.
import type { Duplex } from "node:stream";
import { assert } from "../../../base/assert.ts";
import type { Clock } from "../../../base/clock.ts";
import { isDoneWithin, sleep } from "../../../base/clock.ts";
import { describeError } from "../../../base/errors.ts";
import { formatDuration } from "../../../config/duration.ts";
import type { Logger } from "../../../observe/log.ts";
import { describeEnd, isUnknown } from "../../children/child-output.ts";
import type { Child, ChildEnd, Children, ChildRequest } from "../../children/child.ts";
import { AT_ONCE } from "../backend.ts";
import type { ItemAttempt, ItemReport, Learner, Outcome } from "../backend.ts";
import { startPatiently } from "../shortage.ts";
import type { Shortage } from "../shortage.ts";
import { FrameReader, frameOf } from "./code-messages.ts";
import type { FromCode, LoadMessage, ToCode } from "./code-messages.ts";

export interface CodeProcessOptions {
  readonly request: ChildRequest;
  readonly load: LoadMessage;
  readonly loadTimeoutMs: number;
  readonly abortGraceMs: number;
  readonly children: Children;
  /** The backend's. */
  readonly shortage: Shortage;
  readonly clock: Clock;
  readonly log: Logger;
}

export type CodeStart =
  /** `saves`: it can save what it has learned. */
  | { readonly kind: "ready"; readonly saves?: boolean }
  /** It will never start, for the reason that it names. */
  | { readonly kind: "unusable"; readonly reason: string }
  /** It ended, or was ended, before it had loaded the code: another one may. */
  | { readonly kind: "died"; readonly reason: string }
  /** It was closed before. */
  | { readonly kind: "closed" };

interface Running {
  readonly report: (report: ItemReport) => void;
  readonly ended: PromiseWithResolvers<Outcome>;
}

const NO_GRACE = 0;
/** How long the end of a dead process's standard error is waited for: what it started may hold it up. */
const LOG_PATIENCE_MS = 1_000;

export class CodeProcess implements Learner {
  /** Never rejects. */
  readonly started: Promise<CodeStart>;
  /** Monotonic. */
  readonly startedAtMs: number;
  readonly #options: CodeProcessOptions;
  readonly #loaded = Promise.withResolvers<CodeStart>();
  readonly #closing = new AbortController();
  #child: Child | undefined;
  readonly #errorsRead = Promise.withResolvers<undefined>();
  #running: Running | undefined;
  #hasExecuted = false;
  #saves = false;
  #saving: PromiseWithResolvers<void> | undefined;
  /** The reason of its death, in its own words. */
  #lastWords: string | undefined;
  #isAlive = true;
  #isReady = false;

  constructor(options: CodeProcessOptions) {
    this.#options = options;
    this.startedAtMs = options.clock.monotonicMs();
    this.started = this.#start();
  }

  /** False for good when it has died or has to. */
  get isAlive(): boolean {
    return this.#isAlive;
  }

  /** Whether an attempt can begin at once. */
  get isReady(): boolean {
    return this.#isReady;
  }

  /** Whether it has learned something and can save it. */
  get isLearned(): boolean {
    return this.#isAlive && this.#saves && this.#hasExecuted;
  }

  /** Once, for one that executes nothing. */
  async save(timeLeftMs: number, signal: AbortSignal): Promise<void> {
    this.#saving = Promise.withResolvers();
    signal.addEventListener("abort", () => this.#send({ kind: "abort" }), { once: true });
    this.#send({ kind: "save", timeLeftMs: Math.floor(timeLeftMs) });
    await this.#saving.promise;
  }

  /** One at a time, when it has started. */
  async execute(
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    assert(this.#running === undefined, "a process executes one attempt at a time");
    if (!this.#isAlive) return { kind: "preempted" };
    const ended = Promise.withResolvers<Outcome>();
    this.#running = { report, ended };
    this.#hasExecuted = true;
    const { itemId, payload, checkpoint, keyed, env } = attempt;
    this.#send({ kind: "execute", itemId, attempt: attempt.attempt, payload, checkpoint, keyed, env });
    let isOver: AbortController | undefined;
    const onAbort = (): void => {
      isOver = new AbortController();
      void this.#endByForce(signal.reason === AT_ONCE, isOver.signal);
    };
    if (signal.aborted) onAbort();
    else signal.addEventListener("abort", onAbort);
    try {
      const outcome = await ended.promise;
      await this.#heardOut();
      if (!signal.aborted) return outcome;
      // Anything that the code did not clean up when it was told to end goes with its process.
      await this.#kill();
      return outcome.kind === "crash" ? { kind: "preempted" } : outcome;
    } finally {
      isOver?.abort();
      signal.removeEventListener("abort", onAbort);
      this.#running = undefined;
    }
  }

  /**
   * All that the attempt has printed was read. It stood in the pipe before the answer did on the channel, so it is read in the same turn
   * of the loop.
   */
  async #heardOut(): Promise<void> {
    const { clock } = this.#options;
    if (this.#isAlive) await new Promise<void>((resolve) => clock.nextTurn(resolve));
    else await isDoneWithin(clock, LOG_PATIENCE_MS, this.#errorsRead.promise);
  }

  /** Ends it, with what it has started. Idempotent. */
  async close(graceMs: number = NO_GRACE): Promise<void> {
    this.#isAlive = false;
    this.#closing.abort();
    await this.#child?.kill(graceMs);
    await this.started;
  }

  async #start(): Promise<CodeStart> {
    const { children, request, load } = this.#options;
    const start = await startPatiently(children, request, this.#closing.signal, this.#options);
    if (start.kind === "aborted") return { kind: "closed" };
    if (start.kind === "failed") {
      this.#isAlive = false;
      return { kind: "unusable", reason: start.failure.reason };
    }
    const { child } = start;
    const { channel } = child;
    assert(channel !== undefined, "a channel was asked for");
    this.#child = child;
    // When it comes is what tells whose it is.
    for (const output of [child.stdout, child.stderr])
      output.on("data", (chunk: Buffer) => this.#running?.report({ kind: "log", chunk }));
    child.stderr.once("close", () => this.#errorsRead.resolve(undefined));
    this.#listen(channel);
    void child.exited.then((end) => this.#die(end));
    this.#send(load);
    const loaded = this.#closing.signal.aborted ? undefined : await this.#whenLoaded(child);
    this.#isReady = loaded?.kind === "ready";
    this.#saves = loaded?.kind === "ready" && loaded.saves === true;
    if (loaded?.kind === "ready") return loaded;
    this.#isAlive = false;
    await child.kill(NO_GRACE);
    return loaded === undefined || this.#closing.signal.aborted ? { kind: "closed" } : loaded;
  }

  async #whenLoaded(child: Child): Promise<CodeStart> {
    const { loadTimeoutMs, clock } = this.#options;
    const loaded = Promise.race([
      this.#loaded.promise,
      child.exited.then((end): CodeStart => ({ kind: "died", reason: this.#reasonOf(end) })),
    ]);
    if (await isDoneWithin(clock, loadTimeoutMs, loaded)) return loaded;
    return { kind: "died", reason: `it has not loaded within ${formatDuration(loadTimeoutMs)}` };
  }

  #listen(channel: Duplex): void {
    const reader = new FrameReader<FromCode>();
    channel.on("data", (chunk: Buffer) => {
      try {
        for (const message of reader.take(chunk)) this.#hear(message);
      } catch (error) {
        // Somebody else writes to its socket.
        this.#lastWords = `it sent what cannot be understood: ${describeError(error)}`;
        void this.#kill();
      }
    });
  }

  #hear(message: FromCode): void {
    switch (message.kind) {
      case "ready":
      case "unusable":
        return this.#loaded.resolve(message);
      case "checkpoint":
        return this.#running?.report(message);
      case "ended":
        return this.#running?.ended.resolve(message.outcome);
      case "saved":
        return message.failure === undefined
          ? this.#saving?.resolve()
          : this.#saving?.reject(new Error(message.failure));
      case "dying":
        this.#lastWords = message.reason;
    }
  }

  #send(message: ToCode): void {
    this.#child?.channel?.write(frameOf(message));
  }

  async #endByForce(isUrgent: boolean, isOver: AbortSignal): Promise<void> {
    this.#send({ kind: "abort" });
    if (!isUrgent) await sleep(this.#options.clock, this.#options.abortGraceMs, isOver);
    if (!isOver.aborted) await this.#kill();
  }

  async #kill(): Promise<void> {
    this.#isAlive = false;
    await this.#child?.kill(NO_GRACE);
  }

  /** The attempt that it executed has ended by it when nothing that it started is left. */
  async #die(end: ChildEnd): Promise<void> {
    this.#saving?.reject(new Error(this.#reasonOf(end)));
    await this.#kill();
    this.#running?.ended.resolve(
      isUnknown(end) ? { kind: "preempted" } : { kind: "crash", message: this.#reasonOf(end) },
    );
  }

  #reasonOf(end: ChildEnd): string {
    return this.#lastWords ?? `its process has ended: ${describeEnd(end, "")}`;
  }
}
