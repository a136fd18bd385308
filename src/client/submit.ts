// Items into a run, in batches of a bounded number of bytes. Each batch is on stable storage when its answer comes; a batch
// whose answer was lost is sent again by the transport and taken once.
import { createHash } from "node:crypto";
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { StoreId } from "../base/ids.ts";
import { newUlid, ulidToBytes } from "../base/ids.ts";
import type { Clock } from "../base/clock.ts";
import type { Random } from "../base/random.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";

export interface Submitted {
  readonly added: number;
  readonly known: number;
}

export interface SubmitOptions {
  readonly taskDigest: Uint8Array;
  readonly priority: number;
  readonly clock: Clock;
  readonly random: Random;
  /** Told after each batch. */
  readonly onProgress?: (soFar: Submitted) => void;
}

const BATCH_ITEMS = 2_000;
const BATCH_BYTES = 1024 * 1024;

/** What is run, as a number: the part of an item's identity that is not its content. */
export function taskDigestOf(task: {
  readonly plugin: string;
  readonly command: readonly string[];
}): Uint8Array {
  return createHash("sha256")
    .update(JSON.stringify([task.plugin, task.command]))
    .digest();
}

/** Throws the transport's rows, and what `lines` throws; what was answered before stays submitted. */
export async function submitLines(
  transport: Transport,
  lines: AsyncIterable<Uint8Array>,
  { taskDigest, priority, clock, random, onProgress }: SubmitOptions,
): Promise<Submitted> {
  const client = createClient(RunService, transport);
  const submissionId = ulidToBytes(newUlid<StoreId>(clock, random));
  let total: Submitted = { added: 0, known: 0 };
  let batchNumber = 0n;
  for await (const payloads of batches(lines)) {
    batchNumber++;
    const items = payloads.map((payload) => ({ payload, priority }));
    const { added, known } = await client.submit({ submissionId, batchNumber, taskDigest, items });
    total = { added: total.added + Number(added), known: total.known + Number(known) };
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
    // What stands before a line that is no item is submitted all the same, as the refusal says.
    if (batch.length > 0) yield batch;
    throw error;
  }
  if (batch.length > 0) yield batch;
}
