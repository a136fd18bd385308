// Why an item or a worker is where it is, asked of the coordinator and put in words: for `rollout explain` and for the page.
import { failure } from "../base/errors.ts";
import type { HintedLine } from "../cli/shell-words.ts";
import { itemSentences, itemText } from "../cli/render/explain-item.ts";
import { workerDetailText, workerSentences } from "../cli/render/explain-worker.ts";
import { askForItem, isUnknownItem, itemOf } from "../client/items.ts";
import { jsonOf, told } from "../client/operator-message.ts";
import type { RunStatus } from "../client/run-status.ts";
import { findWorker, workerDetailOf } from "../client/workers.ts";
import type { WorkerSummary } from "../client/workers.ts";
import { GetWorkerResponseSchema, ItemSchema } from "../gen/rollout/v1/run_pb.ts";
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

/** A worker if one has that id, else an item. Rejects with name_unknown and the transport's rows. */
export async function explain(
  client: RolloutClient,
  name: string,
  options: ExplanationOptions,
): Promise<Explanation> {
  const situation = await situationOf(client);
  return (await workerIn(client, name, situation, options)) ?? itemIn(client, name, situation, options);
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
  const explanation = workerSentences(worker, run, options.line);
  return {
    object: { kind: "worker", ...(info as object), explanation, ...detail },
    text: workerDetailText(worker, run, options),
  };
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
  return { object: { kind: "item", item, id, state, explanation, ...rest }, text: itemText(situation) };
}
