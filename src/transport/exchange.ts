// One request of HTTP and what became of it. How it ended is a value; nothing is tried again here.
//
// Keeps true: no redirect is followed and no proxy used; every exchange ends when its signal aborts or the server has been
// silent for too long, and leaves no connection behind that is not whole; what is read is bounded.
import { request as openHttp } from "node:http";
import type { Agent, ClientRequest, IncomingMessage, RequestOptions } from "node:http";
import { request as openHttps } from "node:https";
import type { Socket } from "node:net";
import type { Clock, Timer } from "../base/clock.ts";
import { codeOf, describeError, errnoOf } from "../base/errors.ts";
import { formatDuration } from "../config/duration.ts";

export interface Answer {
  readonly kind: "answer";
  readonly status: number;
  readonly statusText: string;
  readonly header: (name: string) => string | undefined;
  readonly body: Uint8Array;
}

export type Exchange =
  | Answer
  /** The answer is over the limit. */
  | { readonly kind: "too_large" }
  /** No connection came about: the server has not heard of the request. */
  | { readonly kind: "unreachable"; readonly reason: string; readonly cause?: Error }
  /** The connection ended before the answer did. `wasIdle`: it had been kept for a while, and nothing came of it at all. */
  | { readonly kind: "cut"; readonly reason: string; readonly wasIdle: boolean; readonly cause?: Error }
  /** The bytes that came are not an answer. */
  | { readonly kind: "garbled"; readonly reason: string; readonly cause?: Error }
  /** The server said nothing for too long. */
  | { readonly kind: "stalled"; readonly reason: string }
  /** The signal asked for it. */
  | { readonly kind: "aborted" };

export interface ExchangeOptions {
  readonly url: URL;
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array | undefined;
  /** Undefined: a connection of its own, which is not kept. */
  readonly agent: Agent | undefined;
  /** Undefined: only the signal ends it. */
  readonly silenceMs: number | undefined;
  /** For the body of an answer with a status of 2xx. */
  readonly limitBytes: number;
  /** Makes one body of the pieces that server-sent events bring; without it they are bytes. */
  readonly assemble?: ((limitBytes: number) => AnswerBody) | undefined;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** `more` can be taken, or it is over the limit (`too_large`, or `enough` of it was read), or it makes no sense. */
export type Verdict = "more" | "enough" | "too_large" | "garbled";

export interface AnswerBody {
  /** The status that the body itself says, after one that had said too early that all is well. */
  readonly status?: number | undefined;
  write(chunk: Uint8Array): Verdict;
  /** Undefined when the end of it is missing. */
  end(): Uint8Array | undefined;
}

class ByteBody implements AnswerBody {
  readonly #limit: number;
  readonly #beyond: "enough" | "too_large";
  readonly #chunks: Uint8Array[] = [];
  #length = 0;

  constructor(limit: number, beyond: "enough" | "too_large") {
    this.#limit = limit;
    this.#beyond = beyond;
  }

  write(chunk: Uint8Array): Verdict {
    const fits = chunk.subarray(0, this.#limit - this.#length);
    this.#chunks.push(fits);
    this.#length += fits.length;
    return fits.length < chunk.length ? this.#beyond : "more";
  }

  end(): Uint8Array {
    return Buffer.concat(this.#chunks, this.#length);
  }
}

/** For an answer that says no: the rest is not read. */
const REFUSAL_MAX_BYTES = 65_536;

const UNKNOWN_AUTHORITY =
  "nobody known has signed its certificate (NODE_EXTRA_CA_CERTS names more authorities)";
const WORDS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "the connection was refused",
  ECONNRESET: "the connection was reset",
  EPIPE: "the connection was closed",
  ETIMEDOUT: "the connection timed out",
  EHOSTUNREACH: "there is no way to the host",
  ENETUNREACH: "there is no way to the network",
  ENOTFOUND: "the name is not found",
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNKNOWN_AUTHORITY,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNKNOWN_AUTHORITY,
  SELF_SIGNED_CERT_IN_CHAIN: UNKNOWN_AUTHORITY,
  DEPTH_ZERO_SELF_SIGNED_CERT: UNKNOWN_AUTHORITY,
  CERT_HAS_EXPIRED: "its certificate has expired",
  ERR_TLS_CERT_ALTNAME_INVALID: "its certificate is for another name",
};

/** Never rejects. */
export function exchange(options: ExchangeOptions): Promise<Exchange> {
  return options.signal.aborted ? Promise.resolve({ kind: "aborted" }) : new Running(options).ended;
}

class Running {
  readonly ended: Promise<Exchange>;
  readonly #options: ExchangeOptions;
  readonly #resolve: (end: Exchange) => void;
  readonly #request: ClientRequest;
  readonly #abort = (): void => this.#end({ kind: "aborted" });
  #timer: Timer | undefined;
  #heardAtMs: number;
  #isConnected = false;
  #hasEnded = false;
  #response: IncomingMessage | undefined;

  constructor(options: ExchangeOptions) {
    this.#options = options;
    ({ promise: this.ended, resolve: this.#resolve } = Promise.withResolvers());
    const { url, method, headers, body, agent, signal, clock } = options;
    const open = url.protocol === "https:" ? openHttps : openHttp;
    const length = body === undefined ? {} : { "content-length": String(body.length) };
    const settings: RequestOptions = { method, headers: { ...headers, ...length }, agent: agent ?? false };
    this.#heardAtMs = clock.monotonicMs();
    this.#request = open(url, settings, (response) => this.#receive(response));
    this.#request.on("socket", (socket) => this.#watch(socket));
    this.#request.on("error", (error) => this.#fail(error));
    signal.addEventListener("abort", this.#abort);
    if (options.silenceMs !== undefined) this.#arm(options.silenceMs, options.silenceMs);
    this.#request.end(body);
  }

  #watch(socket: Socket): void {
    const connected = (): void => {
      this.#isConnected = true;
      this.#hear();
    };
    // A connection that was kept is there already.
    if (!socket.connecting) return connected();
    socket.once(this.#options.url.protocol === "https:" ? "secureConnect" : "connect", connected);
  }

  #receive(response: IncomingMessage): void {
    this.#response = response;
    this.#hear();
    const body = this.#bodyFor(response);
    if (this.#isSuccess(response) && Number(response.headers["content-length"]) > this.#options.limitBytes)
      return this.#end({ kind: "too_large" });
    response.on("data", (chunk: Uint8Array) => {
      this.#hear();
      const verdict = body.write(chunk);
      if (verdict === "enough") this.#end(this.#answer(response, body, body.end() ?? new Uint8Array(0)));
      else if (verdict === "too_large") this.#end({ kind: "too_large" });
      else if (verdict === "garbled")
        this.#end({ kind: "garbled", reason: "the stream is not of completions" });
    });
    response.on("error", (error) => this.#fail(error));
    // An answer of which the end is missing has an error in place of this; a stream of events may also end too soon by itself.
    response.on("end", () => {
      const bytes = body.end();
      if (bytes !== undefined) this.#end(this.#answer(response, body, bytes));
      else this.#end({ kind: "cut", reason: "the answer ended in the middle", wasIdle: false });
    });
  }

  #bodyFor(response: IncomingMessage): AnswerBody {
    const { limitBytes, assemble } = this.#options;
    if (!this.#isSuccess(response)) return new ByteBody(REFUSAL_MAX_BYTES, "enough");
    const isStream = /^text\/event-stream\b/i.test(response.headers["content-type"] ?? "");
    return isStream && assemble !== undefined ? assemble(limitBytes) : new ByteBody(limitBytes, "too_large");
  }

  #isSuccess({ statusCode = 0 }: IncomingMessage): boolean {
    return statusCode >= 200 && statusCode < 300;
  }

  #answer(response: IncomingMessage, { status: said }: AnswerBody, body: Uint8Array): Answer {
    const { statusCode = 0, statusMessage = "", headers } = response;
    const [status, statusText] = said === undefined ? [statusCode, statusMessage] : [said, "in the stream"];
    const header = (name: string): string | undefined => {
      const value = headers[name];
      return typeof value === "string" ? value : value?.[0];
    };
    return { kind: "answer", status, statusText, header, body };
  }

  #fail(error: Error): void {
    const errno = errnoOf(error);
    const code = codeOf(error) ?? "";
    const reason = WORDS[errno ?? code] ?? errno ?? describeError(error);
    if (code.startsWith("HPE_"))
      return this.#end({ kind: "garbled", reason: `what it says is not HTTP (${code})`, cause: error });
    if (!this.#isConnected) return this.#end({ kind: "unreachable", reason, cause: error });
    const wasIdle = this.#request.reusedSocket && this.#response === undefined;
    this.#end({ kind: "cut", reason, wasIdle, cause: error });
  }

  #hear(): void {
    this.#heardAtMs = this.#options.clock.monotonicMs();
  }

  /** One timer for many pieces: it looks when the last one came. */
  #arm(delayMs: number, silenceMs: number): void {
    const { clock } = this.#options;
    this.#timer = clock.after(delayMs, () => {
      const leftMs = this.#heardAtMs + silenceMs - clock.monotonicMs();
      if (leftMs > 0) this.#arm(leftMs, silenceMs);
      else
        this.#end(
          this.#isConnected
            ? { kind: "stalled", reason: `no byte for ${formatDuration(silenceMs)}` }
            : { kind: "unreachable", reason: "it does not answer" },
        );
    });
  }

  #end(end: Exchange): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#timer?.cancel();
    this.#options.signal.removeEventListener("abort", this.#abort);
    // A connection on which all was sent and read is kept for the next request by the agent; any other goes.
    const isWhole = this.#response?.complete === true && this.#request.writableFinished;
    if (!isWhole) this.#request.destroy();
    this.#resolve(end);
  }
}
