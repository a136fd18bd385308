// Room that a machine lacks at times, for another process or a block on its disk: it is asked for again later, and no item is
// charged for it. A backend that has got nothing for too long is broken: other workers may have the room that it waits for.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { Logger } from "../../observe/log.ts";
import { forHowLong } from "./trouble-words.ts";
import type { Child, ChildFailure, Children, ChildRequest } from "../children/child.ts";

/** The attempts of a backend that wait for room, and how long none of them has got any. */
export class Shortage {
  readonly #clock: Clock;
  readonly #limitMs: number;
  /** The reasons of those that wait, in the order in which they began to. */
  readonly #waiting = new Map<object, string>();
  #sinceMs: number | undefined;

  /** `limitMs`: as long as that nobody gets anything, and then it is over. */
  constructor(clock: Clock, limitMs: number = START_TIMEOUT_MS) {
    this.#clock = clock;
    this.#limitMs = limitMs;
  }

  /** In words for a beat; undefined when nobody waits. */
  trouble(): string | undefined {
    const [reason] = this.#waiting.values();
    if (reason === undefined || this.#sinceMs === undefined) return undefined;
    return `waiting, ${forHowLong(this.#clock.monotonicMs() - this.#sinceMs)}: ${reason}`;
  }

  /** `who` has asked in vain. How long nobody has got anything, in words, when that is too long. */
  refused(who: object, reason: string): string | undefined {
    const nowMs = this.#clock.monotonicMs();
    this.#sinceMs ??= nowMs;
    this.#waiting.set(who, reason);
    return nowMs - this.#sinceMs < this.#limitMs ? undefined : forHowLong(nowMs - this.#sinceMs);
  }

  /** There is room again. */
  served(): void {
    this.#sinceMs = undefined;
  }

  /** `who` does not wait any more. */
  over(who: object): void {
    this.#waiting.delete(who);
    if (this.#waiting.size === 0) this.#sinceMs = undefined;
  }
}

export interface Patience {
  readonly clock: Clock;
  readonly log: Logger;
  readonly shortage: Shortage;
  /** It is not to be had at once, for this reason. Called once at most. */
  readonly onWait?: (reason: string) => void;
}

export type PatientStart =
  | { readonly kind: "started"; readonly child: Child }
  /** `exhausted`: the backend has got nothing for so long that there is no use in waiting. */
  | {
      readonly kind: "failed";
      readonly failure: ChildFailure & { readonly kind: "exhausted" | "refused" | "unusable" };
    }
  /** The signal came first, or it was not to begin. */
  | { readonly kind: "aborted" };

/** How one try went. */
type Try<Got> =
  | { readonly kind: "got"; readonly got: Got }
  /** `giveUp`: what it comes to when nobody waits any longer. */
  | { readonly kind: "scarce"; readonly reason: string; readonly giveUp: (reason: string) => Got };

const START_TIMEOUT_MS = 120_000;
const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;
/** Errors of the file system after which others may give room back. */
const SCARCE: ReadonlySet<string> = new Set(["ENOSPC", "EDQUOT", "EMFILE", "ENFILE", "ENOMEM", "EAGAIN"]);

/** Never rejects. A child that has started when the signal comes is `started`. */
export async function startPatiently(
  children: Children,
  request: ChildRequest,
  signal: AbortSignal,
  patience: Patience,
): Promise<PatientStart> {
  const what = "a process cannot be started for now";
  const start = await untilThereIsRoom(what, signal, patience, async (): Promise<Try<PatientStart>> => {
    const tried = await children.spawn(request);
    if (tried.kind === "started") return { kind: "got", got: tried };
    const { kind, reason } = tried.failure;
    if (kind === "withheld") return { kind: "got", got: { kind: "aborted" } };
    const failed = (why: string): PatientStart => ({ kind: "failed", failure: { kind, reason: why } });
    if (kind === "exhausted") return { kind: "scarce", reason, giveUp: failed };
    return { kind: "got", got: failed(reason) };
  });
  return start ?? { kind: "aborted" };
}

/** Undefined when the signal came first; rejects as the file system does when it is not for want of room, or for too long. */
export function writePatiently<Written>(
  write: () => Promise<Written>,
  signal: AbortSignal,
  patience: Patience,
): Promise<Written | undefined> {
  const what = "the files of an attempt cannot be written for now";
  return untilThereIsRoom(what, signal, patience, async (): Promise<Try<Written>> => {
    try {
      return { kind: "got", got: await write() };
    } catch (error) {
      if (!SCARCE.has(errnoOf(error) ?? "")) throw error;
      const giveUp = (): never => {
        throw error;
      };
      return { kind: "scarce", reason: systemReason(error), giveUp };
    }
  });
}

async function untilThereIsRoom<Got>(
  what: string,
  signal: AbortSignal,
  { clock, log, shortage, onWait }: Patience,
  tryOnce: () => Promise<Try<Got>>,
): Promise<Got | undefined> {
  const who = {};
  try {
    return await persist();
  } finally {
    shortage.over(who);
  }

  async function persist(): Promise<Got | undefined> {
    for (let waitMs = RETRY_FIRST_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
      const tried = await tryOnce();
      if (tried.kind === "got") {
        shortage.served();
        return tried.got;
      }
      const tooLong = shortage.refused(who, tried.reason);
      if (tooLong !== undefined) return tried.giveUp(`there was no room ${tooLong}: ${tried.reason}`);
      if (waitMs === RETRY_FIRST_MS) onWait?.(tried.reason);
      if (waitMs >= RETRY_MAX_MS) log.warn(what, { reason: tried.reason });
      await sleep(clock, waitMs, signal);
    }
    return undefined;
  }
}
