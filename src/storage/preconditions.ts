// Demands of every implementation of the port on its callers. A call that breaks one of these is a bug of the caller
// and fails in the same way on each store, instead of working on one and being lost by another.
import { assert } from "../base/assert.ts";
import type { Batch, ScanRange } from "./store.ts";

const KEY = /^[!-~]+$/;

export function assertKey(key: string): void {
  // Called for every key of every batch: the message is made only when it is needed.
  if (!KEY.test(key)) assert(false, `a key is printable ASCII without spaces: ${JSON.stringify(key)}`);
}

export function assertRange(range: ScanRange): void {
  assert(Number.isSafeInteger(range.limit) && range.limit >= 1, `a scan has a limit: ${range.limit}`);
}

export function assertBatch(batch: Batch): void {
  for (const { key } of batch.puts) assertKey(key);
  for (const key of batch.deletes) assertKey(key);
  for (const { key } of batch.expect) assertKey(key);
}

export function assertOpen(open: boolean, location: string): void {
  assert(open, `the store ${location} was used after it was closed`);
}
