// A server on loopback that speaks as OpenAI's does and needs nothing but Node: for trying rollout without a GPU, and for
// tests. It can be as slow, overloaded and broken as real ones are.
//
// Keeps true: the same request has the same answer; nothing goes wrong that was not asked for.
import { createServer } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, Server, ServerResponse } from "node:http";
import type { AddressInfo, Socket } from "node:net";
import type { Clock, Timer } from "../../src/base/clock.ts";
import { systemClock } from "../../src/base/clock.ts";
import {
  chatCompletion,
  chatPieces,
  embeddings,
  lastMessageOf,
  modelOf,
  models,
  planOf,
  textCompletion,
  textPieces,
} from "./answers.ts";
import type { Body } from "./answers.ts";
import { BEHAVE_HEADER, askedOf } from "./behaviour.ts";
import type { Asked, Behaviour } from "./behaviour.ts";

export interface OpenAiServerOptions {
  readonly port?: number;
  /** Any other is answered with 404; all are known unless said. */
  readonly models?: readonly string[];
  /** Demanded as bearer token. */
  readonly apiKey?: string;
  /** Before each answer, and between the pieces of a stream a tenth of it. */
  readonly latencyMs?: number;
  /** So many requests at once; more are throttled. */
  readonly capacity?: number;
  /** So often the server misbehaves in these ways: every so many requests. */
  readonly every?: readonly { readonly requests: number; readonly behaviour: Behaviour }[];
  /** Says 503 to everything for so long after its start. */
  readonly readyAfterMs?: number;
  readonly clock?: Clock;
  /** The meaning of `die`; every connection is cut off unless said. */
  readonly onDie?: () => void;
}

export interface SeenRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

interface Reply {
  readonly body: Body;
  /** The same in pieces, where there are any. */
  readonly pieces?: (withUsage: boolean) => Iterable<Body>;
}

const BODY_MAX_BYTES = 32 * 1_024 * 1_024;

export class OpenAiServer {
  /** Requests for an answer, in the order in which they came; `/health` and `/v1/models` are not among them. */
  readonly requests: SeenRequest[] = [];
  readonly #options: OpenAiServerOptions;
  readonly #clock: Clock;
  readonly #server: Server;
  readonly #timers = new Set<Timer>();
  readonly #sockets = new Set<Socket>();
  readonly #startedAtMs: number;
  /** How often the same request has asked for the same misbehaviour. */
  readonly #asked = new Map<string, number>();
  #next: { readonly behaviour: Behaviour; left: number }[] = [];
  #underWay = 0;
  #mostUnderWay = 0;
  #connections = 0;

  private constructor(options: OpenAiServerOptions) {
    this.#options = options;
    this.#clock = options.clock ?? systemClock;
    this.#startedAtMs = this.#clock.monotonicMs();
    this.#server = createServer((request, response) => void this.#take(request, response));
    this.#server.requestTimeout = 0;
    this.#server.on("connection", (socket) => {
      this.#connections++;
      this.#sockets.add(socket);
      socket.once("close", () => this.#sockets.delete(socket));
    });
  }

  static async start(options: OpenAiServerOptions = {}): Promise<OpenAiServer> {
    const server = new OpenAiServer(options);
    await new Promise<void>((resolve, reject) => {
      server.#server.once("error", reject).listen(options.port ?? 0, "127.0.0.1", resolve);
    });
    return server;
  }

  /** `http://127.0.0.1:port` */
  get origin(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Where the API begins. */
  get url(): string {
    return `${this.origin}/v1`;
  }

  /** How many requests were being answered at the same time, at most. */
  get mostUnderWay(): number {
    return this.#mostUnderWay;
  }

  /** How many are being answered now. */
  get underWay(): number {
    return this.#underWay;
  }

  /** How many connections there are. */
  get openConnections(): number {
    return this.#sockets.size;
  }

  /** How many connections there have been. */
  get connections(): number {
    return this.#connections;
  }

  /** The next `times` requests are answered in this way, after those for which that was said already. */
  misbehave(behaviour: Behaviour, times = 1): void {
    this.#next.push({ behaviour, left: times });
  }

  /** Ends every connection, answered or not. */
  async close(): Promise<void> {
    for (const timer of this.#timers) timer.cancel();
    await new Promise<void>((resolve) => {
      this.#server.close(() => resolve());
      for (const socket of this.#sockets) socket.destroy();
    });
  }

  async #take(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = "", url: path = "", headers } = request;
    const text = await readAll(request);
    if (text === undefined) return;
    const [pathname = ""] = path.split("?", 1);
    if (!this.#isReady) return fail(response, 503, "the model is being loaded");
    if (pathname === "/health") return void response.writeHead(200).end();
    if (pathname === "/v1/models") return json(response, 200, models(this.#options.models ?? ["toy"]));
    this.requests.push({ method, path, headers, body: text });
    this.#underWay++;
    this.#mostUnderWay = Math.max(this.#mostUnderWay, this.#underWay);
    response.once("close", () => this.#underWay--);
    const body = parseObject(text);
    const behaviour = this.#behaviourFor(headers, body, text);
    if (behaviour === undefined) this.#answer(pathname, headers, body, response);
    else this.#misbehave(behaviour, pathname, headers, body, response);
  }

  get #isReady(): boolean {
    return this.#clock.monotonicMs() - this.#startedAtMs >= (this.#options.readyAfterMs ?? 0);
  }

  #behaviourFor(headers: IncomingHttpHeaders, body: Body | undefined, text: string): Behaviour | undefined {
    const { capacity = Number.POSITIVE_INFINITY, every = [] } = this.#options;
    const [next] = this.#next;
    if (next !== undefined) {
      next.left--;
      if (next.left <= 0) this.#next.shift();
      return next.behaviour;
    }
    const asked = askedOf(headers[BEHAVE_HEADER], body);
    if (asked !== undefined && this.#isStillAsked(asked, text)) return asked;
    if (this.#underWay > capacity) return { kind: "throttle", retryAfter: "1" };
    return every.find(({ requests }) => this.requests.length % requests === 0)?.behaviour;
  }

  #isStillAsked(asked: Asked, text: string): boolean {
    const before = this.#asked.get(text) ?? 0;
    this.#asked.set(text, before + 1);
    return before < (asked.times ?? Number.POSITIVE_INFINITY);
  }

  #answer(
    pathname: string,
    headers: IncomingHttpHeaders,
    body: Body | undefined,
    response: ServerResponse,
    spoil: "none" | "truncate" | Extract<Behaviour, { kind: "fail_in_stream" }> = "none",
  ): void {
    const { apiKey, models: known, latencyMs = 0 } = this.#options;
    if (apiKey !== undefined && headers.authorization !== `Bearer ${apiKey}`)
      return fail(response, 401, `incorrect API key provided: ${headers.authorization ?? "none"}`);
    if (body === undefined) return fail(response, 400, "the body is not a JSON object");
    if (known !== undefined && !known.includes(modelOf(body)))
      return fail(response, 404, `the model ${modelOf(body)} does not exist`);
    const reply = replyTo(pathname, body);
    if (typeof reply === "string") return fail(response, pathname.startsWith("/v1/") ? 400 : 404, reply);
    const send = (): void => {
      if (body["stream"] === true && reply.pieces !== undefined) {
        const options = body["stream_options"];
        const withUsage = typeof options === "object" && options !== null && "include_usage" in options;
        return this.#stream([...reply.pieces(withUsage)], response, spoil);
      }
      if (spoil === "truncate") return truncate(response, reply.body);
      json(response, 200, reply.body);
    };
    if (latencyMs > 0) this.#later(latencyMs, send);
    else send();
  }

  #stream(
    pieces: readonly Body[],
    response: ServerResponse,
    spoil: "none" | "truncate" | Extract<Behaviour, { kind: "fail_in_stream" }>,
  ): void {
    const { latencyMs = 0 } = this.#options;
    const half = Math.floor(pieces.length / 2);
    const send = (at: number): void => {
      if (response.destroyed) return;
      const piece = pieces[at];
      if (at === half && spoil === "truncate") return void response.destroy();
      if (at === half && typeof spoil === "object") {
        const { code, message } = spoil;
        return void response.end(`data: ${JSON.stringify({ error: { code, message } })}\n\ndata: [DONE]\n\n`);
      }
      if (piece === undefined) return void response.end("data: [DONE]\n\n");
      response.write(`data: ${JSON.stringify(piece)}\n\n`, () => {
        if (latencyMs > 0) this.#later(latencyMs / 10, () => send(at + 1));
        else send(at + 1);
      });
    };
    response.writeHead(200, { "content-type": "text/event-stream; charset=utf-8" });
    send(0);
  }

  #misbehave(
    behaviour: Behaviour,
    pathname: string,
    headers: IncomingHttpHeaders,
    body: Body | undefined,
    response: ServerResponse,
  ): void {
    switch (behaviour.kind) {
      case "throttle":
        if (behaviour.retryAfter !== undefined) response.setHeader("retry-after", behaviour.retryAfter);
        return fail(response, 429, "too many requests");
      case "status": {
        for (const [name, text] of Object.entries(behaviour.headers ?? {})) response.setHeader(name, text);
        if (behaviour.body !== undefined)
          return void response.writeHead(behaviour.status).end(behaviour.body);
        return fail(response, behaviour.status, behaviour.message ?? "it went wrong", behaviour.code);
      }
      case "stall":
        return;
      case "slow":
        return this.#later(behaviour.delayMs, () => this.#answer(pathname, headers, body, response));
      case "cut":
        return void response.destroy();
      case "truncate":
        return this.#answer(pathname, headers, body, response, "truncate");
      case "garbage":
        return void response.writeHead(200, { "content-type": "text/html" }).end("<html>Bad day</html>");
      case "noise":
        return void response.socket?.end("this is no HTTP\r\n\r\n");
      case "bytes":
        return void response.writeHead(200).end(Buffer.from(behaviour.base64, "base64"));
      case "huge":
        return void response.writeHead(200).end(Buffer.alloc(behaviour.bytes, "x"));
      case "fail_in_stream":
        return this.#answer(pathname, headers, body, response, behaviour);
      case "die":
        return this.#die();
    }
  }

  #die(): void {
    if (this.#options.onDie !== undefined) return this.#options.onDie();
    void this.close();
  }

  #later(delayMs: number, callback: () => void): void {
    const timer = this.#clock.after(delayMs, () => {
      this.#timers.delete(timer);
      callback();
    });
    this.#timers.add(timer);
  }
}

/** A text says what is wrong with the request. */
function replyTo(pathname: string, body: Body): Reply | string {
  switch (pathname) {
    case "/v1/chat/completions": {
      const asked = lastMessageOf(body);
      if (asked === undefined) return "messages has to be a list of messages";
      const plan = planOf("chatcmpl", body, asked);
      return { body: chatCompletion(plan), pieces: (withUsage) => chatPieces(plan, withUsage) };
    }
    case "/v1/completions": {
      const { prompt } = body;
      if (typeof prompt !== "string") return "prompt has to be a text";
      const plan = planOf("cmpl", body, prompt);
      return { body: textCompletion(plan), pieces: (withUsage) => textPieces(plan, withUsage) };
    }
    case "/v1/embeddings":
      return body["input"] === undefined ? "input is missing" : { body: embeddings(body) };
    default:
      return `nothing is at ${pathname}`;
  }
}

async function readAll(request: IncomingMessage): Promise<string | undefined> {
  const chunks: Buffer[] = [];
  let length = 0;
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length;
      if (length > BODY_MAX_BYTES) return undefined;
      chunks.push(chunk);
    }
  } catch {
    return undefined;
  }
  return Buffer.concat(chunks).toString();
}

function parseObject(text: string): Body | undefined {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Body) : undefined;
  } catch {
    return undefined;
  }
}

function json(response: ServerResponse, status: number, body: Body): void {
  response.writeHead(status, { "content-type": "application/json", "x-request-id": idOf(body) });
  response.end(JSON.stringify(body));
}

function idOf({ id }: Body): string {
  return typeof id === "string" ? `req-${id}` : "req-0";
}

function fail(response: ServerResponse, status: number, message: string, code?: string): void {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  json(response, status, { error: { message, type, param: null, code: code ?? null } });
}

function truncate(response: ServerResponse, body: Body): void {
  const text = JSON.stringify(body);
  response.writeHead(200, { "content-type": "application/json", "content-length": Buffer.byteLength(text) });
  response.write(text.slice(0, text.length / 2), () => response.destroy());
}
