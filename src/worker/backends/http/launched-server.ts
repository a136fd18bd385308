// A server that the worker starts for itself: waits until it is ready, starts it again when it dies, ends it with the
// backend.
//
// Keeps true: one of it runs at a time; nothing of one that died is left when the next one starts; a server that never
// becomes ready is said to be broken once, and is not started again.
import { backoffMs } from "../../../base/random.ts";
import type { Clock } from "../../../base/clock.ts";
import { isDoneWithin, sleep, unlessAborted } from "../../../base/clock.ts";
import { describeError } from "../../../base/errors.ts";
import { findFreePort } from "../../../base/address.ts";
import type { Random, BackoffRange } from "../../../base/random.ts";
import { formatDuration } from "../../../config/duration.ts";
import { withPort } from "../../../config/http-rules.ts";
import type { HttpSpec } from "../../../config/manifest-fields.ts";
import type { Logger } from "../../../observe/log.ts";
import { ErrorOutput, describeEnd, endOfStreams } from "../../children/child-output.ts";
import type { Child, Children } from "../../children/child.ts";
import { Shortage, startPatiently } from "../shortage.ts";
import { forHowLong, isNearTimeout } from "../trouble-words.ts";
import { exchange } from "../../../transport/exchange.ts";
import { secretsOf, withoutSecrets } from "./headers.ts";
import type { Environment } from "./headers.ts";

/** Needs of a backend that asks a server, from the worker and from its manifest. */
export interface ServerSurroundings {
  readonly spec: HttpSpec;
  /** The worker's: for headers, and for a server that is launched. */
  readonly env: Environment;
  /** Where a launched server is started; absolute. */
  readonly workingDirectory: string;
  /** How long there may be no room for the process of a server that is launched; 2 min unless said. */
  readonly startTimeoutMs?: number;
  readonly children: Children;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

export interface ServerOptions extends ServerSurroundings {
  /** It may hold `{port}`, as the addresses and the variables of the manifest may. */
  readonly command: readonly string[];
  /** Texts of the headers that no error, event or log line may show; those of the server's environment are found here. */
  readonly secrets: readonly string[];
  /** One that was ready has died. */
  readonly onDied: (reason: string) => void;
  /** It cannot be started, or does not become ready. Once. */
  readonly onBroken: (reason: string) => void;
}

/** How a start ended. */
type Start =
  | { readonly kind: "ready" }
  | { readonly kind: "died"; readonly reason: string }
  | { readonly kind: "late" }
  | { readonly kind: "closed" };

interface Running {
  readonly child: Child;
  readonly errors: ErrorOutput;
  readonly url: string;
  readonly readyUrl: string;
  hasExited: boolean;
  /** How it ended, in words, when it has. */
  readonly ended: Promise<string>;
}

const READY_POLL_MS = 250;
const READY_ANSWER_MS = 5_000;
const READY_ANSWER_BYTES = 65_536;
const RESTART: BackoffRange = { baseMs: 1_000, ceilingMs: 60_000 };
/** One that died before it was ready may have met a port that was taken, or a driver that was busy. */
const DEATHS_BEFORE_READY_MAX = 3;
/** One that has worked for so long starts again without much of a wait. */
const LONG_LIFE_MS = 60_000;
/** How long what a dead server said may take to arrive. */
const LAST_WORDS_MS = 500;

export class LaunchedServer {
  readonly #options: ServerOptions;
  readonly #shortage: Shortage;
  readonly #secrets: readonly string[];
  readonly #closing = new AbortController();
  readonly #ended: Promise<void>;
  #url: string | undefined;
  /** Resolves when it is ready, and when it never will be. */
  #ready: PromiseWithResolvers<void> = Promise.withResolvers();
  #running: Running | undefined;
  /** Since when there is none that is ready. */
  #absentSinceMs: number;
  /** How the one before ended, in words. */
  #lastEnd: string | undefined;

  /** Starts it at once. */
  constructor(options: ServerOptions) {
    this.#options = options;
    this.#shortage = new Shortage(options.clock, options.startTimeoutMs);
    this.#secrets = [...options.secrets, ...secretsOf({ ...options.env, ...options.spec.env })];
    this.#absentSinceMs = options.clock.monotonicMs();
    this.#ended = this.#keepUp().catch((error: unknown) => this.#giveUp(undefined, describeError(error)));
  }

  /** Where it is; undefined while it is not ready. */
  get url(): string | undefined {
    return this.#url;
  }

  /** Undefined when it is ready, not wanted any more, or has time enough to become ready for the first time. */
  trouble(): string | undefined {
    if (this.#url !== undefined || this.#isClosing()) return undefined;
    const shortage = this.#shortage.trouble();
    if (shortage !== undefined) return shortage;
    const { clock, spec } = this.#options;
    const nowMs = clock.monotonicMs();
    const since = forHowLong(nowMs - this.#absentSinceMs);
    const end = this.#lastEnd;
    if (end !== undefined) return `starting the server again, ${since}: ${end}`;
    // That a model loads is no trouble.
    return isNearTimeout(this.#absentSinceMs, spec.readyTimeoutMs, nowMs)
      ? `starting the server, ${since}`
      : undefined;
  }

  /** Resolves when it is ready, broken or closed, or when the signal aborts. */
  whenReady(signal: AbortSignal): Promise<void> {
    return unlessAborted(signal, this.#ready.promise);
  }

  /** Ends it, and resolves when nothing of it is left. Idempotent. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#ready.resolve();
    await this.#ended;
  }

  /**
   * Kills the one at `url`, with whatever it executes, unless it is gone already. It is started again. Resolves when nothing
   * of it is left.
   */
  async kill(url: string): Promise<void> {
    const running = this.#running;
    if (running?.url === url) await running.child.kill(0);
  }

  #isClosing(): boolean {
    return this.#closing.signal.aborted;
  }

  async #keepUp(): Promise<void> {
    const { clock, random, log, onDied } = this.#options;
    const { signal } = this.#closing;
    let deathsBeforeReady = 0;
    let shortLives = 0;
    while (!this.#isClosing()) {
      const running = await this.#launch();
      if (running === undefined) return;
      const start = await this.#becomeReady(running);
      if (start.kind === "late") {
        const within = formatDuration(this.#options.spec.readyTimeoutMs);
        const { lastLine } = running.errors;
        const said = lastLine === "" ? "" : `: ${lastLine}`;
        return this.#giveUp(running, `it is not ready after ${within}${said}`);
      }
      let reason = start.kind === "died" ? start.reason : "";
      if (start.kind === "ready") {
        const readyAtMs = clock.monotonicMs();
        reason = await this.#serve(running);
        if (!this.#isClosing()) onDied(reason);
        deathsBeforeReady = 0;
        shortLives = clock.monotonicMs() - readyAtMs < LONG_LIFE_MS ? shortLives + 1 : 1;
      } else deathsBeforeReady++;
      if (deathsBeforeReady === DEATHS_BEFORE_READY_MAX)
        return this.#giveUp(running, `it ended before it was ready: ${reason}`);
      await this.#end(running);
      if (this.#isClosing()) return;
      this.#lastEnd = reason;
      log.warn("the server has ended and is started again", { reason });
      await sleep(clock, backoffMs(RESTART, Math.max(shortLives, deathsBeforeReady), random), signal);
    }
  }

  /** Undefined when that was all: it is broken, or not wanted any more. */
  async #launch(): Promise<Running | undefined> {
    const { children, command, workingDirectory: cwd, spec, clock, log } = this.#options;
    const { url } = spec;
    const port = await findFreePort();
    const withThisPort = (text: string): string => withPort(text, port);
    const readyUrl = withThisPort(spec.readyUrl ?? new URL("/health", withPort(url, port)).href);
    if (await this.#answers(readyUrl))
      return this.#giveUp(undefined, `something else answers at ${readyUrl}`);
    const request = { command: command.map(withThisPort), cwd, env: this.#environment(withThisPort) };
    const patience = { clock, log, shortage: this.#shortage };
    const start = await startPatiently(children, request, this.#closing.signal, patience);
    if (start.kind === "aborted") return undefined;
    if (start.kind === "failed") return this.#giveUp(undefined, start.failure.reason);
    return this.#attend(start.child, withThisPort(url), readyUrl);
  }

  #environment(withThisPort: (text: string) => string): Record<string, string> {
    const all = { ...this.#options.env, ...this.#options.spec.env };
    const set = Object.entries(all).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return Object.fromEntries(set.map(([name, text]) => [name, withThisPort(text)]));
  }

  #attend(child: Child, url: string, readyUrl: string): Running {
    const { clock, log } = this.#options;
    child.stdin.end();
    child.stdout.resume();
    const hide = (line: string): string => withoutSecrets(line, this.#secrets);
    const errors = new ErrorOutput(child.stderr, () => undefined, hide);
    const ended = child.exited.then(async (end) => {
      await endOfStreams([child.stderr], LAST_WORDS_MS, clock);
      return describeEnd(end, errors.lastLine);
    });
    const running: Running = { child, errors, url, readyUrl, hasExited: false, ended };
    this.#running = running;
    log.debug("the server is started", { pid: child.pid, url });
    void child.exited.then(() => (running.hasExited = true));
    return running;
  }

  async #becomeReady(running: Running): Promise<Start> {
    const { clock, spec } = this.#options;
    const { signal } = this.#closing;
    const untilMs = clock.monotonicMs() + spec.readyTimeoutMs;
    while (!signal.aborted) {
      if (await this.#answers(running.readyUrl)) {
        // Another server may have answered, and this one may have found its port taken.
        if (!running.hasExited) return { kind: "ready" };
      }
      if (running.hasExited) return { kind: "died", reason: await running.ended };
      if (clock.monotonicMs() >= untilMs) return { kind: "late" };
      await isDoneWithin(clock, READY_POLL_MS, unlessAborted(signal, running.child.exited));
    }
    return { kind: "closed" };
  }

  /** Resolves with why, when it has ended or is not wanted any more. */
  async #serve(running: Running): Promise<string> {
    this.#url = running.url;
    this.#options.log.info("the server is ready", { url: running.url });
    this.#ready.resolve();
    const { signal } = this.#closing;
    await unlessAborted(signal, running.child.exited);
    this.#url = undefined;
    if (!signal.aborted) this.#ready = Promise.withResolvers();
    this.#absentSinceMs = this.#options.clock.monotonicMs();
    return signal.aborted ? "" : running.ended;
  }

  async #answers(url: string): Promise<boolean> {
    const { clock } = this.#options;
    const end = await exchange({
      url: new URL(url),
      method: "GET",
      headers: {},
      body: undefined,
      agent: undefined,
      silenceMs: READY_ANSWER_MS,
      limitBytes: READY_ANSWER_BYTES,
      clock,
      signal: this.#closing.signal,
    });
    return end.kind === "answer" && end.status >= 200 && end.status < 300;
  }

  async #giveUp(running: Running | undefined, reason: string): Promise<undefined> {
    if (running !== undefined) await this.#end(running);
    if (this.#isClosing()) return;
    this.#closing.abort();
    this.#ready.resolve();
    this.#options.onBroken(`the server: ${reason}`);
  }

  /** Nothing of it is left. */
  async #end(running: Running): Promise<void> {
    const { killGraceMs } = this.#options.spec;
    await running.child.kill(running.hasExited ? 0 : killGraceMs);
    this.#running = undefined;
  }

  /** How the one at `url` ended, if it has or does so within `withinMs`; undefined when it lives. */
  async deathOf(url: string, withinMs: number, signal: AbortSignal): Promise<string | undefined> {
    const running = this.#running;
    if (running?.url !== url) return "it is gone";
    await isDoneWithin(this.#options.clock, withinMs, unlessAborted(signal, running.child.exited));
    return running.hasExited ? running.ended : undefined;
  }
}
