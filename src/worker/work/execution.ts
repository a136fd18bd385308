// One attempt that runs: whether it is still wanted, what it has reported so far, and what its end means in the light of that.
//
// Keeps true: what a backend says of an attempt that was killed is not held against the item; a success always is one.
import { hash } from "node:crypto";
import { execution } from "../../../machines/execution.ts";
import type { ExecutionEvent } from "../../../machines/execution.ts";
import { assert, unreachable } from "../../base/assert.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import { formatDuration } from "../../config/duration.ts";
import { LIMITS } from "../../config/limits.ts";
import type { Logger } from "../../observe/log.ts";
import { compile } from "../../runtime/compile.ts";
import type { Effect } from "../../runtime/compile.ts";
import type { ChartStep } from "../../runtime/driver.ts";
import { AT_ONCE } from "../backends/backend.ts";
import type { ItemReport, Outcome } from "../backends/backend.ts";
import type { TakenPlugin } from "../backends/versions.ts";
import type { Assigned } from "./backlog.ts";
import { LogTail } from "./log-tail.ts";
import { readMeasures } from "./measures.ts";
import type { Measure } from "./measures.ts";

/** `fenced`: it was killed because the coordinator may have given it to another worker. */
export type Ending =
  | Exclude<Outcome, { readonly kind: "preempted" }>
  | { readonly kind: "preempted" | "fenced" };

type Success = Extract<Outcome, { readonly kind: "success" }>;

export interface Finished {
  readonly assigned: Assigned;
  readonly outcome: Ending;
  /** The next attempt goes on from it, if there is one; empty when there is nothing. */
  readonly checkpoint: Uint8Array;
  /** SHA-256 of the output of a success; empty for any other end. */
  readonly outputDigest: Uint8Array;
  readonly pluginVersion: string;
  /** The version of the plugin's states; undefined where these have none. */
  readonly stateVersion?: number | undefined;
  /** On the wall clock: for people. */
  readonly startedAtMs: number;
  readonly durationMs: number;
  /** The end of its standard error. */
  readonly log: Uint8Array;
  /** Numbers in the output of a success, one for each that was asked for; undefined when none was. */
  readonly measures?: readonly Measure[] | undefined;
}

/** The end of an attempt that was not begun: the state that its assignment left out is not here. */
export interface NotBegun extends Omit<Finished, "outcome"> {
  readonly outcome: { readonly kind: "state_missing" };
}

export function notBegun(assigned: Assigned, nowWallMs: number): NotBegun {
  return {
    assigned,
    outcome: { kind: "state_missing" },
    checkpoint: NO_BYTES,
    outputDigest: NO_BYTES,
    pluginVersion: "",
    startedAtMs: nowWallMs,
    durationMs: 0,
    log: NO_BYTES,
  };
}

export interface ExecutionOptions {
  readonly maxOutputBytes: number;
  readonly maxCheckpointBytes: number;
  readonly maxStateBytes: number;
  readonly clock: Clock;
  readonly log: Logger;
  /** Asked at the moment at which an attempt begins, which may be long after its start; it may, unless said. */
  readonly mayBegin?: () => boolean;
  /** Told of each step. */
  readonly onStep?: ((step: ChartStep) => void) | undefined;
  /** Called when an attempt has another checkpoint than before. */
  readonly onCheckpoint?: (execution: Saved) => void;
}

/** A running attempt, and the checkpoint that the next one would go on from. */
export interface Saved {
  readonly assigned: Assigned;
  /** Empty when there is nothing. */
  readonly checkpoint: Uint8Array;
  /** When it began, monotonic. */
  readonly startedMs: number;
}

const chart = compile(execution);

/** Beyond it the message of an error is cut. */
const MESSAGE_MAX_CHARACTERS = 8_192;
const NO_BYTES = new Uint8Array(0);

export class Execution implements Saved {
  readonly assigned: Assigned;
  readonly plugin: TakenPlugin;
  readonly #options: ExecutionOptions;
  readonly #onExpired: () => void;
  readonly #controller = new AbortController();
  #startedAtMs: number;
  #startedMs: number;
  #row = chart.initial({});
  #checkpoint: Uint8Array;
  #log: LogTail | undefined;
  #timer: Timer | undefined;
  /** How long it may take, once that has been decided; 0 is for ever. */
  #timeoutMs = 0;

  /** It starts now. `onExpired`: it has taken longer than it may, and was told to end. */
  constructor(assigned: Assigned, plugin: TakenPlugin, options: ExecutionOptions, onExpired: () => void) {
    this.assigned = assigned;
    this.plugin = plugin;
    this.#options = options;
    this.#onExpired = onExpired;
    this.#checkpoint = assigned.checkpoint;
    this.#startedAtMs = options.clock.wallMs();
    this.#startedMs = options.clock.monotonicMs();
    this.#limitTime();
    this.#say("xstate.init", "", this.#state);
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  get checkpoint(): Uint8Array {
    return this.#checkpoint;
  }

  get startedMs(): number {
    return this.#startedMs;
  }

  get isDropped(): boolean {
    return this.#is("Unwanted");
  }

  /** It was not let begin, so it has not started. */
  get isWithheld(): boolean {
    return this.#is("Withheld");
  }

  /** Whether what executes it may begin with it now. False for good when it has been false. */
  mayBegin(): boolean {
    if (!this.#is("Executing") && !this.#is("Waiting")) return false;
    const may = this.#options.mayBegin?.() !== false;
    if (!may) this.#step({ type: "execution.withheld" });
    return may;
  }

  readonly report = (news: ItemReport): void => {
    switch (news.kind) {
      case "checkpoint":
        return this.#keepCheckpoint(news.checkpoint);
      case "log":
        return (this.#log ??= new LogTail()).push(news.chunk);
      case "waiting":
        return void this.#step({ type: "execution.waits" });
      case "executing":
        return void this.#step({ type: "execution.begins" });
      default:
        return unreachable(news, "report");
    }
  };

  /** Calls back then, in place of what it was to call before, unless it has ended by then. */
  after(delayMs: number, callback: () => void): void {
    this.#timer?.cancel();
    this.#timer = this.#options.clock.after(delayMs, callback, { background: true });
  }

  /** Its result is not wanted. True when it is told to end by this. */
  drop(): boolean {
    return this.#step({ type: "result.unwanted" });
  }

  /** It may be running elsewhere soon. True when it is told to end by this. */
  fence(): boolean {
    return this.#step({ type: "worker.fenced" });
  }

  /** Its worker goes. */
  abandon(): void {
    this.#step({ type: "worker.leaves" });
  }

  /** The backend has done with it. Once. */
  end(): void {
    this.#timer?.cancel();
    this.plugin.release();
    this.#say("xstate.stop", this.#state, "");
  }

  /** Its result; undefined when nobody wants to know. */
  finish(outcome: Outcome): Finished | undefined {
    if (this.isDropped) return undefined;
    const { assigned } = this;
    const isSuccess = outcome.kind === "success" && this.#isTaken(outcome);
    if (outcome.kind === "preempted" && outcome.checkpoint !== undefined)
      this.#keepCheckpoint(outcome.checkpoint);
    return {
      assigned,
      outcome: isSuccess ? outcome : this.#endingOf(outcome),
      checkpoint: isSuccess ? NO_BYTES : this.#checkpoint,
      outputDigest: isSuccess ? hash("sha256", outcome.output, "buffer") : NO_BYTES,
      pluginVersion: this.plugin.version,
      stateVersion: this.plugin.stateVersion,
      startedAtMs: this.#startedAtMs,
      durationMs: this.#options.clock.monotonicMs() - this.#startedMs,
      log: this.#log?.bytes() ?? NO_BYTES,
      measures: isSuccess && assigned.pointers ? readMeasures(outcome.output, assigned.pointers) : undefined,
    };
  }

  /** False when the chart ignores the event where it is. */
  #step(event: ExecutionEvent): boolean {
    const asked: Effect[] = [];
    const before = this.#row;
    this.#row = chart.step(before, event, asked);
    if (this.#row !== before) this.#say(event.type, chart.nameOf(before), this.#state);
    for (const { type } of asked) this.#carryOut(type);
    return this.#row !== before;
  }

  #carryOut(effect: string): void {
    switch (effect) {
      case "startClock": {
        const { clock } = this.#options;
        this.#startedAtMs = clock.wallMs();
        this.#startedMs = clock.monotonicMs();
        return this.#limitTime();
      }
      case "stopClock":
        return this.#timer?.cancel();
      case "end":
        return this.#controller.abort();
      case "endAtOnce":
        return this.#controller.abort(AT_ONCE);
      case "announceExpired":
        return this.#onExpired();
      default:
        return assert(false, `nothing carries out ${effect}`);
    }
  }

  #is(state: string): boolean {
    return this.#state === state;
  }

  get #state(): string {
    return chart.nameOf(this.#row);
  }

  /** Its context is empty. */
  #say(event: string, from: string, to: string): void {
    const { onStep } = this.#options;
    if (onStep === undefined) return;
    const { itemId, attempt } = this.assigned;
    const address = `execution/${Buffer.from(itemId).toString("hex")}/${attempt}`;
    onStep({ chart: execution.id, address, event, from, to, context: {} });
  }

  #limitTime(): void {
    this.#timeoutMs = this.assigned.timeoutMs || (this.plugin.itemTimeoutMs ?? 0);
    if (this.#timeoutMs > 0) this.after(this.#timeoutMs, () => void this.#step({ type: "time.over" }));
  }

  /** Whether it is one that may be recorded. */
  #isTaken({ output, state }: Success): boolean {
    const { maxOutputBytes, maxStateBytes } = this.#options;
    if (output.length > maxOutputBytes) return false;
    if (state === undefined) return true;
    return this.assigned.keyed !== undefined && (state === "removed" || state.length <= maxStateBytes);
  }

  #endingOf(outcome: Outcome): Ending {
    if (outcome.kind === "success" || outcome.kind === "too_large") return this.#notTaken(outcome);
    // It was killed: how it died of that says nothing of the item.
    if (this.#is("Expired"))
      return { kind: "timeout", message: `took longer than ${formatDuration(this.#timeoutMs)}` };
    if (this.#is("Fenced")) return { kind: "fenced" };
    if (outcome.kind === "preempted" || this.#is("Abandoned") || this.#is("Withheld"))
      return { kind: "preempted" };
    const ending = { kind: outcome.kind, message: cut(outcome.message) };
    if (outcome.kind !== "error") return ending;
    const { response, isPermanent = false, sparesKey = false } = outcome;
    // Half of it would be no JSON.
    const isKept = response !== undefined && response.length <= LIMITS.responseBytes;
    const said = { ...(isPermanent && { isPermanent }), ...(sparesKey && { sparesKey }) };
    return { ...ending, kind: "error", ...said, ...(isKept && { response }) };
  }

  #notTaken(outcome: Success | (Outcome & { readonly kind: "too_large" })): Exclude<Ending, Success> {
    const { maxOutputBytes, maxStateBytes } = this.#options;
    const limit = `the limit is ${maxOutputBytes} (limits.output of the worker)`;
    if (outcome.kind === "success" && outcome.output.length > maxOutputBytes)
      return { kind: "too_large", message: `the output is ${outcome.output.length} bytes; ${limit}` };
    if (outcome.kind === "success" && this.assigned.keyed === undefined)
      return {
        kind: "error",
        message: "it left a state, but the item has no key: submit it with --key-field",
      };
    if (outcome.kind === "success")
      return {
        kind: "too_large",
        message: `the state is over the limit of ${maxStateBytes} bytes (limits.state of the worker)`,
      };
    return { kind: "too_large", message: cut(outcome.message ?? `the output is larger; ${limit}`) };
  }

  #keepCheckpoint(checkpoint: Uint8Array): void {
    const { maxCheckpointBytes, log, onCheckpoint } = this.#options;
    if (checkpoint.length > maxCheckpointBytes)
      return log.warn("a checkpoint over the limit was left out", {
        bytes: checkpoint.length,
        limit: maxCheckpointBytes,
      });
    if (Buffer.compare(checkpoint, this.#checkpoint) === 0) return;
    this.#checkpoint = checkpoint;
    onCheckpoint?.(this);
  }
}

function cut(message: string): string {
  return message.slice(0, MESSAGE_MAX_CHARACTERS).toWellFormed();
}
