// Rows of a ledger as they stand in a store that was written long ago: their layout is written down here a second time,
// so that a change of it in the product is noticed.
import { decodeRecord, encodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import type { Decoded, RecordType } from "../../src/storage/codec.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY, LEDGER_CHARTS_KEY, RECORD_KIND } from "../../src/storage/keys.ts";
import type { Entry, Store } from "../../src/storage/store.ts";

type ChartStamp = readonly [id: string, version: string, structure: string];

/** As 0.1 has it. */
const leaseRowBefore: RecordType<readonly [epoch: number, holder: string | null, renewals: number]> = {
  kind: RECORD_KIND.lease,
  name: "lease",
  version: 1,
  migrations: {},
  encode: (row) => row,
  decode: (fields) => [fields.integer(0), fields.isNull(1) ? null : fields.text(1), fields.integer(2)],
};

type LeaseTuple = readonly [
  epoch: number,
  holder: string | null,
  renewals: number,
  address: string,
  generation: string,
  accepted: number,
  acceptedEpoch: number,
  acceptedCompletion: number,
  acceptedSubmitted: number,
  acceptedDone: number,
];

export const leaseRow: RecordType<LeaseTuple> = {
  kind: RECORD_KIND.lease,
  name: "lease",
  version: 2,
  migrations: { 1: (older) => [...leaseRowBefore.decode(older), "", "", 0, -1, 0, 0, 0] },
  encode: (row) => row,
  decode: (fields) => [
    fields.integer(0),
    fields.isNull(1) ? null : fields.text(1),
    fields.integer(2),
    fields.text(3),
    fields.text(4),
    fields.integer(5),
    fields.integer(6),
    fields.integer(7),
    fields.integer(8),
    fields.integer(9),
  ],
};

export const epochRow: RecordType<number> = {
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

/** As 0.1 has written it. */
export function leaseEntry(epoch: number, holder: string | null): Entry {
  const key = COORDINATOR_LEASE_KEY;
  return { key, value: encodeRecord(leaseRowBefore, key, [epoch, holder, 0]) };
}

/** The lease as 0.1 reads it. */
export function leaseAsBefore(bytes: Uint8Array): Decoded<unknown> {
  return decodeRecord(leaseRowBefore, COORDINATOR_LEASE_KEY, bytes);
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

/** The address and the generation that the lease names. */
export async function claimIn(store: Store): Promise<{ address: string; generation: string } | undefined> {
  const bytes = await store.get(COORDINATOR_LEASE_KEY);
  if (bytes === undefined) return undefined;
  const [, , , address, generation] = okOrFailure(
    store.location,
    decodeRecord(leaseRow, COORDINATOR_LEASE_KEY, bytes),
  );
  return { address, generation };
}
