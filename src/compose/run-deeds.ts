// The deeds of an operator, and what came of each, in words: for the commands and for the page.
import { printable } from "../base/safe-text.ts";
import type { Retried } from "../client/run-control.ts";
import type { RunStatus } from "../client/run-status.ts";
import type { RetryOptions } from "./client-options.ts";
import type { RolloutClient } from "./rollout-client.ts";

export interface Outcome {
  /** As `--json` has it. */
  readonly object: object;
  /** Ends with a line ending. */
  readonly text: string;
}

/** The reason where an operator gives none. */
export const UNNAMED_REASON = "by an operator";

/** Rejects with run_cancelled and the transport's rows, as all of these do. */
export async function pauseRun(client: RolloutClient, reason: string): Promise<Outcome> {
  await client.pause(reason);
  const { state, pauseReason, running } = await client.status();
  const items = running === 1 ? "item" : `${running} items`;
  const left = running === 0 ? "no item is with a worker" : `workers finish the ${items} that they have`;
  const text =
    state === "paused"
      ? `The run is paused (${printable(pauseReason ?? "")}); ${left}.\n`
      : `The run is ${state}: there is nothing to pause.\n`;
  return { object: { state, pause_reason: pauseReason ?? null, running }, text };
}

export async function resumeRun(client: RolloutClient): Promise<Outcome> {
  await client.resume();
  const { state, pending, running } = await client.status();
  const left = pending + running;
  const isOver = state === "complete" || state === "cancelled";
  const text = isOver
    ? `The run is ${state}: there is nothing to resume.\n`
    : `The run goes on: ${left} item${left === 1 ? " is" : "s are"} not final yet.\n`;
  return { object: { state, pending, running }, text };
}

/** `confirm` is asked unless the run is over; it rejects when the run is to go on. */
export async function cancelRun(
  client: RolloutClient,
  confirm: (before: RunStatus) => Promise<void>,
): Promise<Outcome> {
  const before = await client.status();
  if (before.state === "complete" || before.state === "cancelled")
    return cancelled(before, `The run is ${before.state} already.\n`);
  await confirm(before);
  await client.cancel();
  const after = await client.status();
  const results = `${after.done} result${after.done === 1 ? " stays" : "s stay"}`;
  const rest = after.pending === 0 ? "" : `, and ${after.pending} of its items are never run`;
  return cancelled(after, `The run is cancelled: ${results}${rest}.\n`);
}

function cancelled({ state, done, failed, pending }: RunStatus, text: string): Outcome {
  return { object: { state, done, failed, pending }, text };
}

export async function retryItems(client: RolloutClient, choice: RetryOptions): Promise<Outcome> {
  const { retried, skipped } = await client.retry(choice);
  const isDry = choice.dryRun === true;
  return {
    object: { retried, skipped, dry_run: isDry },
    text: retriedSentence({ retried, skipped }, isDry),
  };
}

function retriedSentence({ retried, skipped }: Retried, isDry: boolean): string {
  const items = `${retried} item${retried === 1 ? "" : "s"}`;
  const [are, stay, they] = skipped === 1 ? ["is", "stays", "it is"] : ["are", "stay", "they are"];
  const rest =
    skipped === 0 ? "" : `; ${skipped} that ${are} not failed ${isDry ? "would stay" : stay} as ${they}`;
  return `${items} ${isDry ? "would run" : retried === 1 ? "runs" : "run"} again${rest}.\n`;
}

type Leaving = "draining" | "gone" | "failed";

const LEAVING_WORDS: Readonly<Record<Leaving, string>> = {
  draining: "is leaving",
  gone: "has left",
  failed: "was lost on its way: what it had is given to others",
};

/** Asks them to leave when all are known, and waits for them if wanted. Rejects with worker_unknown. */
export async function drainWorkers(
  client: RolloutClient,
  ids: readonly string[],
  wait: boolean,
): Promise<readonly Outcome[]> {
  for (const id of ids) await client.worker(id);
  for (const id of ids) await client.drainWorker(id);
  return Promise.all(
    ids.map(async (workerId) => {
      const state = wait ? await client.untilWorkerGone(workerId) : await leavingState(client, workerId);
      return { object: { worker_id: workerId, state }, text: `${workerId} ${LEAVING_WORDS[state]}\n` };
    }),
  );
}

async function leavingState(client: RolloutClient, workerId: string): Promise<Leaving> {
  const { state } = await client.worker(workerId);
  return state === "gone" ? "gone" : "draining";
}
