// Items into a run, in batches of a bounded number of bytes. Each batch is on stable storage when its answer comes; a batch
// whose answer was lost is sent again by the transport and taken once.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { StoreId } from "../base/ids.ts";
import { newUlid, ulidToBytes } from "../base/ids.ts";
import type { Task } from "../config/task.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import { labelOf } from "./label.ts";
import { LineCounter } from "./line-counter.ts";

export interface Submitted {
  readonly added: number;
  readonly known: number;
  /** Lines, among both, that are equal to one before them. */
  readonly duplicates: number;
}

export interface SubmitOptions {
  /** The task that is run. A run is of one task: the first that is submitted to it. */
  readonly task: Task;
  readonly priority: number;
  /** Add to a run that was sealed, if there is anything new; it is open again then. */
  readonly reopen?: boolean;
  /** Only count what would become of the lines: nothing is submitted. */
  readonly dryRun?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  /** Told after each batch. */
  readonly onProgress?: (soFar: Submitted) => void;
}

const BATCH_ITEMS = 2_000;
const BATCH_BYTES = 1024 * 1024;

/** Throws the transport's rows, and what `lines` throws; what was answered before stays submitted. */
export async function submitLines(
  transport: Transport,
  lines: AsyncIterable<Uint8Array>,
  { task, priority, reopen = false, dryRun = false, clock, random, onProgress }: SubmitOptions,
): Promise<Submitted> {
  const client = createClient(RunService, transport);
  const submissionId = ulidToBytes(newUlid<StoreId>(clock, random));
  const { plugin, digest: taskDigest, summary: taskSummary } = task;
  const about = { submissionId, taskDigest, plugin, taskSummary, reopen, dryRun };
  // Otherwise the coordinator counts, for whom a lost answer is no reason to count twice.
  const counter = dryRun ? new LineCounter() : undefined;
  let total: Submitted = { added: 0, known: 0, duplicates: 0 };
  let batchNumber = 0n;
  for await (const payloads of batches(lines)) {
    batchNumber++;
    const items = payloads.map((payload) => ({
      ...{ payload, priority, label: labelOf(payload) },
      sampleIndex: counter?.count(payload) ?? 0,
    }));
    const { added, known, duplicates } = await client.submit({ ...about, batchNumber, items });
    total = {
      added: total.added + Number(added),
      known: total.known + Number(known),
      duplicates: total.duplicates + Number(duplicates),
    };
    onProgress?.(total);
  }
  return total;
}

async function* batches(lines: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array[]> {
  let batch: Uint8Array[] = [];
  let bytes = 0;
  try {
    for await (const line of lines) {
      if (batch.length >= BATCH_ITEMS || (batch.length > 0 && bytes + line.length > BATCH_BYTES)) {
        yield batch;
        [batch, bytes] = [[], 0];
      }
      batch.push(line);
      bytes += line.length;
    }
  } catch (error) {
    // Items before a line that is no item are submitted all the same, as the refusal says.
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}
