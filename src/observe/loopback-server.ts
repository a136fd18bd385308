// Small HTTP servers for programs of this machine: one that answers GET and HEAD on loopback, and nothing else anywhere, and the listener
// that it shares with others.
//
// Keeps true: a page of another site cannot read it, as every Host but a name of this machine is refused; a caller that is slow, large or
// one of too many costs no more than its connection.
import { createServer } from "node:http";
import type { IncomingMessage, ServerResponse } from "node:http";
import { isLoopback } from "../base/address.ts";
import { sleep } from "../base/clock.ts";
import type { Clock } from "../base/clock.ts";
import { listenAt } from "../base/listening.ts";
import type { Logger } from "./log.ts";

export interface Page {
  readonly status: number;
  readonly contentType: string;
  readonly body: string;
}

export interface LoopbackOptions {
  /** `host:port` of loopback; port 0 takes a free one. */
  readonly listenAddr: string;
  /** The setting that says it. */
  readonly setting: string;
  /** Connections at once, 64 unless said: more than any scraper, prober and person together have. */
  readonly connections?: number;
  readonly log: Logger;
}

export interface LoopbackServerOptions extends LoopbackOptions {
  /** Path → what is there now. One that takes too long is answered with 503, one that rejects is answered with 500, and its reason stands in the log alone. */
  readonly pages: Readonly<Record<string, () => Promise<Page>>>;
  readonly clock: Clock;
}

export interface LoopbackServer {
  /** With the port that was taken. */
  readonly address: string;
  /** Connections are cut off. Resolves when the port is free. */
  close(): Promise<void>;
}

const CONNECTIONS = 64;
const HEADER_BYTES = 8 * 1_024;
const PATIENCE_MS = 5_000;
/** A page that is not made within this time is answered with 503: callers must not pile up where the database does not answer. */
const PAGE_PATIENCE_MS = 2_000;
/** How often Node looks for callers that are too slow. */
const LOOK_MS = 1_000;

/** Fails with listen_failed. */
export function startLoopbackServer(options: LoopbackServerOptions): Promise<LoopbackServer> {
  return listenOnLoopback(options, (request, response) => void respond(options, request, response));
}

/** Listens with the limits of every server of this machine; what is answered is `answer`'s business. Fails with listen_failed. */
export async function listenOnLoopback(
  { listenAddr, setting, log, connections = CONNECTIONS }: LoopbackOptions,
  answer: (request: IncomingMessage, response: ServerResponse) => void,
): Promise<LoopbackServer> {
  const server = createServer(
    {
      maxHeaderSize: HEADER_BYTES,
      headersTimeout: PATIENCE_MS,
      requestTimeout: PATIENCE_MS,
      connectionsCheckingInterval: LOOK_MS,
    },
    answer,
  );
  server.maxConnections = connections;
  const { address } = await listenAt(server, listenAddr, setting);
  server.on("error", (err: Error) => log.warn("a listener reported an error", { err, address }));
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

async function respond(
  { pages, log, clock }: LoopbackServerOptions,
  request: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  // One call on each connection: what is left of a request is never read as another.
  response.shouldKeepAlive = false;
  const made = new AbortController();
  const late = sleep(clock, PAGE_PATIENCE_MS, made.signal).then(() => words(503, "it takes too long to say"));
  const page = pageFor(pages, request).catch((err: unknown) => {
    log.error("a page could not be made", { err, path: request.url });
    return words(500, "the reason is in this process's log");
  });
  const { status, contentType, body } = await Promise.race([page, late]);
  made.abort();
  const bytes = Buffer.from(body);
  response.writeHead(status, {
    "content-type": contentType,
    "content-length": bytes.length,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    ...(status === 405 && { allow: "GET, HEAD" }),
  });
  response.end(request.method === "HEAD" ? undefined : bytes);
}

async function pageFor(
  pages: LoopbackServerOptions["pages"],
  { method, url = "", headers }: IncomingMessage,
): Promise<Page> {
  if (!isOfThisMachine(headers.host)) return words(421, "ask by an address of this machine");
  if (method !== "GET" && method !== "HEAD") return words(405, "only GET and HEAD are answered");
  const [path = ""] = url.split("?", 1);
  const page = Object.hasOwn(pages, path) ? pages[path] : undefined;
  return page === undefined ? words(404, `there are ${Object.keys(pages).join(", ")}`) : page();
}

/** A caller that comes by a name which another site has given this address is turned away. */
export function isOfThisMachine(host = ""): boolean {
  const url = URL.parse(`http://${host}`);
  return url !== null && url.host !== "" && isLoopback(url.hostname.replace(/^\[|\]$/g, ""));
}

export function words(status: number, text: string): Page {
  return { status, contentType: "text/plain; charset=utf-8", body: `${text}\n` };
}
