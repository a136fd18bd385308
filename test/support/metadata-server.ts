// Metadata servers on loopback that speak as those of the clouds do, and misbehave as those do on a bad day. For tests, and
// for whole processes that are to be preempted by a cloud that is not there.
//
// Keeps true: nothing happens by itself. Methods say which answers are served, and when they stop being good.
import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { systemClock } from "../../src/base/clock.ts";
import type { Clock, Timer } from "../../src/base/clock.ts";
import { freePort } from "./listeners.ts";

/** A way of misbehaving. */
export type Fault =
  /** The connection is taken, and nothing ever comes. */
  | { readonly kind: "hang" }
  /** The right answer, late. */
  | { readonly kind: "slow"; readonly delayMs: number }
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "redirect"; readonly location: string }
  /** The connection ends before the answer. */
  | { readonly kind: "cut" }
  /** The connection ends in the middle of the answer. */
  | { readonly kind: "truncate" }
  /** An answer that does not end. */
  | { readonly kind: "flood" }
  /** `200` with this body, and with nothing else that the cloud would say. */
  | { readonly kind: "body"; readonly body: string };

export interface AskedRequest {
  readonly method: string;
  /** With the query. */
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
}

export interface MetadataServerOptions {
  /** Tokens expire, waits end and notices are dated on it. */
  readonly clock?: Clock;
  /** How far the server's wall clock is ahead of the one of `clock`. */
  readonly aheadMs?: number;
  readonly port?: number;
}

type Headers = Readonly<Record<string, string>>;

interface ActiveFault {
  readonly fault: Fault;
  /** Requests that it has yet to spoil. */
  left: number;
}

abstract class MetadataServer {
  /** Everything that was asked, in order. */
  readonly requests: AskedRequest[] = [];
  /** With what was answered, in the order of the answers. */
  readonly statuses: number[] = [];
  protected readonly clock: Clock;
  readonly #aheadMs: number;
  readonly #port: number | undefined;
  readonly #server: Server;
  readonly #timers = new Set<Timer>();
  #faults: ActiveFault[] = [];
  #onAsked: { count: number; resolve: () => void }[] = [];

  protected constructor({ clock = systemClock, aheadMs = 0, port }: MetadataServerOptions) {
    this.clock = clock;
    this.#aheadMs = aheadMs;
    this.#port = port;
    this.#server = createServer((request, response) => this.#serve(request, response));
    // A blocked request may last longer than Node would have it.
    this.#server.requestTimeout = 0;
  }

  protected async listen(): Promise<this> {
    const port = this.#port ?? (await freePort());
    await new Promise<void>((resolve, reject) => {
      this.#server.once("error", reject).listen(port, "127.0.0.1", resolve);
    });
    return this;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  /** `http://127.0.0.1:port` */
  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Spoils the next `times` requests, after those that are to be spoilt already; all there are until `heal` by default. */
  misbehave(fault: Fault, times = Number.POSITIVE_INFINITY): void {
    this.#faults.push({ fault, left: times });
  }

  /** Answers well again. Requests that hang go on hanging. */
  heal(): void {
    this.#faults = [];
  }

  /** Resolves when `count` requests have come in all. */
  asked(count: number): Promise<void> {
    if (this.requests.length >= count) return Promise.resolve();
    return new Promise((resolve) => void this.#onAsked.push({ count, resolve }));
  }

  /** Ends every connection, answered or not. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      this.#server.closeAllConnections();
    });
  }

  /** The cloud's own answer. */
  protected abstract answer(request: AskedRequest, response: ServerResponse): void;

  protected reply(response: ServerResponse, status: number, body = "", headers: Headers = {}): void {
    this.statuses.push(status);
    response.writeHead(status, { "content-type": "text/plain", date: this.#dateHeader(), ...headers });
    response.end(body);
  }

  protected later(delayMs: number, callback: () => void): Timer {
    const timer = this.clock.after(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
    return timer;
  }

  /** The server's own wall clock. */
  protected get nowMs(): number {
    return this.clock.wallMs() + this.#aheadMs;
  }

  #dateHeader(): string {
    return new Date(this.nowMs).toUTCString();
  }

  #serve(incoming: IncomingMessage, response: ServerResponse): void {
    incoming.resume();
    const { method = "", url: path = "", headers } = incoming;
    const request = { method, path, headers };
    this.requests.push(request);
    const fault = this.#nextFault();
    if (fault === undefined) this.answer(request, response);
    else this.#spoil(fault, request, response);
    this.#onAsked = this.#onAsked.filter(({ count, resolve }) => {
      if (this.requests.length >= count) resolve();
      return this.requests.length < count;
    });
  }

  #nextFault(): Fault | undefined {
    const [active] = this.#faults;
    if (active === undefined) return undefined;
    active.left--;
    if (active.left <= 0) this.#faults.shift();
    return active.fault;
  }

  #spoil(fault: Fault, request: AskedRequest, response: ServerResponse): void {
    switch (fault.kind) {
      case "hang":
        return;
      case "slow":
        return void this.later(fault.delayMs, () => this.answer(request, response));
      case "status":
        return this.reply(response, fault.status, "not now");
      case "redirect":
        return this.reply(response, 302, "", { location: fault.location });
      case "cut":
        return void response.destroy();
      case "truncate":
        response.writeHead(200, { "content-length": "100" });
        return void response.write("TRUE", () => response.destroy());
      case "flood":
        return flood(response);
      case "body":
        response.sendDate = false;
        response.writeHead(200);
        return void response.end(fault.body);
    }
  }
}

function flood(response: ServerResponse): void {
  const more = (): void => {
    if (!response.destroyed) response.write("x".repeat(4_096), more);
  };
  response.writeHead(200);
  more();
}

/** How EC2 announces an interruption. */
export interface AwsNotice {
  /** Until the interruption; 120 s by default. */
  readonly leadMs?: number;
  readonly action?: "terminate" | "stop" | "hibernate";
}

const TOKEN_TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds";
const TOKEN_TTL_MAX_SEC = 21_600;

/** EC2's, with version 2 of its protocol demanded. */
export class AwsMetadataServer extends MetadataServer {
  /** By path, under `/latest/meta-data/`. */
  readonly #items = new Map<string, string>();
  /** When each expires, monotonic. */
  readonly #tokens = new Map<string, number>();
  #tokensGiven = 0;

  static start(options: MetadataServerOptions = {}): Promise<AwsMetadataServer> {
    return new AwsMetadataServer(options).listen();
  }

  preempt({ leadMs = 120_000, action = "terminate" }: AwsNotice = {}): void {
    // Whole seconds, as EC2 says it.
    const time = new Date(this.nowMs + leadMs).toISOString().replace(/\.\d+Z$/, "Z");
    this.preemptUnreadably(JSON.stringify({ action, time }));
  }

  /** Announces an interruption in these words. */
  preemptUnreadably(body: string): void {
    this.#items.set("spot/instance-action", body);
  }

  rebalance(): void {
    const noticeTime = new Date(this.nowMs).toISOString();
    this.#items.set("events/recommendations/rebalance", JSON.stringify({ noticeTime }));
  }

  /** No token that was given is good any more. */
  expireTokens(): void {
    this.#tokens.clear();
  }

  /** How many tokens were given. */
  get tokensGiven(): number {
    return this.#tokensGiven;
  }

  protected answer({ method, path, headers }: AskedRequest, response: ServerResponse): void {
    if (headers["x-forwarded-for"] !== undefined) return this.reply(response, 403);
    if (path === "/latest/api/token") {
      if (method !== "PUT") return this.reply(response, 405);
      return this.#giveToken(Number(headers[TOKEN_TTL_HEADER]), response);
    }
    const token = headers["x-aws-ec2-metadata-token"];
    const expiresAtMs = typeof token === "string" ? this.#tokens.get(token) : undefined;
    if (expiresAtMs === undefined || this.clock.monotonicMs() >= expiresAtMs)
      return this.reply(response, 401);
    const item = this.#items.get(path.replace("/latest/meta-data/", ""));
    if (method !== "GET" || item === undefined) return this.reply(response, 404);
    this.reply(response, 200, item);
  }

  #giveToken(ttlSec: number, response: ServerResponse): void {
    if (!(ttlSec >= 1 && ttlSec <= TOKEN_TTL_MAX_SEC)) return this.reply(response, 400);
    this.#tokensGiven++;
    const token = `token-${this.#tokensGiven}==`;
    this.#tokens.set(token, this.clock.monotonicMs() + ttlSec * 1_000);
    this.reply(response, 200, token, { [TOKEN_TTL_HEADER]: String(ttlSec) });
  }
}

/** A request that is answered when something changes. */
interface Waiting {
  readonly response: ServerResponse;
  readonly timeout: Timer | undefined;
}

/** Compute Engine's. */
export class GcpMetadataServer extends MetadataServer {
  #waiting: Waiting[] = [];
  #isPreempted = false;
  #namesStates = true;
  #waits = true;

  static start(options: MetadataServerOptions = {}): Promise<GcpMetadataServer> {
    return new GcpMetadataServer(options).listen();
  }

  /** Answers everybody who waits. */
  preempt(): void {
    this.#isPreempted = true;
    for (const { response, timeout } of this.#waiting) {
      timeout?.cancel();
      this.#state(response);
    }
    this.#waiting = [];
  }

  /** From now on, answers carry no `ETag`. */
  forgetEtags(): void {
    this.#namesStates = false;
  }

  /** From now on, answers at once, whatever it is asked. */
  stopWaiting(): void {
    this.#waits = false;
  }

  /** How many requests wait for a change. */
  get waiting(): number {
    return this.#waiting.length;
  }

  protected answer({ method, path, headers }: AskedRequest, response: ServerResponse): void {
    const url = new URL(path, this.url);
    if (headers["metadata-flavor"] !== "Google") return this.reply(response, 403);
    if (method !== "GET") return this.reply(response, 405);
    if (url.pathname === "/computeMetadata/v1/")
      return this.reply(response, 200, "instance/\n", { "metadata-flavor": "Google" });
    if (url.pathname !== "/computeMetadata/v1/instance/preempted") return this.reply(response, 404);
    const lastEtag = url.searchParams.get("last_etag");
    const isWaiting = url.searchParams.get("wait_for_change") === "true" && this.#waits;
    if (!isWaiting || (lastEtag !== null && lastEtag !== this.#etag)) return this.#state(response);
    this.#wait(response, url.searchParams.get("timeout_sec"));
  }

  #wait(response: ServerResponse, timeoutSec: string | null): void {
    const expire = (): void => {
      this.#waiting = this.#waiting.filter((waiting) => waiting.response !== response);
      this.#state(response);
    };
    const timeout = timeoutSec === null ? undefined : this.later(Number(timeoutSec) * 1_000, expire);
    this.#waiting.push({ response, timeout });
  }

  #state(response: ServerResponse): void {
    const etag = this.#namesStates ? { etag: this.#etag } : {};
    const headers = { "metadata-flavor": "Google", "content-type": "application/text", ...etag };
    this.reply(response, 200, this.#isPreempted ? "TRUE" : "FALSE", headers);
  }

  get #etag(): string {
    return this.#isPreempted ? "2f6d1f2a9c33b5e1" : "4a7b0c0dd5e0f9ab";
  }
}
