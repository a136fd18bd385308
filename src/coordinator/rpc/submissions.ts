// Items that come in: one batch at a time is compared with the ledger, so that between the look-ups and the commit nobody else
// may add the same item.
import type { ServiceImpl } from "@connectrpc/connect";
import { parseUlidBytes } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import type { NewItem, RunService, SubmitRequest } from "../../gen/rollout/v1/run_pb.ts";
import type { Store } from "../../storage/store.ts";
import { PRIORITY_MAX, PRIORITY_MIN } from "../ledger/place.ts";
import type { RunTask, RunView, SubmissionAnswer, SubmissionVerdict } from "../turn/run-view.ts";
import { otherTask } from "../run/submission.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { foresee, planSubmission } from "./plan-submission.ts";
import type { Line, Lines } from "./plan-submission.ts";
import { refuse, refuseIfCancelled, refuseSubmission } from "./refusals.ts";
import { turnstile } from "../../base/turnstile.ts";
import { COUNT_MAX, countFrom } from "./messages.ts";

const LINES_MAX = 10_000;
const DIGEST_BYTES = 32;

export function submissions(
  leader: Leader,
  store: Store,
): Pick<ServiceImpl<typeof RunService>, "submit" | "seal"> {
  const takeTurn = turnstile();
  return {
    async submit(request) {
      const { added, known, duplicates } = request.dryRun
        ? await wouldSubmit(leader, store, request)
        : await takeTurn(() => take(leader, store, readBatch(leader, request)));
      const counts = { added: BigInt(added), known: BigInt(known), duplicates: BigInt(duplicates) };
      return { coordinator: leader.envelope, ...counts };
    },

    async seal() {
      refuseIfCancelled(await ask<RunView>(leader, (answer) => ({ kind: "seal", answer })));
      return { coordinator: leader.envelope };
    },
  };
}

async function take(leader: Leader, store: Store, batch: Lines): Promise<SubmissionAnswer> {
  const planned = await planSubmission(store, batch);
  switch (planned.kind) {
    case "answered":
      return planned.answer;
    case "gap":
      return refuse("Submit", `batch ${batch.batchNumber} came before batch ${batch.batchNumber - 1}`);
    case "planned": {
      const input = { kind: "submit", batch: planned.batch } as const;
      const verdict = await ask<SubmissionVerdict>(leader, (answer) => ({ ...input, answer }));
      return verdict.kind === "taken" ? verdict : refuseSubmission(verdict, batch.task);
    }
  }
}

/** The same refusals, and the same counts if nothing comes between; nothing is written. */
async function wouldSubmit(leader: Leader, store: Store, request: SubmitRequest): Promise<SubmissionAnswer> {
  const task = readTask(request);
  const lines = readLines(request, (item) => ({ ...readLine(leader, item), sampleIndex: item.sampleIndex }));
  const { phase, task: ofRun } = await ask<RunView>(leader, (answer) => ({ kind: "getRun", answer }));
  if (phase === "cancelled") return refuseSubmission({ kind: "cancelled" }, task);
  const refusal = ofRun === null ? undefined : otherTask(ofRun, task);
  if (refusal !== undefined) return refuseSubmission(refusal, task);
  const foreseen = await foresee(store, task, lines);
  return phase === "open" || request.reopen || foreseen.added === 0
    ? foreseen
    : refuseSubmission({ kind: "sealed" }, task);
}

function readBatch(leader: Leader, request: SubmitRequest): Lines {
  const { submissionId, batchNumber } = request;
  const submission = parseUlidBytes(submissionId);
  if (submission === undefined) return refuse("Submit", "submission_id is not 16 bytes");
  const number = countFrom(batchNumber) ?? refuse("Submit", `batch_number is over ${COUNT_MAX}`);
  if (number < 1) return refuse("Submit", "batch_number is not counted from 1");
  const lines = readLines(request, (item) => readLine(leader, item));
  const { reopen } = request;
  return { submission, batchNumber: number, task: readTask(request), reopen, lines };
}

function readTask({ taskDigest: digest, plugin, taskSummary: summary }: SubmitRequest): RunTask {
  if (digest.length !== DIGEST_BYTES) return refuse("Submit", "task_digest is not 32 bytes");
  refuseLong("plugin", plugin, LIMITS.pluginTextBytes);
  refuseLong("task_summary", summary, LIMITS.taskSummaryBytes);
  // A copy: the run keeps it, and must not keep the whole message that it came in.
  return { digest: new Uint8Array(digest), plugin, summary };
}

function readLines<Read>({ items }: SubmitRequest, read: (item: NewItem) => Read): Read[] {
  if (items.length > LINES_MAX) return refuse("Submit", `more than ${LINES_MAX} items in one batch`);
  return items.map(read);
}

function readLine({ limits }: Leader, { payload, key, priority, label }: NewItem): Line {
  if (payload.length > limits.payloadBytes)
    return refuse(
      "Submit",
      `a payload of ${payload.length} bytes; the limit is ${limits.payloadBytes} (limits.payload)`,
    );
  refuseLong("a key", key, LIMITS.itemTextBytes);
  refuseLong("a label", label, LIMITS.itemTextBytes);
  if (priority < PRIORITY_MIN || priority > PRIORITY_MAX)
    return refuse("Submit", `priority ${priority} is not between ${PRIORITY_MIN} and ${PRIORITY_MAX}`);
  return { payload, key, priority, label };
}

function refuseLong(what: string, text: string, bytesMax: number): void {
  if (Buffer.byteLength(text) > bytesMax) refuse("Submit", `${what} is longer than ${bytesMax} bytes`);
}
