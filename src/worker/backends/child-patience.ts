// Starts children on a machine that at times has no room for one more process: what cannot start now starts later, and no item
// is charged for it.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { Logger } from "../../observe/log.ts";
import type { Child, ChildFailure, Children, ChildRequest } from "./child.ts";

export type PatientStart =
  | { readonly kind: "started"; readonly child: Child }
  | { readonly kind: "failed"; readonly failure: ChildFailure & { readonly kind: "unusable" | "refused" } }
  /** The signal came first. */
  | { readonly kind: "aborted" };

const RETRY_FIRST_MS = 50;
const RETRY_MAX_MS = 5_000;

/** Never rejects. A child that has started when the signal comes is `started`. */
export async function startPatiently(
  children: Children,
  request: ChildRequest,
  signal: AbortSignal,
  { clock, log }: { readonly clock: Clock; readonly log: Logger },
): Promise<PatientStart> {
  for (let waitMs = RETRY_FIRST_MS; !signal.aborted; waitMs = Math.min(2 * waitMs, RETRY_MAX_MS)) {
    const start = await children.spawn(request);
    if (start.kind === "started") return start;
    const { kind, reason } = start.failure;
    if (kind !== "exhausted") return { kind: "failed", failure: { kind, reason } };
    if (waitMs >= RETRY_MAX_MS) log.warn("a process cannot be started for now", { reason });
    await sleep(clock, waitMs, signal);
  }
  return { kind: "aborted" };
}
