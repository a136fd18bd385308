// The run at one moment, with the reasons that workers give where nothing is done: for `rollout status` and for the page.
import { lackOf, lackText, troubleLines } from "../cli/render/workers.ts";
import type { CoordinatorSummary } from "../client/coordinators.ts";
import { jsonOf, told } from "../client/operator-message.ts";
import { standsStill, statusOf } from "../client/run-status.ts";
import type { RunStatus } from "../client/run-status.ts";
import type { WorkerSummary } from "../client/workers.ts";
import { CoordinatorSchema } from "../gen/rollout/v1/coordinator_pb.ts";
import { RunSchema } from "../gen/rollout/v1/run_pb.ts";
import type { GetRunResponse, Run } from "../gen/rollout/v1/run_pb.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface RunSight {
  readonly run: Run;
  readonly status: RunStatus;
  /** Why nothing finishes, as workers say. */
  readonly trouble: readonly string[];
  /** The thing that all workers lack which are there, a sentence without its stop. */
  readonly lack: string | undefined;
  readonly coordinators: readonly CoordinatorSummary[];
}

/** Parts that are known already and not asked for again. */
export interface Known {
  readonly run?: GetRunResponse;
  readonly workers?: readonly WorkerSummary[];
  readonly coordinators?: readonly CoordinatorSummary[];
}

/** Workers are asked for where they may say why nothing is done. Rejects with the transport's rows. */
export async function lookAtRun(client: RolloutClient, known: Known = {}): Promise<RunSight> {
  const answer = known.run ?? (await client.calls.getRun({}));
  const coordinators = known.coordinators ?? (await client.coordinators());
  const [run, status] = [told(answer.run), statusOf(answer)];
  const isIdle = standsStill(status) || lacksWorkers(status);
  if (!isIdle && !takesNothing(status)) return { run, status, coordinators, trouble: [], lack: undefined };
  const workers = known.workers ?? (await client.workers());
  const plugin = status.task?.plugin ?? "";
  const lack = takesNothing(status) ? lackOf(plugin, workers) : undefined;
  return {
    ...{ run, status, coordinators },
    // Where all have other versions, each says what to do.
    trouble: isIdle || lack === "version" ? troubleLines(workers) : [],
    lack: lack && lackText(lack, plugin),
  };
}

/** There is work, and no worker has any of it. */
function takesNothing({ pending, running }: RunStatus): boolean {
  return pending > 0 && running === 0;
}

/** There is work and nobody for it: who has left may have said why. */
function lacksWorkers({ pending, running, workers }: RunStatus): boolean {
  return pending + running > 0 && workers.ready === 0;
}

/** The object of `rollout status --json`. */
export function runObject({ run, trouble, lack, coordinators }: RunSight): object {
  return {
    ...jsonOf(RunSchema, run),
    trouble: [...(lack === undefined ? [] : [lack]), ...trouble],
    coordinators: coordinators.map((each) => jsonOf(CoordinatorSchema, each)),
  };
}
