// What a worker says while it cannot reach its coordinator: one line when the trouble begins or becomes another, and one
// when it is over. The same trouble again is not news, however often it is met.
import { unreachable } from "../base/assert.ts";
import { backoffMs } from "../base/backoff.ts";
import type { BackoffRange } from "../base/backoff.ts";
import { describeError } from "../base/errors.ts";
import type { RolloutError } from "../base/errors.ts";
import type { Random } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";

/** Why a try came to nothing. */
export type Setback =
  | { readonly kind: "failed"; readonly error: RolloutError }
  /** The coordinator ended the stream, as it does when it stops. */
  | { readonly kind: "closed" }
  /** The connection stands, and nothing comes back. */
  | { readonly kind: "silent" }
  /** What the coordinator answered may not be obeyed. */
  | { readonly kind: "refused"; readonly reason: string };

const RETRY: BackoffRange = { baseMs: 200, ceilingMs: 5_000 };
/** A refusal, by either side, does not go away by asking often. */
const RETRY_REFUSED: BackoffRange = { baseMs: 2_000, ceilingMs: 30_000 };

/** The jittered wait before the next try, after `failures` in a row: `waitMaxMs` at most, unless it was a refusal. */
export function retryDelayMs(
  setback: Setback,
  failures: number,
  random: Random,
  waitMaxMs: number = RETRY.ceilingMs,
): number {
  const isRefusal =
    setback.kind === "refused" || (setback.kind === "failed" && setback.error.row.retry === "never");
  const ceilingMs = Math.min(RETRY.ceilingMs, waitMaxMs);
  return backoffMs(isRefusal ? RETRY_REFUSED : { ...RETRY, ceilingMs }, failures, random);
}

export class Trouble {
  readonly #log: Logger;
  #known: string | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  report(setback: Setback): void {
    const kind = setback.kind === "failed" ? setback.error.code : setback.kind;
    if (kind === this.#known) return;
    this.#known = kind;
    const { error } = setback.kind === "failed" ? setback : {};
    const more = error === undefined ? {} : { code: error.code, hint: error.hint };
    this.#log.warn(`${describe(setback)}; trying again`, more);
  }

  over(): void {
    if (this.#known !== undefined) this.#log.info("connected again");
    this.#known = undefined;
  }
}

function describe(setback: Setback): string {
  switch (setback.kind) {
    case "failed":
      return describeError(setback.error);
    case "closed":
      return "the coordinator closed the stream";
    case "silent":
      return "the coordinator does not answer";
    case "refused":
      return `an answer was refused: ${setback.reason}`;
    default:
      return unreachable(setback, "setback");
  }
}
