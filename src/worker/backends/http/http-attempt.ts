// One attempt: waits for its turn, asks, and asks again when that may help.
import type { Agent } from "node:http";
import { unreachable } from "../../../base/assert.ts";
import { backoffMs } from "../../../base/random.ts";
import type { Clock } from "../../../base/clock.ts";
import { sleep } from "../../../base/clock.ts";
import type { Random, BackoffRange } from "../../../base/random.ts";
import type { HttpSpec } from "../../../config/manifest-fields.ts";
import { AT_ONCE } from "../backend.ts";
import type { ItemAttempt, ItemReport, Outcome } from "../backend.ts";
import type { Exchange, ExchangeOptions } from "../../../transport/exchange.ts";
import { CompletionBody } from "./completion.ts";
import type { Gate, Passage } from "./gate.ts";
import type { Headers } from "./headers.ts";
import type { LaunchedServer } from "./launched-server.ts";
import { outputOf, refusalOf } from "./output.ts";
import type { OutputRule } from "./output.ts";
import type { ItemRequest } from "./request.ts";
import { verdictOf } from "./verdict.ts";
import type { Trouble, Verdict, TroubleLog } from "./verdict.ts";

/** Shared by all attempts of a backend. */
export interface Shared {
  readonly spec: HttpSpec;
  readonly maxOutputBytes: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly headers: Headers;
  readonly agent: Agent;
  readonly exchange: (options: ExchangeOptions) => Promise<Exchange>;
  readonly gate: Gate;
  /** The one that the worker starts for itself. */
  readonly server: LaunchedServer | undefined;
  readonly trouble: TroubleLog;
  /** Aborts when the backend is closed or broken. */
  readonly ending: AbortSignal;
  /** Whether the server, which is not the worker's own, was not there when it was last asked. */
  readonly isAway: () => boolean;
  /** The server was there. */
  readonly found: () => void;
  /** The server was not there. */
  readonly missed: (reason: string) => void;
  /** The launched server died. */
  readonly died: (reason: string) => void;
}

export interface HttpAttemptOptions {
  readonly attempt: ItemAttempt;
  readonly request: ItemRequest;
  readonly signal: AbortSignal;
  readonly report: (report: ItemReport) => void;
}

const RETRY: BackoffRange = { baseMs: 1_000, ceilingMs: 30_000 };
/** The wait of a request that the server does not want to see now, when it does not say for how long. */
const THROTTLED: BackoffRange = { baseMs: 1_000, ceilingMs: 30_000 };
/** The share by which a wait that the server asks for is spread; `SPREAD_MIN_MS` at least, where the wait is that long. */
const SPREAD = 0.1;
const SPREAD_MIN_MS = 500;
/** A request that was silent for the whole of its time once is given one more chance, and not five. */
const STALLS_MAX = 2;
/**
 * An item does not wait longer than this for a server that is away: other workers may have one. One that the worker has
 * launched comes back, or is said to be broken.
 */
const PATIENCE_MS = 60_000;
/** By how much the end of a connection may be known before the end of the process that held it. */
const DEATH_NEWS_MS = 1_000;
/** No more is read of an answer that holds the output as one of its parts. */
const READ_MAX_BYTES = 16 * 1_024 * 1_024;
const PREEMPTED: Outcome = { kind: "preempted" };

interface Admission {
  readonly passage: Passage;
  readonly url: string;
}

export class HttpAttempt {
  readonly #shared: Shared;
  readonly #options: HttpAttemptOptions;
  readonly #controller = new AbortController();
  readonly #rule: OutputRule;
  #isUnderWay = false;
  #hasBegun = false;
  #death: Outcome | undefined;
  #tries = 0;
  #stalls = 0;
  /** The trouble of the last try. */
  #trouble: Trouble | undefined;
  /** How often it was throttled in a row. */
  #refusals = 0;
  /** How long the server does not want to see this request. */
  #restMs = 0;
  /** It was said that it waits, and not yet that it executes again. */
  #isWaiting = false;
  /** Since when every try has found that nobody is there. */
  #awaySinceMs: number | undefined;

  constructor(shared: Shared, options: HttpAttemptOptions) {
    this.#shared = shared;
    this.#options = options;
    const { spec, maxOutputBytes } = shared;
    const { isBatch } = options.request;
    this.#rule = { output: spec.output, isBatch, maxOutputBytes, secrets: shared.headers.secrets };
  }

  /** Whether the server has it in its hands, or had until a moment ago. */
  get isUnderWay(): boolean {
    return this.#isUnderWay;
  }

  /** The launched server died while it had this. `wasShared`: and others. */
  serverDied(reason: string, wasShared: boolean): void {
    const message = `the server died while it answered: ${reason}`;
    this.#death ??= wasShared ? { kind: "crash_shared", message } : { kind: "crash", message };
    this.#controller.abort();
  }

  async run(): Promise<Outcome> {
    const abort = (): void => this.#controller.abort();
    const signals = [this.#options.signal, this.#shared.ending];
    for (const signal of signals) {
      if (signal.aborted) abort();
      signal.addEventListener("abort", abort);
    }
    try {
      return await this.#tryUntilSettled();
    } finally {
      for (const signal of signals) signal.removeEventListener("abort", abort);
    }
  }

  async #tryUntilSettled(): Promise<Outcome> {
    for (let needsNew = false; ;) {
      const admission = await this.#admit();
      if (admission === undefined) return PREEMPTED;
      if (!this.#begin()) {
        this.#shared.gate.leave();
        return PREEMPTED;
      }
      const verdict = await this.#ask(admission, needsNew);
      needsNew = verdict.kind === "stale";
      if (verdict.kind === "stale") continue;
      if (this.#death !== undefined) return this.#options.signal.aborted ? PREEMPTED : this.#death;
      if (verdict.kind !== "trouble") return this.#settle(verdict);
      const outcome = this.#giveUpAfter(verdict.trouble);
      if (outcome !== undefined) return outcome;
      await this.#waitAfter(verdict.trouble);
    }
  }

  /** Whether the server may be asked. An attempt that it has taken once has begun; one that it did nothing for has not. */
  #begin(): boolean {
    if (this.#trouble !== undefined && isNobodys(this.#trouble)) this.#hasBegun = false;
    this.#hasBegun ||= this.#options.attempt.mayBegin?.() !== false;
    return this.#hasBegun;
  }

  /**
   * Undefined when it is not to be asked: it is not wanted any more, or nobody is there. The wait is not the item's time,
   * unless it follows upon a request that was.
   */
  async #admit(): Promise<Admission | undefined> {
    const { gate, server, isAway, clock } = this.#shared;
    const { signal } = this.#controller;
    const mustWait = !gate.isOpen || (server !== undefined && server.url === undefined);
    if (mustWait && (this.#trouble === undefined || isNobodys(this.#trouble))) this.#wait();
    const patience = new AbortController();
    const giveUp = (): void => patience.abort();
    const look = (): void => (isAway() ? giveUp() : void (timer = clock.after(PATIENCE_MS, look)));
    const spentMs = this.#awaySinceMs === undefined ? 0 : clock.monotonicMs() - this.#awaySinceMs;
    let timer = clock.after(PATIENCE_MS - spentMs, look);
    signal.addEventListener("abort", giveUp);
    if (signal.aborted) giveUp();
    try {
      const admission = await this.#pass(patience.signal);
      if (admission !== undefined) this.#goOn();
      return admission;
    } finally {
      timer.cancel();
      signal.removeEventListener("abort", giveUp);
    }
  }

  #wait(): void {
    if (!this.#isWaiting) this.#options.report({ kind: "waiting" });
    this.#isWaiting = true;
  }

  #goOn(): void {
    if (this.#isWaiting) this.#options.report({ kind: "executing" });
    this.#isWaiting = false;
  }

  async #pass(signal: AbortSignal): Promise<Admission | undefined> {
    const { gate, server, spec } = this.#shared;
    for (;;) {
      await server?.whenReady(signal);
      const passage = await gate.enter(signal);
      if (passage === undefined) return undefined;
      const url = server === undefined ? spec.url : server.url;
      if (url !== undefined) return { passage, url };
      gate.leave();
    }
  }

  async #ask({ passage, url }: Admission, needsNew: boolean): Promise<Verdict> {
    const { gate, server, clock } = this.#shared;
    this.#isUnderWay = true;
    try {
      const end = await this.#exchange(url, needsNew);
      // The end of a connection says nothing of whether the server goes on with what it was asked.
      if (this.#options.signal.reason === AT_ONCE) await server?.kill(url);
      const verdict = verdictOf(end, clock.wallMs());
      const isGone = verdict.kind === "trouble" && ["absent", "died"].includes(verdict.trouble.kind);
      const { signal } = this.#controller;
      const death = isGone ? await server?.deathOf(url, DEATH_NEWS_MS, signal) : undefined;
      if (death !== undefined) this.#shared.died(death);
      // Its end is told by the one that keeps it up.
      if (this.#death === undefined) this.#note(verdict, passage);
      return verdict;
    } finally {
      this.#isUnderWay = false;
      gate.leave();
    }
  }

  #exchange(url: string, needsNew: boolean): Promise<Exchange> {
    const { spec, clock, maxOutputBytes, headers, agent, exchange } = this.#shared;
    const { method, path, body, contentType, isBatch, asksForStream } = this.#options.request;
    const isWhole = isBatch || spec.output === "body";
    const type = body === undefined ? {} : { "content-type": contentType };
    return exchange({
      url: urlOf(url, path),
      method,
      headers: { "user-agent": "rollout", accept: "*/*", ...type, ...headers.fields },
      body,
      agent: needsNew ? undefined : agent,
      silenceMs: spec.timeoutMs,
      limitBytes: isWhole ? maxOutputBytes : Math.max(maxOutputBytes, READ_MAX_BYTES),
      assemble: asksForStream ? (limitBytes) => new CompletionBody(limitBytes) : undefined,
      clock,
      signal: this.#controller.signal,
    });
  }

  /** Lets the others learn of it. */
  #note(verdict: Verdict, passage: Passage): void {
    const { gate, trouble, found, missed } = this.#shared;
    if (verdict.kind === "aborted" || verdict.kind === "stale") return;
    if (verdict.kind !== "trouble") {
      found();
      gate.succeeded(passage);
      return trouble.over(gate.isThrottled);
    }
    const { kind, reason } = verdict.trouble;
    trouble.report(kind, reason);
    if (kind === "absent") missed(reason);
    else found();
    this.#refusals = kind === "throttled" ? this.#refusals + 1 : 0;
    if (kind === "absent") gate.pause(passage, verdict.trouble.pauseMs);
    if (kind === "throttled") gate.refused(passage, this.#restAfter(verdict.trouble.pauseMs));
  }

  /** The server speaks of this request alone: others it may answer. */
  #restAfter(askedMs: number | undefined): number {
    const { random } = this.#shared;
    const forMs = askedMs ?? backoffMs(THROTTLED, this.#refusals, random);
    // Requests that were refused together are told the same, and do not come back together.
    const spreadMs = askedMs === undefined ? 0 : Math.max(SPREAD * forMs, Math.min(SPREAD_MIN_MS, forMs));
    this.#restMs = forMs + spreadMs * random.unit();
    return forMs;
  }

  #settle(verdict: Exclude<Verdict, { kind: "trouble" | "stale" }>): Outcome {
    switch (verdict.kind) {
      case "answered":
        return outputOf(verdict.answer, this.#rule);
      case "refused":
        return refusalOf(verdict.answer, this.#rule);
      case "too_large":
        return verdict;
      case "aborted":
        return PREEMPTED;
      default:
        return unreachable(verdict, "verdict");
    }
  }

  /** Undefined: another try is due. */
  #giveUpAfter(trouble: Trouble): Outcome | undefined {
    const { clock, spec } = this.#shared;
    const { maxTries } = spec;
    const before = this.#trouble;
    this.#trouble = trouble;
    this.#tries++;
    if (trouble.kind === "stalled") this.#stalls++;
    this.#awaySinceMs = trouble.kind === "absent" ? (this.#awaySinceMs ?? clock.monotonicMs()) : undefined;
    const line = `try ${this.#tries} of ${maxTries}: ${trouble.reason}\n`;
    this.#options.report({ kind: "log", chunk: Buffer.from(line) });
    // It was cut off, and now nobody is there: it went down with this request in its hands.
    if (before?.kind === "died" && trouble.kind === "absent") return this.#outcomeOf(before);
    const isLast = this.#tries >= maxTries || this.#stalls >= STALLS_MAX;
    return isLast ? this.#outcomeOf(trouble) : undefined;
  }

  #outcomeOf(trouble: Trouble): Outcome {
    switch (trouble.kind) {
      case "throttled":
      case "absent":
        return PREEMPTED;
      case "died": {
        const { alone } = this.#options.attempt;
        const message = `the server broke off: ${trouble.reason}`;
        // Whom else it served is not known, unless nobody had anything to be served.
        return alone ? { kind: "crash", message } : { kind: "crash_shared", message };
      }
      case "stalled":
        return { kind: "timeout", message: trouble.reason };
      case "failed":
        return trouble.answer === undefined
          ? { kind: "error", message: trouble.reason }
          : refusalOf(trouble.answer, this.#rule);
      default:
        return unreachable(trouble, "trouble");
    }
  }

  /** Where all have to wait, the gate sees to it. */
  async #waitAfter(trouble: Trouble): Promise<void> {
    const { clock, random } = this.#shared;
    const { signal } = this.#controller;
    if (trouble.kind === "absent") return;
    if (trouble.kind !== "throttled") return sleep(clock, backoffMs(RETRY, this.#tries, random), signal);
    this.#wait();
    await sleep(clock, this.#restMs, signal);
  }
}

/** The server has done nothing for the item, and does not want to for now. */
function isNobodys({ kind }: Trouble): boolean {
  return kind === "throttled" || kind === "absent";
}

/** The path on the server of `base`, with the queries of both. */
function urlOf(base: string, path: string): URL {
  const { origin, search } = new URL(base);
  // Not resolved against the origin: a path that begins with two slashes would be another host's.
  const url = new URL(origin + path);
  if (search !== "") url.search = url.search === "" ? search : `${url.search}&${search.slice(1)}`;
  return url;
}
