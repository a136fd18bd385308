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
import type { Cloud } from "./compute-hint.ts";

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

// Metadata servers that do not answer as they should: the lines that a worker says of one, and how long it waits for one. The worker
// works on, and may be preempted without a notice.

/** One line when the trouble begins or becomes something else, and one when it is over. */
export class MetadataTrouble {
  readonly #log: Logger;
  #known: string | undefined;

  constructor(log: Logger, cloud: Cloud) {
    this.#log = log.child({ cloud });
  }

  /** `isSilent`: there was no answer in time, however long that was. */
  report(reason: string, isSilent = false): void {
    const kind = isSilent ? "silent" : reason;
    if (kind === this.#known) return;
    this.#known = kind;
    this.#log.warn(
      "the metadata server cannot be used, so a preemption may come without notice; trying again",
      {
        reason,
      },
    );
  }

  over(): void {
    if (this.#known !== undefined) this.#log.info("the metadata server answers again");
    this.#known = undefined;
  }
}

/** A server that takes longer than this is of no use: the shortest notice has 30 s. */
export const PATIENCE_MAX_MS = 10_000;
const GROWTH = 2;

/**
 * How long a question may take. Short at first, so that a server that hangs hides a notice for a moment only; longer, step by step,
 * while the server is silent, so that one that is slow is heard in the end.
 */
export class MetadataPatience {
  readonly #quickMs: number;
  #timeoutMs: number;

  /** `isSlow`: the server is known to be. */
  constructor(quickMs: number, isSlow: boolean) {
    this.#quickMs = quickMs;
    this.#timeoutMs = isSlow ? PATIENCE_MAX_MS : quickMs;
  }

  /** Asks within that time, and `keptMs` more, for which the server may keep the question. Never rejects. */
  async ask(question: Omit<MetadataQuestion, "timeoutMs">, keptMs = 0): Promise<MetadataAnswer> {
    const { clock } = question;
    const startMs = clock.monotonicMs();
    const answer = await askMetadata({ ...question, timeoutMs: this.#timeoutMs + keptMs });
    if (answer.kind === "unanswered") {
      if (answer.isSilent) this.#timeoutMs = Math.min(this.#timeoutMs * GROWTH, PATIENCE_MAX_MS);
    } else if (clock.monotonicMs() - startMs - keptMs <= this.#quickMs) this.#timeoutMs = this.#quickMs;
    return answer;
  }
}
