// Rows of a ledger as they stand in a store that was written long ago: their layout is written down here a second time,
// so that a change of it in the product is noticed.
import { decodeRecord, encodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, LEDGER_CHARTS_KEY, RECORD_KIND } from "../../src/storage/keys.ts";
import type { Entry, Store } from "../../src/storage/store.ts";

type ChartStamp = readonly [id: string, version: string, structure: string];

const leaseRow: RecordType<readonly [epoch: number, holder: string | null, renewals: number]> = {
  kind: RECORD_KIND.lease,
  name: "lease",
  version: 1,
  migrations: {},
  encode: (row) => row,
  decode: (fields) => [fields.integer(0), fields.isNull(1) ? null : fields.text(1), fields.integer(2)],
};

const epochRow: RecordType<number> = {
  kind: RECORD_KIND.epoch,
  name: "epoch",
  version: 1,
  migrations: {},
  encode: (epoch) => [epoch],
  decode: (fields) => fields.integer(0),
};

const chartsRow: RecordType<readonly ChartStamp[]> = {
  kind: RECORD_KIND.ledgerCharts,
  name: "ledger charts",
  version: 1,
  migrations: {},
  encode: (stamps) => [stamps],
  decode: (fields) => fields.tuples(0).map((stamp) => [stamp.text(0), stamp.text(1), stamp.text(2)] as const),
};

export function leaseEntry(epoch: number, holder: string | null): Entry {
  const key = COORDINATOR_LEASE_KEY;
  return { key, value: encodeRecord(leaseRow, key, [epoch, holder, 0]) };
}

export function epochEntry(epoch: number): Entry {
  return { key: EPOCH_KEY, value: encodeRecord(epochRow, EPOCH_KEY, epoch) };
}

export function chartsEntry(...stamps: ChartStamp[]): Entry {
  const key = LEDGER_CHARTS_KEY;
  return { key, value: encodeRecord(chartsRow, key, stamps) };
}

/** The leader, by both rows: the lease's epoch and holder, and the ledger's epoch. */
export async function leadershipIn(store: Store): Promise<{ lease: unknown; epoch: unknown }> {
  const read = async <T>(type: RecordType<T>, key: string): Promise<T | undefined> => {
    const bytes = await store.get(key);
    return bytes && okOrFailure(store.location, decodeRecord(type, key, bytes));
  };
  const lease = await read(leaseRow, COORDINATOR_LEASE_KEY);
  return { lease: lease?.slice(0, 2), epoch: await read(epochRow, EPOCH_KEY) };
}
