// What operators ask.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import type { WorkerId } from "../../base/ids.ts";
import { parseUlidBytes } from "../../base/ids.ts";
import { RunState } from "../../gen/rollout/v1/run_pb.ts";
import type { GetRunResponse, NewItem, RunService, SubmitRequest } from "../../gen/rollout/v1/run_pb.ts";
import type { Store } from "../../storage/store.ts";
import { PRIORITY_MAX, PRIORITY_MIN } from "../ledger/place.ts";
import type { RunView } from "../run-view.ts";
import type { SubmissionVerdict } from "../submission-record.ts";
import type { WorkerListing } from "../worker-view.ts";
import type { Leader } from "./leader.ts";
import { ask } from "./leader.ts";
import { writeWorker } from "./messages.ts";
import { planSubmission } from "./plan-submission.ts";
import type { Line, Lines } from "./plan-submission.ts";

const PAGE_MAX = 1_000;
const LINES_MAX = 10_000;
const PAYLOAD_BYTES_MAX = 1024 * 1024;
const KEY_BYTES_MAX = 256;
const DIGEST_BYTES = 32;

/** `store` is read for what a submission names; nothing is written past the reactor. */
export function runService(leader: Leader, store: Store): ServiceImpl<typeof RunService> {
  const takeTurn = turnstile();
  return {
    async listWorkers({ afterWorkerId, limit }) {
      const after = afterWorkerId.length === 0 ? "" : parseUlidBytes<WorkerId>(afterWorkerId);
      if (after === undefined) return refuse("ListWorkers", "after_worker_id is not 16 bytes");
      const { workers, more } = await ask<WorkerListing>(leader, (answer) => ({
        kind: "listWorkers",
        after,
        limit: limit === 0 ? PAGE_MAX : Math.min(limit, PAGE_MAX),
        answer,
      }));
      return { coordinator: leader.envelope, workers: workers.map(writeWorker), more };
    },

    async submit(request) {
      const batch = readBatch(request);
      const { added, known } = await takeTurn(async () => {
        const planned = await planSubmission(store, batch);
        switch (planned.kind) {
          case "answered":
            return planned.answer;
          case "gap":
            return refuse("Submit", `batch ${batch.batchNumber} came before batch ${batch.batchNumber - 1}`);
          case "planned": {
            const input = { kind: "submit", batch: planned.batch } as const;
            const verdict = await ask<SubmissionVerdict>(leader, (answer) => ({ ...input, answer }));
            return verdict.kind === "taken" ? verdict : refuseClosed();
          }
        }
      });
      return { coordinator: leader.envelope, added: BigInt(added), known: BigInt(known) };
    },

    async seal() {
      await ask<RunView>(leader, (answer) => ({ kind: "seal", answer }));
      return { coordinator: leader.envelope };
    },

    async getRun() {
      const view = await ask<RunView>(leader, (answer) => ({ kind: "getRun", answer }));
      return { coordinator: leader.envelope, ...writeRun(view) };
    },
  };
}

/** Lets one in at a time, in order of arrival. */
function turnstile(): <T>(pass: () => Promise<T>) => Promise<T> {
  let last: Promise<unknown> = Promise.resolve();
  return (pass) => {
    const passed = last.then(pass, pass);
    last = passed;
    return passed;
  };
}

function readBatch({ submissionId, batchNumber, taskDigest, items }: SubmitRequest): Lines {
  const submission = parseUlidBytes(submissionId);
  if (submission === undefined) return refuse("Submit", "submission_id is not 16 bytes");
  if (batchNumber < 1n) return refuse("Submit", "batch_number is not counted from 1");
  if (taskDigest.length !== DIGEST_BYTES) return refuse("Submit", "task_digest is not 32 bytes");
  if (items.length > LINES_MAX) return refuse("Submit", `more than ${LINES_MAX} items in one batch`);
  return { submission, batchNumber: Number(batchNumber), taskDigest, lines: items.map(readLine) };
}

function readLine({ payload, key, priority }: NewItem): Line {
  if (payload.length > PAYLOAD_BYTES_MAX)
    return refuse("Submit", `a payload of ${payload.length} bytes; the limit is ${PAYLOAD_BYTES_MAX}`);
  if (Buffer.byteLength(key) > KEY_BYTES_MAX)
    return refuse("Submit", `a key is longer than ${KEY_BYTES_MAX} bytes`);
  if (priority < PRIORITY_MIN || priority > PRIORITY_MAX)
    return refuse("Submit", `priority ${priority} is not between ${PRIORITY_MIN} and ${PRIORITY_MAX}`);
  return { payload, key, priority };
}

const STATES: Readonly<Record<string, RunState>> = {
  "Open+Active": RunState.OPEN,
  "Sealed+Active": RunState.SEALED,
  "Complete+Active": RunState.COMPLETE,
  "Cancelled+Active": RunState.CANCELLED,
};

function writeRun({
  state,
  pending,
  running,
  done,
  failed,
}: RunView): Omit<GetRunResponse, "$typeName" | "coordinator"> {
  return {
    // Beside where it is, a run is active or paused; who is paused is shown so wherever it is.
    state: STATES[state] ?? RunState.PAUSED,
    pending: BigInt(pending),
    running: BigInt(running),
    done: BigInt(done),
    failed: BigInt(failed),
  };
}

function refuseClosed(): never {
  throw failure("run_sealed", {});
}

function refuse(method: string, reason: string): never {
  throw failure("request_invalid", { method, reason });
}
