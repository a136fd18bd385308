// The workers of a run, as the library gives them, and the leaving of one.
import type { Client } from "@connectrpc/connect";
import type { Clock } from "../base/clock.ts";
import type { IncarnationId, WorkerId } from "../base/ids.ts";
import type { GetWorkerResponse, OperatorService, WorkerInfo } from "../gen/rollout/v1/run_pb.ts";
import { GetWorkerResponseSchema, WorkerInfoSchema } from "../gen/rollout/v1/run_pb.ts";
import { plainOf, told } from "./operator-message.ts";
import type { Plain } from "./operator-message.ts";
import { RunNews } from "./run-news.ts";

export interface WorkerSummary extends Plain<WorkerInfo> {
  readonly workerId: WorkerId;
  readonly incarnation: IncarnationId;
  readonly state: "init" | "ready" | "draining" | "gone" | "unknown";
  readonly liveness: "alive" | "suspected" | "failed" | "removed" | "unknown";
  readonly plugins: readonly {
    readonly name: string;
    readonly version: string;
    /** The version of the states that its actors leave; 0 for a plugin that has none. */
    readonly stateVersion: number;
  }[];
  /** Undefined while the coordinator has not heard of the worker since it began to lead. */
  readonly lastBeatAgeMs: number | undefined;
  /** Why it is given no work although it asks for some. */
  readonly cordonReason: string | undefined;
  /** Trouble that kept it from executing when it was last heard, in words: a model that loads, a server that is not there. */
  readonly trouble: string | undefined;
  /** Why it can execute nothing of the run although it has the run's plugin, and what to do: it has other versions. */
  readonly unfitReason: string | undefined;
}

export interface WorkerDetail extends WorkerSummary, Omit<Plain<GetWorkerResponse>, "info"> {
  /** Items that it has, started or not: at most 1,000. */
  readonly holds: readonly { readonly item: string; readonly attempt: number }[];
  /** Its part in the release that is not over, in words: whether it counts for the candidate, and which items it gets. */
  readonly releasePart: string | undefined;
}

/** All workers in order of id, a page a call. Throws the transport's rows. */
export async function listWorkers(calls: Client<typeof OperatorService>): Promise<WorkerSummary[]> {
  const workers: WorkerSummary[] = [];
  for (let afterWorkerId = ""; ;) {
    const page = await calls.listWorkers({ afterWorkerId });
    workers.push(...page.workers.map((info) => plainOf(WorkerInfoSchema, info) as WorkerSummary));
    const last = page.workers.at(-1);
    if (!page.more || last === undefined) return workers;
    afterWorkerId = last.workerId;
  }
}

/** The worker with this id, in any case of its letters. */
export function findWorker(workers: readonly WorkerSummary[], name: string): WorkerSummary | undefined {
  return workers.find(({ workerId }) => workerId === name.toUpperCase());
}

export function workerDetailOf(answer: GetWorkerResponse): WorkerDetail {
  const { info, ...more } = plainOf(GetWorkerResponseSchema, answer);
  return { ...(told(info) as WorkerSummary), ...more };
}

/** Nothing but steps is of interest. */
const COLLECT_MS = 2_000;

/** Resolves when the worker has left, or is lost on the way: `failed` then. Throws the transport's rows. */
export async function untilGone(
  calls: Client<typeof OperatorService>,
  workerId: WorkerId,
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal },
): Promise<"gone" | "failed"> {
  const news = new RunNews(calls, { clock, collectMs: COLLECT_MS });
  for (;;) {
    await news.next(signal);
    const { state, liveness } = workerDetailOf(await calls.getWorker({ workerId }));
    if (state === "gone" || liveness === "removed") return "gone";
    if (liveness === "failed") return "failed";
  }
}
