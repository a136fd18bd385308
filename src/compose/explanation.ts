// Why an item or a worker is where it is, asked of the coordinator and put in words: for `rollout explain` and for the page.
import { failure, RolloutError } from "../base/errors.ts";
import type { HintedLine } from "../cli/shell-words.ts";
import { allocationSentence } from "../cli/render/fleet.ts";
import { itemSentences, itemText } from "../cli/render/explain-item.ts";
import { workerDetailText, workerSentences } from "../cli/render/explain-worker.ts";
import { listFleets } from "../client/fleets.ts";
import type { Allocation } from "../client/fleets.ts";
import { askForItem, isUnknownItem, itemOf } from "../client/items.ts";
import { originObject } from "../client/origin.ts";
import { jsonOf, told } from "../client/operator-message.ts";
import type { RunStatus } from "../client/run-status.ts";
import { findWorker, workerDetailOf } from "../client/workers.ts";
import type { WorkerSummary } from "../client/workers.ts";
import { AllocationSchema } from "../gen/rollout/v1/fleet_pb.ts";
import { GetWorkerResponseSchema, ItemSchema } from "../gen/rollout/v1/run_pb.ts";
import { actorObject, actorOf, actorText } from "./actor-views.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface Explanation {
  /** As `--json` has it. */
  readonly object: Readonly<Record<string, unknown>>;
  /** Ends with a line ending. */
  readonly text: string;
}

export interface ExplanationOptions {
  /** By the wall clock. */
  readonly nowMs: number;
  readonly line: HintedLine;
}

/** A worker if one has that id, an actor if it is TYPE/ID of one, else an item. Rejects with name_unknown and the transport's rows. */
export async function explain(
  client: RolloutClient,
  name: string,
  options: ExplanationOptions,
): Promise<Explanation> {
  const situation = await situationOf(client);
  return (
    (await workerIn(client, name, situation, options)) ??
    (await actorIn(client, name, options)) ??
    itemIn(client, name, situation, options)
  );
}

/** Undefined for what is no name of an actor that the run has. */
async function actorIn(
  client: RolloutClient,
  name: string,
  { line, nowMs }: ExplanationOptions,
): Promise<Explanation | undefined> {
  if (!name.includes("/")) return undefined;
  try {
    const view = actorOf(await client.key(name, { withState: true }));
    return { object: { kind: "actor", ...actorObject(view) }, text: actorText(view, line, nowMs) };
  } catch (error) {
    if (error instanceof RolloutError && error.code === "key_unknown") return undefined;
    throw error;
  }
}

/** Undefined when there is none. Rejects with the transport's rows. */
export async function explainWorker(
  client: RolloutClient,
  id: string,
  options: ExplanationOptions,
): Promise<Explanation | undefined> {
  return workerIn(client, id, await situationOf(client), options);
}

/** Rejects with name_unknown, item_ambiguous and the transport's rows. */
export async function explainItem(
  client: RolloutClient,
  name: string,
  options: ExplanationOptions,
): Promise<Explanation> {
  return itemIn(client, name, await situationOf(client), options);
}

interface Situation {
  readonly run: RunStatus;
  readonly workers: readonly WorkerSummary[];
}

async function situationOf(client: RolloutClient): Promise<Situation> {
  const [run, workers] = await Promise.all([client.status(), client.workers()]);
  return { run, workers };
}

async function workerIn(
  client: RolloutClient,
  name: string,
  { run, workers }: Situation,
  options: ExplanationOptions,
): Promise<Explanation | undefined> {
  const summary = findWorker(workers, name);
  if (summary === undefined) return undefined;
  const answer = await client.calls.getWorker({ workerId: summary.workerId });
  const worker = workerDetailOf(answer);
  const { info, ...detail } = jsonOf(GetWorkerResponseSchema, answer);
  const allocation = await allocationOf(client, summary.workerId, run);
  const ofFleet = allocation === undefined ? [] : [allocationSentence(allocation, options.nowMs)];
  const explanation = [...workerSentences(worker, run, options.line), ...ofFleet];
  const shown = allocation === undefined ? null : jsonOf(AllocationSchema, allocation);
  return {
    object: { kind: "worker", ...(info as object), explanation, ...detail, allocation: shown },
    text: workerDetailText(worker, run, { ...options, ofFleet }),
  };
}

/** The allocation of a fleet whose worker it is; undefined for one that was started by hand. */
async function allocationOf(
  client: RolloutClient,
  workerId: string,
  { fleets }: RunStatus,
): Promise<Allocation | undefined> {
  if (fleets.length === 0) return undefined;
  const found = await listFleets(client.fleetCalls, { withOver: true });
  return found.flatMap(({ allocations }) => allocations).find(({ allocation }) => allocation === workerId);
}

async function itemIn(
  client: RolloutClient,
  name: string,
  { run, workers }: Situation,
  { nowMs, line }: ExplanationOptions,
): Promise<Explanation> {
  const answer = await askForItem(client.calls, name).catch((error: unknown) => {
    if (!isUnknownItem(error)) throw error;
    throw failure("name_unknown", { name: error.params["name"] ?? name }, error);
  });
  const situation = { item: itemOf(answer), run, workers, nowMs, line };
  const { item, id, state, ...rest } = jsonOf(ItemSchema, told(answer.item));
  const explanation = itemSentences(situation);
  const origin = originObject(situation.item.origin);
  return {
    object: { kind: "item", item, id, state, explanation, ...rest, origin },
    text: itemText(situation),
  };
}
