// What a machine has no room for at times, another process or a block on its disk: what cannot be had now is asked for again
// later, and no item is charged for it.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { errnoOf } from "../../base/errors.ts";
import { systemReason } from "../../base/system-reason.ts";
import type { Logger } from "../../observe/log.ts";
import type { Child, ChildFailure, Children, ChildRequest } from "./child.ts";

export interface Patience {
  readonly clock: Clock;
  readonly log: Logger;
  /** It is not to be had at once, for this reason. Called once at most. */
  readonly onWait?: (reason: string) => void;
}

export type PatientStart =
  | { readonly kind: "started"; readonly child: Child }
  | { readonly kind: "failed"; readonly failure: ChildFailure & { readonly kind: "unusable" | "refused" } }
  /** The signal came first, or it was not to begin. */
  | { readonly kind: "aborted" };

/** How one try went. */
type Try<Got> =
  { readonly kind: "got"; readonly got: Got } | { readonly kind: "scarce"; readonly reason: string };

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;
/** Of the file system: others give room back. */
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
    if (kind === "exhausted") return { kind: "scarce", reason };
    if (kind === "withheld") return { kind: "got", got: { kind: "aborted" } };
    return { kind: "got", got: { kind: "failed", failure: { kind, reason } } };
  });
  return start ?? { kind: "aborted" };
}

/** Undefined when the signal came first; rejects as the file system does when it is not for want of room. */
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
      return { kind: "scarce", reason: systemReason(error) };
    }
  });
}

async function untilThereIsRoom<Got>(
  what: string,
  signal: AbortSignal,
  { clock, log, onWait }: Patience,
  tryOnce: () => Promise<Try<Got>>,
): Promise<Got | undefined> {
  for (let waitMs = RETRY_FIRST_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
    const tried = await tryOnce();
    if (tried.kind === "got") return tried.got;
    if (waitMs === RETRY_FIRST_MS) onWait?.(tried.reason);
    if (waitMs >= RETRY_MAX_MS) log.warn(what, { reason: tried.reason });
    await sleep(clock, waitMs, signal);
  }
  return undefined;
}
