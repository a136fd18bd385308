// Asking a machine's metadata server: one small request on a connection of its own.
//
// Keeps true: the question goes to this machine or its link and nowhere else, no redirect is followed and no proxy used,
// and every question has an answer in bounded time and memory, if only that there is none.
import { isIPv4 } from "node:net";
import { formatAddress } from "../../base/address.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { Logger } from "../../observe/log.ts";
import { exchange } from "../../transport/exchange.ts";
import type { Answer } from "../../transport/exchange.ts";

/** A host that `parseMetadataUrl` lets pass. */
export interface MetadataAddress {
  /** Without brackets. */
  readonly host: string;
  readonly port: number;
}

/** How the notices of a metadata server are watched. */
export interface MetadataWatchOptions {
  readonly address: MetadataAddress;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** The server was slow when it was found. */
  readonly isSlow?: boolean;
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
      readonly header: Answer["header"];
      readonly body: string;
      /** When it was asked, monotonic: what the answer says was so then or later. */
      readonly sentAtMs: number;
    }
  | {
      readonly kind: "unanswered";
      readonly reason: string;
      /** Nothing came in time; it may, for a longer patience. */
      readonly isSilent: boolean;
    };

/** A notice has 60 bytes, a token 56. */
const BODY_MAX_BYTES = 16_384;

/** Never rejects. */
export async function askMetadata(question: MetadataQuestion): Promise<MetadataAnswer> {
  const { address, method = "GET", path, headers, timeoutMs, clock, signal } = question;
  const ending = new AbortController();
  const end = (): void => ending.abort();
  const timer = clock.after(timeoutMs, end);
  signal.addEventListener("abort", end);
  if (signal.aborted) end();
  const sentAtMs = clock.monotonicMs();
  const came = await exchange({
    url: new URL(path, `http://${formatAddress(address)}`),
    ...{ method, headers, body: undefined, agent: undefined, clock },
    silenceMs: undefined,
    limitBytes: BODY_MAX_BYTES,
    signal: ending.signal,
  });
  timer.cancel();
  signal.removeEventListener("abort", end);
  switch (came.kind) {
    case "answer": {
      const { status, header, body } = came;
      return { kind: "answered", status, header, body: Buffer.from(body).toString().trim(), sentAtMs };
    }
    case "aborted":
      return signal.aborted
        ? unanswered("nobody wants to know any more")
        : unanswered(`no answer within ${timeoutMs} ms`, true);
    case "too_large":
      return unanswered(`an answer of more than ${BODY_MAX_BYTES} bytes`);
    case "unreachable":
    case "cut":
    case "garbled":
      return unanswered(came.cause === undefined ? came.reason : systemReason(came.cause));
    case "stalled":
      return unanswered(came.reason);
  }
}

function unanswered(reason: string, isSilent = false): MetadataAnswer {
  return { kind: "unanswered", reason, isSilent };
}
