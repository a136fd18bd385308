// Looks at a run from outside, as an operator would, and at what is left of it when it is over: the ledger on disk and the
// journal that every execution wrote to.
import { readFileSync } from "node:fs";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { RolloutError } from "../../src/base/errors.ts";
import type { RunStatus } from "../../src/client/run-status.ts";
import { doneRecord } from "../../src/coordinator/ledger/records.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { DONE_PREFIX } from "../../src/storage/keys.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { nextKey, prefixRange } from "../../src/storage/store.ts";
import type { Cluster } from "./cluster.ts";

const POLL_MS = 20;
/** The longer it takes, the rarer it asks: that costs the coordinator and this process something each time. */
const POLL_SHARE = 0.05;
const POLL_MS_MAX = 100;
const PATIENCE_MS = 240_000;

/** Asks how the run stands until the answer is as wanted; a coordinator that is away is asked again. */
export function runUntil(cluster: Cluster, wanted: (status: RunStatus) => boolean): Promise<RunStatus> {
  return cluster.ask(async (client) => {
    const startedMs = systemClock.monotonicMs();
    let last: RunStatus | undefined;
    for (let waitedMs = 0; waitedMs < PATIENCE_MS; waitedMs = systemClock.monotonicMs() - startedMs) {
      last = await client.status().catch((error: unknown) => {
        if (error instanceof RolloutError && error.row.exit === 3) return undefined;
        throw error;
      });
      if (last !== undefined && wanted(last)) return last;
      await sleep(systemClock, Math.min(POLL_MS_MAX, Math.max(POLL_MS, waitedMs * POLL_SHARE)));
    }
    throw new Error(`the run did not come to it; it is ${JSON.stringify(last)}`);
  });
}

export interface Execution {
  readonly item: string;
  readonly attempt: number;
  readonly worker: string;
  readonly pid: number;
}

/** Every execution that began, in order, by what the executions themselves wrote. */
export function readJournal(file: string): Execution[] {
  return readFileSync(file, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => {
      const [item = "", attempt, worker = "", pid] = line.split(" ");
      return { item, attempt: Number(attempt), worker, pid: Number(pid) };
    });
}

/** The ids of the items that have a result in the database, in hex. Nobody may have it open. */
export async function readResults(path: string): Promise<string[]> {
  const rows = await readRows(path, DONE_PREFIX, doneRecord);
  return rows.map(({ id }) => Buffer.from(id).toString("hex"));
}

/** Rows under a prefix in the database. Nobody may have it open. */
export async function readRows<T>(path: string, prefix: string, type: RecordType<T>): Promise<T[]> {
  const store = await openLevelStore({ path, holderName: "test", clock: systemClock });
  try {
    const rows: T[] = [];
    const { from: start, to } = prefixRange(prefix);
    for (let from = start; ;) {
      const page = await store.scan({ from, to, limit: 1_000 });
      for (const { key, value } of page)
        rows.push(okOrFailure(store.location, decodeRecord(type, key, value)));
      const last = page.at(-1);
      if (last === undefined) return rows;
      from = nextKey(last.key);
    }
  } finally {
    await store.close();
  }
}
