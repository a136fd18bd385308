// Asking a machine's metadata server: one small request on a connection of its own.
//
// Keeps true: the question goes to this machine or its link and nowhere else, no redirect is followed and no proxy used,
// and every question has an answer in bounded time and memory, if only that there is none.
import { request as openRequest } from "node:http";
import type { IncomingHttpHeaders, IncomingMessage } from "node:http";
import { isIPv4 } from "node:net";
import type { Clock } from "../../base/clock.ts";
import { systemReason } from "../../base/system-reason.ts";

/** A host that `parseMetadataUrl` lets pass. */
export interface MetadataAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** AWS has a unique local address of IPv6 for it, and Google a name. */
const KNOWN_HOSTS: ReadonlySet<string> = new Set(["::1", "fd00:ec2::254", "metadata.google.internal"]);

/**
 * `http://host:port` of this machine's loopback or link. Undefined for anything else: what a metadata server says ends
 * workers, and no host further away is believed.
 */
export function parseMetadataUrl(text: string): MetadataAddress | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const host = url.hostname.replace(/^\[(.*)\]$/, "$1");
  const port = url.port === "" ? 80 : Number(url.port);
  const isPlain = url.href === `http://${url.host}/` && port > 0;
  return isPlain && isLocal(host) ? { host, port } : undefined;
}

function isLocal(host: string): boolean {
  if (isIPv4(host)) return /^(127|169\.254)\./.test(host);
  return KNOWN_HOSTS.has(host) || /^fe[89ab][0-9a-f]:/.test(host);
}

export interface MetadataQuestion {
  readonly address: MetadataAddress;
  readonly method?: "GET" | "PUT";
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  /** For all of it, from connecting to the last byte. */
  readonly timeoutMs: number;
  readonly clock: Clock;
  /** Gives the question up. */
  readonly signal: AbortSignal;
}

export type MetadataAnswer =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly body: string;
      /** When it was asked, monotonic: what the answer says was so then or later. */
      readonly sentAtMs: number;
    }
  | {
      readonly kind: "unanswered";
      readonly reason: string;
      /** Nothing came in time; it may, to who waits longer. */
      readonly isSilent: boolean;
    };

/** A notice has 60 bytes, a token 56. */
const BODY_MAX_BYTES = 16_384;
const HEADERS_MAX_BYTES = 8_192;

/** Never rejects. */
export function askMetadata(question: MetadataQuestion): Promise<MetadataAnswer> {
  const { address, method = "GET", path, headers, timeoutMs, clock, signal } = question;
  return new Promise((resolve) => {
    if (signal.aborted) return resolve(unanswered("nobody wants to know any more"));
    const sentAtMs = clock.monotonicMs();
    // Without an agent: none that is shared, kept alive, or sent through the proxy of an environment variable.
    const request = openRequest({
      ...address,
      method,
      path,
      headers,
      agent: false,
      maxHeaderSize: HEADERS_MAX_BYTES,
    });
    // The first call counts; destroying the request brings late ones.
    const finish = (answer: MetadataAnswer): void => {
      timer.cancel();
      signal.removeEventListener("abort", giveUp);
      resolve(answer);
      request.destroy();
    };
    const giveUp = (): void => finish(unanswered("nobody wants to know any more"));
    const timer = clock.after(timeoutMs, () => finish(unanswered(`no answer within ${timeoutMs} ms`, true)));
    signal.addEventListener("abort", giveUp);
    request.on("error", (error) => finish(unanswered(systemReason(error))));
    request.on("close", () => finish(unanswered("the connection was closed")));
    request.on("response", (response) => readBody(response, sentAtMs, finish));
    request.end();
  });
}

function readBody(
  response: IncomingMessage,
  sentAtMs: number,
  finish: (answer: MetadataAnswer) => void,
): void {
  const { statusCode: status = 0, headers } = response;
  const chunks: Buffer[] = [];
  let bytes = 0;
  response.on("error", (error) => finish(unanswered(systemReason(error))));
  response.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes > BODY_MAX_BYTES) finish(unanswered(`an answer of more than ${BODY_MAX_BYTES} bytes`));
    else chunks.push(chunk);
  });
  response.on("end", () =>
    finish({ kind: "answered", status, headers, body: Buffer.concat(chunks).toString().trim(), sentAtMs }),
  );
}

function unanswered(reason: string, isSilent = false): MetadataAnswer {
  return { kind: "unanswered", reason, isSilent };
}
