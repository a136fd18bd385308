// Preemption notices of EC2: polled, because its metadata server has nothing to wait on.
//
// Keeps true: a notice that is there is reported, readable or not; its lead is the server's time against the server's
// clock, so that ours may be as wrong as it likes.
import { backoffMs } from "../../base/random.ts";
import { sleep } from "../../base/clock.ts";
import type { Clock } from "../../base/clock.ts";
import { jsonFields } from "../../base/exact-json.ts";
import { printable } from "../../base/safe-text.ts";
import { clampLead } from "./compute-hint.ts";
import type { ComputeHint, Hint } from "./compute-hint.ts";
import type {
  MetadataAddress,
  MetadataAnswer,
  MetadataQuestion,
  MetadataWatchOptions,
} from "./metadata-http.ts";
import { MetadataPatience, MetadataTrouble } from "./metadata-http.ts";

/** Five seconds are what AWS advises; six hours is the most that it gives a token. */
const TIMING = {
  pollIntervalMs: 5_000,
  /** How long an answer of a server that is not slow may take (metadata-http.ts). */
  requestTimeoutMs: 1_500,
  tokenTtlSec: 21_600,
};

export type AwsTiming = Readonly<typeof TIMING>;

export interface AwsHintsOptions extends MetadataWatchOptions {
  readonly timing?: AwsTiming;
}

/**
 * How many intervals the wait may grow by while the server fails. With the interval of above a notice is found within 25 s
 * of the server's recovery, which leaves more than the 60 s that a drain wants.
 */
const BACKOFF_INTERVALS = 3;

const NOTICE_PATH = "/latest/meta-data/spot/instance-action";
const REBALANCE_PATH = "/latest/meta-data/events/recommendations/rebalance";
const SHOWN_CHARACTERS = 200;

export class AwsHints implements ComputeHint {
  readonly #options: AwsHintsOptions;
  readonly #timing: AwsTiming;

  constructor(options: AwsHintsOptions) {
    this.#options = options;
    this.#timing = options.timing ?? TIMING;
  }

  /** Ends by itself with the first notice that says when. */
  async watch(signal: AbortSignal, onHint: (hint: Hint) => void): Promise<void> {
    const { address, clock, log, isSlow = false } = this.#options;
    const { requestTimeoutMs, tokenTtlSec } = this.#timing;
    const patience = new MetadataPatience(requestTimeoutMs, isSlow);
    const session = new ImdsSession({ address, clock, signal, patience, tokenTtlSec });
    const trouble = new MetadataTrouble(log, "aws");
    const told = { notice: false, rebalance: false };
    for (let failures = 0; ;) {
      const notice = await session.get(NOTICE_PATH);
      const isAsked = notice.kind === "absent" && !told.rebalance;
      const isRebalance = isAsked && (await session.get(REBALANCE_PATH)).kind === "found";
      if (signal.aborted) return;
      if (notice.kind === "failed") {
        failures++;
        trouble.report(notice.reason, notice.isSilent);
      } else {
        failures = 0;
        trouble.over();
      }
      if (notice.kind === "found") {
        const leadMs = this.#leadOf(notice, told.notice);
        if (leadMs !== undefined || !told.notice)
          onHint({ kind: "preemption", cause: "aws", leadMs, noticedAtMs: notice.sentAtMs });
        if (leadMs !== undefined) return;
        told.notice = true;
      }
      if (isRebalance) onHint({ kind: "rebalance" });
      told.rebalance ||= isRebalance;
      await sleep(clock, this.#waitMs(failures), signal);
    }
  }

  #waitMs(failures: number): number {
    const { pollIntervalMs } = this.#timing;
    if (failures === 0) return pollIntervalMs;
    const range = { baseMs: pollIntervalMs, ceilingMs: BACKOFF_INTERVALS * pollIntervalMs };
    return pollIntervalMs + backoffMs(range, failures, this.#options.random);
  }

  /** Undefined when the notice does not say when, which is said in the log the first time. */
  #leadOf(notice: ImdsAnswer & { kind: "found" }, isKnown: boolean): number | undefined {
    const { action, timeMs } = readNotice(notice.body);
    // Hibernation does not wait: the notice tells that it has begun.
    if (action === "hibernate") return 0;
    if (timeMs !== undefined && notice.serverTimeMs !== undefined)
      return clampLead("aws", timeMs - notice.serverTimeMs);
    if (!isKnown) {
      const body = printable(notice.body.slice(0, SHOWN_CHARACTERS));
      this.#options.log.warn("a preemption notice does not say when; the usual lead is taken", {
        cloud: "aws",
        body,
      });
    }
    return undefined;
  }
}

/** The part that can be understood of `{"action": "terminate", "time": "2017-09-18T08:22:00Z"}`. */
function readNotice(body: string): { readonly action: unknown; readonly timeMs: number | undefined } {
  const { action, time } = jsonFields(body);
  return { action, timeMs: readTime(time) };
}

/** Only with a time zone: without, it would be taken for the local time of this machine. */
function readTime(time: unknown): number | undefined {
  if (typeof time !== "string" || !/T.*(Z|[+-]\d\d:?\d\d)$/.test(time)) return undefined;
  const timeMs = Date.parse(time);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}

// Talking to the metadata server of EC2 as version 2 of its protocol demands: every question carries a token, which is asked
// for first, lives as long as both sides agreed, and may be refused at any time, as after a stop and start of the machine.

export interface ImdsOptions {
  readonly address: MetadataAddress;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Says for each request how long it may take, and is told how long it took. */
  readonly patience: MetadataPatience;
  /** For how long a token is asked; 1 to 21,600. */
  readonly tokenTtlSec: number;
}

export type ImdsAnswer =
  | {
      readonly kind: "found";
      readonly body: string;
      /** The server's own time, in milliseconds since 1970 and whole seconds; undefined when it did not say. */
      readonly serverTimeMs: number | undefined;
      /** Monotonic. */
      readonly sentAtMs: number;
    }
  | { readonly kind: "absent" }
  | { readonly kind: "failed"; readonly reason: string; readonly isSilent?: boolean };

type Failed = Extract<ImdsAnswer, { readonly kind: "failed" }>;

interface Token {
  readonly kind: "token";
  readonly text: string;
  readonly renewAtMs: number;
}

const TTL_HEADER = "x-aws-ec2-metadata-token-ttl-seconds";
/** The share of its life after which a token is renewed: the other half is for a server in trouble. */
const RENEW_AFTER = 0.5;
/** A text that may stand in a header. */
const TOKEN_TEXT = /^[\x21-\x7e]+$/;

export class ImdsSession {
  readonly #options: ImdsOptions;
  #token: Token | undefined;

  constructor(options: ImdsOptions) {
    this.#options = options;
  }

  /** Never rejects. */
  async get(path: string): Promise<ImdsAnswer> {
    const token = await this.#currentToken();
    if (token.kind === "failed") return token;
    const answer = await this.#ask(path, token);
    if (answer.kind !== "answered" || answer.status !== 401) return read(answer);
    this.#token = undefined;
    const newToken = await this.#currentToken();
    return newToken.kind === "failed" ? newToken : read(await this.#ask(path, newToken));
  }

  /** Whether the server gives tokens, as only that of EC2 does. */
  async isThere(): Promise<boolean> {
    return (await this.#currentToken()).kind === "token";
  }

  async #currentToken(): Promise<Token | Failed> {
    const known = this.#token;
    if (known !== undefined && this.#options.clock.monotonicMs() < known.renewAtMs) return known;
    const answer = await this.#newToken();
    // One that could not be renewed has half of its life before it. If it has not, the server says 401.
    if (answer.kind === "failed") return known ?? answer;
    this.#token = answer;
    return answer;
  }

  async #newToken(): Promise<Token | Failed> {
    const { tokenTtlSec } = this.#options;
    const answer = await this.#request({
      method: "PUT",
      path: "/latest/api/token",
      headers: { [TTL_HEADER]: String(tokenTtlSec), "content-length": "0" },
    });
    if (answer.kind === "unanswered") return failed(answer);
    if (answer.status !== 200)
      return { kind: "failed", reason: `it gives no token, it answers ${answer.status}` };
    if (!TOKEN_TEXT.test(answer.body)) return { kind: "failed", reason: "it gives a token that is none" };
    const grantedSec = Number(answer.header(TTL_HEADER));
    const ttlSec = grantedSec > 0 ? Math.min(grantedSec, tokenTtlSec) : tokenTtlSec;
    return { kind: "token", text: answer.body, renewAtMs: answer.sentAtMs + ttlSec * 1_000 * RENEW_AFTER };
  }

  #ask(path: string, { text }: Token): Promise<MetadataAnswer> {
    return this.#request({ path, headers: { "x-aws-ec2-metadata-token": text } });
  }

  #request(question: Pick<MetadataQuestion, "method" | "path" | "headers">): Promise<MetadataAnswer> {
    return this.#options.patience.ask({ ...this.#options, ...question });
  }
}

function read(answer: MetadataAnswer): ImdsAnswer {
  if (answer.kind === "unanswered") return failed(answer);
  if (answer.status === 404) return { kind: "absent" };
  if (answer.status !== 200) return { kind: "failed", reason: `it answers ${answer.status}` };
  const serverTimeMs = Date.parse(answer.header("date") ?? "");
  return {
    kind: "found",
    body: answer.body,
    serverTimeMs: Number.isNaN(serverTimeMs) ? undefined : serverTimeMs,
    sentAtMs: answer.sentAtMs,
  };
}

function failed({ reason, isSilent }: Extract<MetadataAnswer, { readonly kind: "unanswered" }>): Failed {
  return { kind: "failed", reason, isSilent };
}
