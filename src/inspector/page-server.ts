// The server of the page: HTTP on loopback, for the one page that it serves itself.
//
// The inspector's files: `hub` asks the run for all pages, as `run-source` says; `run-knowledge`, `worker-board`, `release-course` and `timeline` know what is news, `feed`
// tells it in the words of `page-messages`. Beside the server stand its `entrance`, `page-files`, `chart-picture`, `deed` and `reply`; `news-source` has
// its doors. Programs of others come by `program-listener`: `stately-messages` reads what they say, within `reading-budget` and `program-limits`,
// `program` is one of them and `programs` all, `bounded-json` shows their values, `drawing` has their charts drawn by `drawing-thread`. The other way
// round, `stately-sender` tells of our charts, as `told-charts`.
//
// Keeps true: nothing but the page's own files is told without the token; a caller that is slow, large or one of too many costs no more
// than its connection; no answer waits for another.
import type { IncomingMessage, ServerResponse } from "node:http";
import { parseAddress } from "../base/address.ts";
import { RolloutError } from "../base/errors.ts";
import { listenOnLoopback } from "../observe/loopback-server.ts";
import type { LoopbackServer } from "../observe/loopback-server.ts";
import type { Logger } from "../observe/log.ts";
import { readDeed } from "./deed.ts";
import { Entrance } from "./entrance.ts";
import type { Feed } from "./feed.ts";
import type { ChartPicture, Deed, Done, Explained } from "./page-messages.ts";
import { begin, failed, json, methodRefused, refused, refusedPage, send } from "./reply.ts";
import type { Reply } from "./reply.ts";
import type { PageFile } from "./page-files.ts";

/** An operator's questions and deeds, by his certificate. All reject with rows of the table of errors. */
export interface Operator {
  /** Undefined when there is none of that name. */
  explainItem(name: string): Promise<Explained | undefined>;
  explainWorker(id: string): Promise<Explained | undefined>;
  /** Resolves with one or more lines for a person. */
  perform(deed: Deed): Promise<string>;
}

export interface PageServerOptions {
  /** `127.0.0.1:port`; port 0 takes a free one. */
  readonly listenAddr: string;
  readonly setting: string;
  readonly token: string;
  readonly feed: Feed;
  /** Undefined where no run is shown. */
  readonly operator: Operator | undefined;
  readonly file: (name: PageFile) => Promise<string>;
  /** A chart of the product. */
  readonly chart: (name: string) => Promise<ChartPicture | undefined>;
  /** A chart of a program. */
  readonly definition: (programId: string, hash: string) => Promise<ChartPicture | undefined>;
  readonly log: Logger;
}

/** More than the pages that are told: some ask besides. */
const CONNECTIONS = 1_200;
const BODY_BYTES_MAX = 4_096;
const JSON_TYPE = /^application\/json(?:;.*)?$/i;
const STEP = /^\/([a-z.]*)(?:\/([^/]+))?(?:\/([^/]+))?$/;

/** Fails with listen_failed. */
export async function startPageServer(options: PageServerOptions): Promise<LoopbackServer> {
  const { log, feed } = options;
  const rooms = new PageServer(options);
  const server = await listenOnLoopback({ ...options, connections: CONNECTIONS }, (request, response) => {
    rooms.answer(request, response).catch((err: unknown) => {
      log.error("a call of the page could not be answered", { err, path: request.url?.split("?", 1)[0] });
      if (response.headersSent) response.destroy();
      else send(response, failed(500, "an error of this program", "its log has the reason"));
    });
  });
  rooms.port = parseAddress(server.address)?.port;
  return {
    address: server.address,
    close: () => {
      feed.close();
      return server.close();
    },
  };
}

class PageServer {
  /** Known when it listens. */
  port: number | undefined;
  readonly #options: PageServerOptions;
  readonly #entrance: Entrance;

  constructor(options: PageServerOptions) {
    this.#options = options;
    this.#entrance = new Entrance(options.token);
  }

  async answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { url = "", headers, method = "" } = request;
    const [, room = "", ...names] = STEP.exec(url.split("?", 1)[0] ?? "") ?? [];
    const stranger = this.#entrance.refusal(headers, this.port);
    if (stranger !== undefined) return send(response, refusedPage(stranger));
    const allowed = room === "do" ? "POST" : "GET";
    if (method !== allowed) return send(response, methodRefused(allowed));
    const file = await this.#file(url, room);
    if (file !== undefined) return send(response, file);
    const unknown = this.#entrance.tokenRefusal(headers);
    if (unknown !== undefined) return send(response, refused(unknown));
    if (room === "feed") return this.#follow(response);
    send(response, await this.#asked(room, names.map(decoded), request));
  }

  /** The page and what it is made of: no secrets, but nobody is shown the page who could do nothing with it. */
  async #file(url: string, room: string): Promise<Reply | undefined> {
    const { file } = this.#options;
    switch (room) {
      case "": {
        if (url.split("?", 1)[0] !== "/") return undefined;
        const token = URL.parse(url, "http://127.0.0.1")?.searchParams.get("token") ?? "";
        if (this.#entrance.isToken(token)) return page("text/html", await file("index.html"));
        const hint = "open the address that `rollout inspect` has printed; each start has another one";
        return refusedPage({ status: 403, message: "this page is for whoever started it", hint });
      }
      case "page.js":
        return page("text/javascript", await file("page.js"));
      case "page.css":
        return page("text/css", await file("page.css"));
      default:
        return undefined;
    }
  }

  #follow(response: ServerResponse): void {
    const { feed } = this.#options;
    begin(response, 200, "application/x-ndjson; charset=utf-8");
    const outlet = {
      get waitingBytes() {
        return response.writableLength;
      },
      write: (bytes: Uint8Array) => void response.write(bytes),
      cut: () => void response.destroy(),
    };
    response.on("close", () => feed.leave(outlet));
    response.on("error", () => undefined);
    if (!feed.join(outlet)) response.destroy();
  }

  async #asked(
    room: string,
    [name, other]: readonly (string | undefined)[],
    request: IncomingMessage,
  ): Promise<Reply> {
    const { operator, chart, definition } = this.#options;
    const isAlone = name !== undefined && other === undefined;
    if (room === "charts" && isAlone) return found(await chart(name));
    if (room === "definitions" && name !== undefined && other !== undefined)
      return found(await definition(name, other));
    if (room === "item" && isAlone)
      return explained(() => operator?.explainItem(name) ?? Promise.resolve(undefined));
    if (room === "worker" && isAlone)
      return explained(() => operator?.explainWorker(name) ?? Promise.resolve(undefined));
    if (room === "do" && name === undefined) return this.#done(request);
    return found(undefined);
  }

  async #done(request: IncomingMessage): Promise<Reply> {
    const { operator } = this.#options;
    if (!JSON_TYPE.test(request.headers["content-type"] ?? ""))
      return failed(415, "a deed is said as JSON", "send it as application/json");
    const body = await bodyOf(request);
    if (body === undefined)
      return failed(413, "this is too long for a deed", `at most ${BODY_BYTES_MAX} bytes are read`);
    const deed = readDeed(body);
    if (deed === undefined) return failed(400, "this is no deed", "see docs/inspect.md");
    if (operator === undefined) return failed(404, "no run is shown here", "start it where the run is");
    try {
      const done: Done = { ok: true, words: await operator.perform(deed) };
      return json(200, done);
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      return failed(200, error.message, error.hint);
    }
  }
}

function page(type: string, body: string): Reply {
  return { status: 200, contentType: `${type}; charset=utf-8`, body };
}

function found(value: object | undefined): Reply {
  return value === undefined
    ? failed(404, "there is nothing of that name", "see docs/inspect.md")
    : json(200, value);
}

/** An item or a worker that cannot be asked for now is another matter than one that is not there. */
async function explained(look: () => Promise<Explained | undefined>): Promise<Reply> {
  try {
    return found(await look());
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    return failed(error.row.retry === "never" ? 404 : 503, error.message, error.hint);
  }
}

/** Undefined when it is too long: the rest is not read. */
async function bodyOf(request: IncomingMessage): Promise<string | undefined> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.length;
    if (bytes > BODY_BYTES_MAX) return undefined;
    parts.push(part);
  }
  return Buffer.concat(parts).toString();
}

/** Undefined for what is no text. */
function decoded(part: string | undefined): string | undefined {
  try {
    return part === undefined ? undefined : decodeURIComponent(part);
  } catch {
    return undefined;
  }
}
