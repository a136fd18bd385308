// The server of the page in this process, with news and an operator of a test's own, and callers over real HTTP.
import { once } from "node:events";
import { request } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage, RequestOptions } from "node:http";
import { createInterface } from "node:readline";
import { text } from "node:stream/consumers";
import { parseAddress } from "../../src/base/address.ts";
import { systemClock } from "../../src/base/clock.ts";
import { Feed } from "../../src/inspector/feed.ts";
import type { NewsSource } from "../../src/inspector/news-source.ts";
import type { Hello, PageNews } from "../../src/inspector/page-messages.ts";
import { startPageServer } from "../../src/inspector/page-server.ts";
import type { PageServerOptions } from "../../src/inspector/page-server.ts";
import { RecordingLogger } from "./recording-logger.ts";

export const TOKEN = "a-token-of-22-letters_";

const NOTHING: Hello = { kind: "hello", version: "0", run: null, listens_at: null, now_ms: 0, charts: [] };

export interface Reply {
  readonly status: number;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

export interface AskOptions extends RequestOptions {
  readonly body?: string | readonly string[];
}

export interface PageRig {
  readonly address: string;
  readonly log: RecordingLogger;
  readonly feed: Feed;
  ask(path: string, options?: AskOptions): Promise<Reply>;
  /** The feed as it comes, until the connection ends. */
  follow(): Promise<FeedReader>;
  close(): Promise<void>;
}

/** Says what a test lets it say. */
export class ScriptedNews implements NewsSource {
  readonly known: PageNews[] = [];
  told: ((news: PageNews) => void) | undefined;

  whole(): readonly PageNews[] {
    return this.known;
  }

  follow(told: (news: PageNews) => void): () => void {
    this.told = told;
    return () => (this.told = undefined);
  }
}

export interface PageRigOptions extends Partial<PageServerOptions> {
  /** The first that a page is told. */
  readonly hello?: () => Hello;
}

export async function startPageRig(
  source: NewsSource,
  { hello = () => NOTHING, ...options }: PageRigOptions = {},
): Promise<PageRig> {
  const log = new RecordingLogger();
  const feed = new Feed({ sources: [source], hello, clock: systemClock });
  const server = await startPageServer({
    ...{ listenAddr: "127.0.0.1:0", setting: "--port", token: TOKEN, feed, log, operator: undefined },
    file: (name) => Promise.resolve(`the file ${name}`),
    chart: () => Promise.resolve(undefined),
    definition: () => Promise.resolve(undefined),
    ...options,
  });
  const { host = "", port = 0 } = parseAddress(server.address) ?? {};
  const send = async (path: string, { body, ...more }: AskOptions): Promise<IncomingMessage> => {
    const sent = request({ host, port, path, ...more });
    // The server may have answered, and gone, before everything is sent.
    sent.on("error", () => undefined);
    const answered = once(sent, "response");
    for (const part of [body ?? []].flat()) sent.write(part);
    sent.end();
    const [response] = (await answered) as [IncomingMessage];
    return response;
  };
  return {
    ...{ address: server.address, log, feed, close: () => server.close() },
    ask: async (path, asked = {}) => {
      const response = await send(path, asked);
      const { statusCode = 0, headers } = response;
      return { status: statusCode, headers, body: await text(response) };
    },
    follow: async () => new FeedReader(await send("/feed", { headers: withToken })),
  };
}

export const withToken = { authorization: `Bearer ${TOKEN}` };

/** One page, as far as it reads. */
export class FeedReader {
  readonly news: PageNews[] = [];
  readonly response: IncomingMessage;
  readonly ended: Promise<void>;

  constructor(response: IncomingMessage) {
    this.response = response;
    this.ended = new Promise((resolve) => response.once("close", resolve));
    response.on("error", () => undefined);
    const lines = createInterface({ input: response });
    // A feed that is cut off is an error of its lines too.
    lines.on("error", () => undefined);
    lines.on("line", (line) => {
      if (line !== "") this.news.push(JSON.parse(line) as PageNews);
    });
  }

  of<Kind extends PageNews["kind"]>(kind: Kind): Extract<PageNews, { kind: Kind }>[] {
    return this.news.filter((each): each is Extract<PageNews, { kind: Kind }> => each.kind === kind);
  }

  leave(): void {
    this.response.destroy();
  }
}
