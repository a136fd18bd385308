// The conversation of a worker with its coordinator: one stream after the other, with jittered waits between them, for as long as
// the worker lives, and a line in the log when there is trouble. A coordinator that restarts finds its workers again, and not all
// of them at once.
import { unreachable } from "../../base/assert.ts";
import { backoffMs } from "../../base/random.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { describeError } from "../../base/errors.ts";
import type { ErrorCode, RolloutError } from "../../base/errors.ts";
import type { Random, BackoffRange } from "../../base/random.ts";
import type { Logger } from "../../observe/log.ts";

/**
 * How one stream ended. `superseded`: a newer process of this worker was seen, so there is no next stream. `anew`: this side has ended it,
 * for the next one to begin at once.
 */
export type Ending = Setback | { readonly kind: "superseded" } | { readonly kind: "anew" };

export interface Conversed {
  /** The coordinator has answered on it: the stream before this one is no reason to wait longer. */
  readonly heard: boolean;
  readonly ending: Ending;
}

export interface ReconnectOptions {
  /** One stream, from its opening to its end. */
  readonly converse: () => Promise<Conversed>;
  /** Called before the wait for the next stream, which is short where that one goes to another coordinator. */
  readonly onSetback: (setback: Setback) => "elsewhere" | undefined;
  readonly clock: Clock;
  readonly random: Random;
  /** The longest wait after a setback that is no refusal; without it a few seconds. */
  readonly waitMaxMs?: number;
  /** Ends the wait; the stream in flight is the caller's to end. */
  readonly signal: AbortSignal;
}

/** Resolves when `signal` has aborted, or the worker is superseded; rejects with what `converse` throws. */
export async function stayConnected(options: ReconnectOptions): Promise<"stopped" | "superseded"> {
  const { converse, onSetback, clock, random, waitMaxMs, signal } = options;
  const isStopped = (): boolean => signal.aborted;
  let wasLeaderless = false;
  for (let failures = 0; !isStopped();) {
    const { ending, heard } = await converse();
    if (isStopped()) break;
    if (ending.kind === "superseded") return "superseded";
    if (ending.kind === "anew") {
      failures = 0;
      continue;
    }
    // How often nobody led says nothing of the one that leads now.
    const isLeaderless = waitsForLeader(ending);
    failures = heard || isLeaderless !== wasLeaderless ? 1 : failures + 1;
    wasLeaderless = isLeaderless;
    const where = onSetback(ending);
    const waitMs =
      where === "elsewhere"
        ? backoffMs(RETRY_LEADER, failures, random)
        : retryDelayMs(ending, failures, random, waitMaxMs);
    await sleep(clock, waitMs, signal);
  }
  return "stopped";
}

/** Why a try came to nothing. */
export type Setback =
  | { readonly kind: "failed"; readonly error: RolloutError }
  /** The coordinator ended the stream, as it does when it stops. */
  | { readonly kind: "closed" }
  /** The connection stands, and nothing comes back. */
  | { readonly kind: "silent" }
  /** The coordinator's answer may not be obeyed. */
  | { readonly kind: "refused"; readonly reason: string };

const RETRY: BackoffRange = { baseMs: 200, ceilingMs: 5_000 };
/** A refusal, by either side, does not go away by asking often. */
const RETRY_REFUSED: BackoffRange = { baseMs: 2_000, ceilingMs: 30_000 };
/** Another coordinator leads before long, and the connection itself waits between its rounds through them. */
const RETRY_LEADER: BackoffRange = { baseMs: 50, ceilingMs: 250 };

/** The jittered wait before the next try, after `failures` in a row: `waitMaxMs` at most, unless it was a refusal. */
export function retryDelayMs(
  setback: Setback,
  failures: number,
  random: Random,
  waitMaxMs: number = RETRY.ceilingMs,
): number {
  const isRefusal =
    setback.kind === "refused" || (setback.kind === "failed" && setback.error.row.retry === "never");
  if (waitsForLeader(setback)) return backoffMs(RETRY_LEADER, failures, random);
  const ceilingMs = Math.min(RETRY.ceilingMs, waitMaxMs);
  return backoffMs(isRefusal ? RETRY_REFUSED : { ...RETRY, ceilingMs }, failures, random);
}

function waitsForLeader(setback: Setback): boolean {
  return setback.kind === "failed" && setback.error.row.retry === "new-leader";
}

/** How long nobody may be reached before it is said, and to whom besides the log. */
export interface Absence {
  readonly clock: Clock;
  /** The addresses that are tried, for a person. */
  readonly address: string;
  /** The first time; then each time that it has lasted twice as long. */
  readonly afterMs: number;
  readonly onAbsent?: ((forMs: number) => void) | undefined;
}

const OUT_OF_REACH: ReadonlySet<ErrorCode> = new Set([
  "coordinator_name_not_found",
  "coordinator_refused_connection",
  "coordinator_silent",
  "coordinator_not_trusted",
  "not_leader",
  "no_leader_found",
]);

/**
 * One line when the trouble begins or becomes another, and one when it is over. The same trouble again is not news, however often it
 * is met; only that nobody is reached for long is, with the address that was tried: the coordinator may have another one by now.
 */
export class Trouble {
  readonly #log: Logger;
  readonly #absence: Absence | undefined;
  #known: string | undefined;
  /** When it began that nobody was reached, and from how long on it is said again. Monotonic. */
  #absent: { readonly sinceMs: number; sayAfterMs: number } | undefined;

  constructor(log: Logger, absence?: Absence) {
    this.#log = log;
    this.#absence = absence;
  }

  report(setback: Setback): void {
    this.#noticeAbsence(setback);
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
    this.#absent = undefined;
  }

  #noticeAbsence(setback: Setback): void {
    if (this.#absence === undefined) return;
    const { clock, address, afterMs, onAbsent } = this.#absence;
    const isAbsent =
      setback.kind === "failed" ? OUT_OF_REACH.has(setback.error.code) : setback.kind !== "refused";
    if (!isAbsent) this.#absent = undefined;
    else this.#absent ??= { sinceMs: clock.monotonicMs(), sayAfterMs: afterMs };
    if (this.#absent === undefined) return;
    const forMs = clock.monotonicMs() - this.#absent.sinceMs;
    if (forMs < this.#absent.sayAfterMs) return;
    this.#absent.sayAfterMs = 2 * forMs;
    this.#log.warn(
      `no coordinator was reached at ${address} for ${Math.round(forMs / 1_000)} s: if it has another address now, start this ` +
        "worker again with worker.coordinator_addr (--coordinator-addr) set to it, or with a new bundle; trying again",
      { address, for_ms: Math.round(forMs) },
    );
    onAbsent?.(Math.round(forMs));
  }
}

/** In failure timeouts: a coordinator that is started again is back long before. */
const ABSENCE_FACTOR = 4;

export function absenceAfterMs(failureTimeoutMs: number): number {
  return ABSENCE_FACTOR * failureTimeoutMs;
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
