// The meaning of an exchange: the end of the attempt, or one more try, and which requests have to wait.
//
// Keeps true: a server that is not there, throttles or is overloaded is nobody's fault but its own, and no item is charged
// for it; what a server says of an item, and what it does with an item each time, is the item's.
import { unreachable } from "../../../base/assert.ts";
import type { Answer, Exchange } from "../../../transport/exchange.ts";
import { isQuotaSpent } from "./output.ts";
import type { Clock } from "../../../base/clock.ts";
import type { Logger } from "../../../observe/log.ts";

/** Why it is tried again. Which outcome the attempt has when it was the last try follows from it. */
export type Trouble =
  /** It is too much for it: this request waits, and fewer are sent. */
  | { readonly kind: "throttled"; readonly reason: string; readonly pauseMs: number | undefined }
  /** Nobody is there to ask; all requests wait. */
  | { readonly kind: "absent"; readonly reason: string; readonly pauseMs: number | undefined }
  /** It went away while it had the request. */
  | { readonly kind: "died"; readonly reason: string }
  /** It failed at this request. */
  | { readonly kind: "failed"; readonly reason: string; readonly answer: Answer | undefined }
  /** It was silent for too long. */
  | { readonly kind: "stalled"; readonly reason: string };

export type Verdict =
  | { readonly kind: "answered"; readonly answer: Answer }
  | { readonly kind: "refused"; readonly answer: Answer }
  | { readonly kind: "too_large" }
  | { readonly kind: "aborted" }
  /** The connection had been kept for too long: another one tells more. */
  | { readonly kind: "stale" }
  | { readonly kind: "trouble"; readonly trouble: Trouble };

/** Refusals that another try may not meet. */
const PASSING_STATUSES: readonly number[] = [408, 409, 425];

/** `wallMs`: now. */
export function verdictOf(end: Exchange, wallMs: number): Verdict {
  switch (end.kind) {
    case "answer":
      return verdictOfAnswer(end, wallMs);
    case "unreachable":
      return trouble({ kind: "absent", reason: end.reason, pauseMs: undefined });
    case "cut":
      return end.wasIdle ? { kind: "stale" } : trouble({ kind: "died", reason: end.reason });
    case "garbled":
      return trouble({ kind: "failed", reason: end.reason, answer: undefined });
    case "stalled":
      return trouble(end);
    case "too_large":
    case "aborted":
      return end;
    default:
      return unreachable(end, "end of an exchange");
  }
}

function verdictOfAnswer(answer: Answer, wallMs: number): Verdict {
  const { status, statusText, header } = answer;
  const reason = `${status} ${statusText}`.trim();
  const pauseMs = retryAfterMs(header("retry-after"), wallMs);
  if (status >= 200 && status < 300) return { kind: "answered", answer };
  if (status === 429 && !isQuotaSpent(answer)) return trouble({ kind: "throttled", reason, pauseMs });
  if (status === 503)
    return trouble({ kind: pauseMs === undefined ? "absent" : "throttled", reason, pauseMs });
  // A gateway says of the server behind it that it broke, or was silent.
  if (status === 502) return trouble({ kind: "died", reason });
  if (status === 504) return trouble({ kind: "stalled", reason });
  if (status >= 500 || PASSING_STATUSES.includes(status)) return trouble({ kind: "failed", reason, answer });
  return { kind: "refused", answer };
}

function trouble(one: Trouble): Verdict {
  return { kind: "trouble", trouble: one };
}

/** A day's quota is not waited for at once: after so long one request asks again. */
const WAIT_MAX_MS = 3_600_000;

/**
 * Milliseconds from now; undefined when the header says nothing that can be understood. Seconds or an HTTP date, which is
 * compared with `wallMs`.
 * @internal
 */
export function retryAfterMs(header: string | undefined, wallMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d{1,9}(?:\.\d{1,9})?$/.test(text)) return bounded(Number(text) * 1_000);
  const dateMs = /^[A-Z][a-z]+, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(dateMs) ? undefined : bounded(dateMs - wallMs);
}

function bounded(ms: number): number {
  return Math.min(Math.max(ms, 0), WAIT_MAX_MS);
}

// The trouble with the server: said in the worker's log when it begins and when it is over, since the same trouble again is
// not news, however many items meet it; and kept, for beats.

export interface KnownTrouble {
  readonly kind: Trouble["kind"];
  /** As the last request met it. */
  readonly reason: string;
  /** When the server was last in order, or asked for the first time; monotonic. */
  readonly sinceMs: number;
}

export class TroubleLog {
  readonly #log: Logger;
  readonly #clock: Clock;
  #known: KnownTrouble | undefined;
  #isThrottled = false;

  constructor(log: Logger, clock: Clock) {
    this.#log = log;
    this.#clock = clock;
  }

  /** Undefined when the server did its work when it was last asked. */
  get known(): KnownTrouble | undefined {
    return this.#known;
  }

  report(kind: Trouble["kind"], reason: string): void {
    const before = this.#known;
    this.#known = { kind, reason, sinceMs: before?.sinceMs ?? this.#clock.monotonicMs() };
    if (kind === before?.kind || (kind === "throttled" && this.#isThrottled)) return;
    if (kind === "throttled") this.#isThrottled = true;
    this.#log.warn("the server does not answer as it should; trying again", { trouble: kind, reason });
  }

  /** `isThrottled`: it answers, and refuses what is too much for it now and then: that is said once. */
  over(isThrottled: boolean): void {
    const wasThrottled = this.#isThrottled;
    this.#isThrottled &&= isThrottled;
    const isOver =
      this.#known === undefined
        ? wasThrottled && !isThrottled
        : this.#known.kind !== "throttled" || !isThrottled;
    if (isOver) this.#log.info("the server answers again");
    this.#known = undefined;
  }
}
