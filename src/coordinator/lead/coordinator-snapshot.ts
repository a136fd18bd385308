// The snapshot that a leader publishes with each heartbeat: how far the queue has been given out, what is in flight, and what each worker has done. A
// turn writes it, so it agrees with the ledger of its batch. Followers apply it; the next leader goes on with what is in no other row,
// and checks by the rest that the ledger that it has read is no older.
import { failure } from "../../base/errors.ts";
import { epoch } from "../../base/ids.ts";
import type { Epoch, WorkerId } from "../../base/ids.ts";
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { COORDINATOR_SNAPSHOT_KEY, RECORD_KIND } from "../../storage/keys.ts";
import { readRecord } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";

/** A worker's part in the run, over all leaderships. */
export interface Usage {
  readonly done: number;
  /** Attempts that have failed there by their own doing. */
  readonly failed: number;
  /** For how long its attempts have executed, by its own word. */
  readonly executedMs: number;
}

export interface CoordinatorSnapshot {
  readonly epoch: Epoch;
  /** Grows with each one, over all leaderships. */
  readonly number: number;
  /** Priority → the first sequence of it that was never given out. */
  readonly cursors: ReadonlyMap<number, number>;
  readonly nextSequence: number;
  readonly nextCompletion: number;
  readonly pending: number;
  readonly inFlight: number;
  readonly done: number;
  readonly failed: number;
  readonly usage: ReadonlyMap<WorkerId, Usage>;
}

export const snapshotRecord: RecordType<CoordinatorSnapshot> = {
  kind: RECORD_KIND.coordinatorSnapshot,
  name: "coordinator snapshot",
  encode: (snapshot) => [
    snapshot.epoch,
    snapshot.number,
    [...snapshot.cursors],
    snapshot.nextSequence,
    snapshot.nextCompletion,
    [snapshot.pending, snapshot.inFlight, snapshot.done, snapshot.failed],
    [...snapshot.usage].map(([worker, { done, failed, executedMs }]) => [worker, done, failed, executedMs]),
  ],
  decode: (fields) => {
    const counts = fields.tuple(5);
    return {
      epoch: epoch(fields.integer(0)),
      number: fields.integer(1),
      cursors: new Map(fields.tuples(2).map((cursor) => [cursor.integer(0), cursor.integer(1)])),
      nextSequence: fields.integer(3),
      nextCompletion: fields.integer(4),
      pending: counts.integer(0),
      inFlight: counts.integer(1),
      done: counts.integer(2),
      failed: counts.integer(3),
      usage: new Map(
        fields
          .tuples(6)
          .map((one) => [
            one.text(0) as WorkerId,
            { done: one.integer(1), failed: one.integer(2), executedMs: one.number(3) },
          ]),
      ),
    };
  },
};

export function snapshotEntry(snapshot: CoordinatorSnapshot): Entry {
  const key = COORDINATOR_SNAPSHOT_KEY;
  return { key, value: encodeRecord(snapshotRecord, key, snapshot) };
}

/** The last one that was published; undefined when there is none. Throws store_corrupt or store_newer. */
export function readSnapshot(
  store: Pick<Store, "get" | "location">,
): Promise<CoordinatorSnapshot | undefined> {
  return readRecord(store as Store, COORDINATOR_SNAPSHOT_KEY, snapshotRecord);
}

/** Numbers of a ledger that only grow. */
export type Growing = Pick<CoordinatorSnapshot, "nextSequence" | "nextCompletion">;

/** Throws store_corrupt when the ledger lacks what the snapshot, which was written with it, has counted. */
export function demandNoOlder(
  { location }: Pick<Store, "location">,
  ledger: Growing,
  snapshot: CoordinatorSnapshot,
): void {
  for (const name of ["nextSequence", "nextCompletion"] as const) {
    if (ledger[name] >= snapshot[name]) continue;
    const reason = `the ledger stands at ${name} ${ledger[name]}, and it was at ${snapshot[name]} when this was written`;
    throw failure("store_corrupt", { path: location, key: COORDINATOR_SNAPSHOT_KEY, reason });
  }
}
