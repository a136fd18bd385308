// Why the run takes no items, or no keys, as the one who sent them is told.
import { failure } from "../../base/errors.ts";
import type { Refusal, RunTask } from "../turn/run-terms.ts";

/** Throws the row of a refusal. */
export function refuseSubmission(
  refusal: Exclude<Refusal, { readonly kind: "renamed" }>,
  asked: RunTask,
): never {
  switch (refusal.kind) {
    case "sealed":
      throw failure("run_sealed", {});
    case "cancelled":
      throw failure("run_cancelled", {});
    case "otherTask":
      throw failure("other_task", { task: nameOf(refusal.task), other: nameOf(asked) });
    case "onTrial": {
      const { task, release } = refusal;
      throw failure("release_of_task", { task: nameOf(task), other: nameOf(asked), release });
    }
    case "timersFull":
      throw failure("overloaded", { what: "the number of timers", limit: refusal.limit });
    case "partitionFull": {
      const { key, partition, limit } = refusal;
      throw failure("partition_full", { key, partition, limit });
    }
    case "partitionsFixed": {
      const { found, configured } = refusal;
      throw failure("partitions_fixed", { found, configured });
    }
  }
}

/** The best name that there is for a task. */
function nameOf({ digest, plugin, summary }: RunTask): string {
  if (summary !== "") return summary;
  const short = Buffer.from(digest.subarray(0, 6)).toString("hex");
  return plugin === "" ? `task ${short}` : `${plugin} (task ${short})`;
}
