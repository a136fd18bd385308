// Executes items by asking a server: one that is there, or one that the worker starts for itself. Each attempt is an
// http-attempt.ts; here is everything that all of them share.
//
// Keeps true: no more requests are under way than may be; once it is closed or broken, nothing is asked any more.
import { Agent as HttpAgent } from "node:http";
import type { Agent } from "node:http";
import { Agent as HttpsAgent } from "node:https";
import { redactSecrets } from "../../../base/safe-text.ts";
import { formatDuration } from "../../../config/duration.ts";
import { pathOfUrl } from "../../../config/http-rules.ts";
import type { Backend, ItemAttempt, ItemReport, Outcome } from "../backend.ts";
import { forHowLong } from "../trouble-words.ts";
import { exchange } from "../../../transport/exchange.ts";
import type { Exchange, ExchangeOptions } from "../../../transport/exchange.ts";
import { Gate } from "./gate.ts";
import { fillHeaders, withoutSecrets } from "./headers.ts";
import type { Headers } from "./headers.ts";
import { HttpAttempt } from "./http-attempt.ts";
import type { Shared } from "./http-attempt.ts";
import { LaunchedServer } from "./launched-server.ts";
import type { ServerSurroundings } from "./launched-server.ts";
import { requestOf } from "./request.ts";
import { TroubleLog } from "./verdict.ts";
import type { KnownTrouble } from "./verdict.ts";

export interface HttpBackendOptions extends ServerSurroundings {
  /** How many requests are under way at once, unless the manifest says it. */
  readonly slots: number;
  readonly maxOutputBytes: number;
  /** Sends a request; over the network unless said. */
  readonly exchange?: (options: ExchangeOptions) => Promise<Exchange>;
  /** Called once, and only while there are items: none can be executed, by no fault of theirs. */
  readonly onBroken: (reason: string) => void;
}

const TROUBLE_WORDS: { readonly [Kind in KnownTrouble["kind"]]: (server: string) => string } = {
  absent: (server) => `waiting for ${server}`,
  throttled: (server) => `${server} asks for a pause`,
  died: (server) => `${server} broke off`,
  failed: (server) => `${server} fails`,
  stalled: (server) => `${server} is silent`,
};

export class HttpBackend implements Backend {
  readonly #options: HttpBackendOptions;
  readonly #basePath: string;
  readonly #shared: Shared;
  readonly #ending = new AbortController();
  readonly #running = new Set<HttpAttempt>();
  readonly #agent: Agent;
  readonly #server: LaunchedServer | undefined;
  #awaySinceMs: number | undefined;
  /** The reason why it is broken; undefined while it is not. */
  #obstacle: string | undefined;
  #isTold = false;
  #isPreparing = false;
  #hasExecuted = false;

  constructor(options: HttpBackendOptions) {
    const { spec, slots, maxOutputBytes, env, clock, random, log } = options;
    this.#options = options;
    this.#basePath = pathOfUrl(spec.url);
    const concurrency = spec.concurrency ?? slots;
    const settings = { keepAlive: true, maxFreeSockets: concurrency };
    this.#agent = spec.url.startsWith("https:") ? new HttpsAgent(settings) : new HttpAgent(settings);
    const filled = fillHeaders(spec.headers, env);
    if (filled.kind === "refused") this.#break(filled.reason);
    else if (spec.launch !== undefined) {
      const told = {
        onDied: (reason: string): void => this.#died(reason),
        onBroken: (reason: string): void => this.#break(reason),
      };
      const { secrets } = filled.headers;
      this.#server = new LaunchedServer({ ...options, command: spec.launch, secrets, ...told });
    }
    const headers: Headers = filled.kind === "filled" ? filled.headers : { fields: {}, secrets: [] };
    this.#shared = {
      spec,
      maxOutputBytes,
      clock,
      random,
      headers,
      agent: this.#agent,
      exchange: options.exchange ?? exchange,
      gate: new Gate({ concurrency, clock, random }),
      server: this.#server,
      trouble: new TroubleLog(log, clock),
      ending: this.#ending.signal,
      isAway: () => this.#server === undefined && this.#awaySinceMs !== undefined,
      found: () => (this.#awaySinceMs = undefined),
      missed: (reason) => this.#missed(reason),
      died: (reason) => this.#died(reason),
    };
  }

  /**
   * Waits until a server that it launches is ready. Undefined when items can be executed; else why not, of which `onBroken`
   * is not told, unless there are items.
   */
  async prepare(): Promise<string | undefined> {
    this.#isPreparing = true;
    await this.#server?.whenReady(this.#ending.signal);
    this.#isPreparing = false;
    return this.#obstacle;
  }

  async execute(
    attempt: ItemAttempt,
    signal: AbortSignal,
    report: (report: ItemReport) => void,
  ): Promise<Outcome> {
    this.#hasExecuted = true;
    if (this.#obstacle !== undefined) {
      this.#tell(this.#obstacle);
      return { kind: "preempted" };
    }
    const made = requestOf(this.#options.spec, this.#basePath, attempt.payload);
    if (made.kind === "refused")
      return { kind: "error", message: `the item cannot be sent: ${made.reason}`, isPermanent: true };
    const running = new HttpAttempt(this.#shared, { attempt, request: made.request, signal, report });
    this.#running.add(running);
    try {
      return await running.run();
    } finally {
      this.#running.delete(running);
    }
  }

  /** A server that the worker has not launched is in trouble only while items wait for it: otherwise nobody knows whether that is over. */
  trouble(): string | undefined {
    const { trouble, headers } = this.#shared;
    const { known } = trouble;
    const ofServer = known === undefined || this.#running.size === 0 ? undefined : this.#wordsOf(known);
    const words = this.#server?.trouble() ?? ofServer;
    return words === undefined ? undefined : withoutSecrets(words, headers.secrets);
  }

  async close(): Promise<void> {
    this.#ending.abort();
    this.#agent.destroy();
    await this.#server?.close();
  }

  #wordsOf({ kind, reason, sinceMs }: KnownTrouble): string {
    const { clock, spec } = this.#options;
    const url = this.#server === undefined ? spec.url : this.#server.url;
    // Scheme and host alone: a query may hold secrets.
    const server = url === undefined ? "the server" : `the server at ${new URL(url).origin}`;
    const what = `${TROUBLE_WORDS[kind](server)}: ${reason}`;
    return `${what}, ${forHowLong(clock.monotonicMs() - sinceMs)}`;
  }

  /** The launched server died under all that is under way. Idempotent for each of them. */
  #died(reason: string): void {
    const underWay = [...this.#running].filter((one) => one.isUnderWay);
    for (const one of underWay) one.serverDied(reason, underWay.length > 1);
  }

  #missed(reason: string): void {
    const { clock, spec } = this.#options;
    const nowMs = clock.monotonicMs();
    this.#awaySinceMs ??= nowMs;
    if (nowMs - this.#awaySinceMs < spec.readyTimeoutMs) return;
    this.#break(
      `the server at ${redactSecrets(spec.url)} cannot be used for ${formatDuration(spec.readyTimeoutMs)}: ${reason}`,
    );
  }

  #break(reason: string): void {
    if (this.#ending.signal.aborted) return;
    this.#obstacle = reason;
    this.#ending.abort();
    if (!this.#isPreparing && this.#hasExecuted) this.#tell(reason);
  }

  #tell(reason: string): void {
    if (this.#isTold) return;
    this.#isTold = true;
    this.#options.clock.nextTurn(() => this.#options.onBroken(reason));
  }
}
