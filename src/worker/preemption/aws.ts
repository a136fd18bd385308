// Preemption notices of EC2: polled, because its metadata server has nothing to wait on.
//
// Keeps true: a notice that is there is reported, readable or not; its lead is the server's time against the server's
// clock, so that ours may be as wrong as it likes.
import { backoffMs } from "../../base/backoff.ts";
import { sleep } from "../../base/clock.ts";
import { printable } from "../../base/safe-text.ts";
import { clampLead } from "./compute-hint.ts";
import type { ComputeHint, Hint } from "./compute-hint.ts";
import { ImdsSession } from "./imds-session.ts";
import type { ImdsAnswer } from "./imds-session.ts";
import type { MetadataWatchOptions } from "./metadata-http.ts";
import { MetadataPatience, MetadataTrouble } from "./metadata-trouble.ts";

export interface AwsTiming {
  readonly pollIntervalMs: number;
  /** How long an answer of a server that is not slow may take (metadata-trouble.ts). */
  readonly requestTimeoutMs: number;
  readonly tokenTtlSec: number;
}

export interface AwsHintsOptions extends MetadataWatchOptions {
  readonly timing?: AwsTiming;
}

/** Five seconds are what AWS advises; six hours is the most that it gives a token. */
const TIMING: AwsTiming = { pollIntervalMs: 5_000, requestTimeoutMs: 1_500, tokenTtlSec: 21_600 };

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
function readNotice(body: string): { action?: unknown; timeMs?: number | undefined } {
  let notice: unknown;
  try {
    notice = JSON.parse(body);
  } catch {
    return {};
  }
  if (typeof notice !== "object" || notice === null) return {};
  const action = "action" in notice ? notice.action : undefined;
  return { action, timeMs: "time" in notice ? readTime(notice.time) : undefined };
}

/** Only with a time zone: without, it would be taken for the local time of this machine. */
function readTime(time: unknown): number | undefined {
  if (typeof time !== "string" || !/T.*(Z|[+-]\d\d:?\d\d)$/.test(time)) return undefined;
  const timeMs = Date.parse(time);
  return Number.isNaN(timeMs) ? undefined : timeMs;
}
