// How the service of operators says no.
import { failure } from "../../base/errors.ts";
import type { Refusal, RunTask, RunView } from "../turn/run-view.ts";

/** Throws request_invalid: the caller's mistake, in words. */
export function refuse(method: string, reason: string): never {
  throw failure("request_invalid", { method, reason });
}

export function refuseSubmission(refusal: Refusal, asked: RunTask): never {
  switch (refusal.kind) {
    case "sealed":
      throw failure("run_sealed", {});
    case "cancelled":
      throw failure("run_cancelled", {});
    case "otherTask":
      throw failure("other_task", { task: nameOf(refusal.task), other: nameOf(asked) });
  }
}

/** Nothing more can be asked of a run that was cancelled. */
export function refuseIfCancelled({ phase }: Pick<RunView, "phase">): void {
  if (phase === "cancelled") throw failure("run_cancelled", {});
}

/** The best name that there is for a task. */
function nameOf({ digest, plugin, summary }: RunTask): string {
  if (summary !== "") return summary;
  const short = Buffer.from(digest.subarray(0, 6)).toString("hex");
  return plugin === "" ? `task ${short}` : `${plugin} (task ${short})`;
}
