// A database full of lamps, each written several times, for tests that damage it; and the examination that says whether
// the damage is noticed.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { RunId } from "../../src/base/ids.ts";
import { seededRandom } from "../../src/base/random.ts";
import { RolloutError } from "../../src/base/errors.ts";
import { decodeRecord, encodeRecord } from "../../src/storage/codec.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { claimStore } from "../../src/storage/store-identity.ts";
import { SegmentCount, verifySegment } from "../../src/storage/segment-count.ts";
import type { Segment } from "../../src/storage/segment-count.ts";
import type { Durability, Entry, Store } from "../../src/storage/store.ts";
import { batchOf } from "./batch.ts";
import { VirtualClock } from "./virtual-clock.ts";

const lamp: RecordType<readonly [number, string]> = {
  kind: 200,
  name: "lamp",
  version: 1,
  encode: (value) => value,
  decode: (fields) => [fields.integer(0), fields.text(1)],
  migrations: {},
};
export const lampSegment: Segment = { name: "lamps", prefix: "lamps/", record: lamp };
const LAMPS = 200;
const ROUNDS = 3;

const keyOf = (at: number): string => `lamps/${String(at).padStart(4, "0")}`;
const textFor = (at: number, round: number): string => `lamp ${at * 7_919} of round ${round}`.repeat(3);
const recordOf = (at: number, round: number): Entry => {
  const key = keyOf(at);
  return { key, value: encodeRecord(lamp, key, [at, textFor(at, round)]) };
};
// The same bytes in each run, so that a flipped bit of a seed is the same bit.
const claim = {
  runId: newUlid<RunId>(new VirtualClock(), seededRandom(1)),
  clock: new VirtualClock(),
  random: seededRandom(2),
  segments: [lampSegment],
};
export const openLamps = (path: string): Promise<Store> =>
  openLevelStore({ path, holderName: "damage test", clock: systemClock });

/** Writes every lamp, and then each of them again, ten in a batch. */
export async function fillLamps(path: string, durability: Durability): Promise<void> {
  const store = await openLamps(path);
  await claimStore(store, claim);
  const count = await SegmentCount.load(store, lampSegment);
  for (let round = 0; round < ROUNDS; round++) {
    for (let from = 0; from < LAMPS; from += 10) {
      const puts = Array.from({ length: 10 }, (_, at) => recordOf(from + at, round));
      for (const [at, { value }] of puts.entries()) {
        if (round === 0) count.added(value);
        else count.replaced(recordOf(from + at, round - 1).value, value);
      }
      await store.commit(batchOf({ puts: [...puts, count.entry()], durability }));
    }
  }
  await store.close();
}

export interface Finding {
  readonly key: string;
  readonly reason: string;
}

/** The damage that is reported of a database; undefined when none is, and then every value must be the last that was written. */
export async function examineLamps(path: string): Promise<Finding | undefined> {
  let store: Store | undefined;
  try {
    store = await openLamps(path);
    await claimStore(store, claim);
    const verified = await verifySegment(store, lampSegment);
    if (verified.kind === "corrupt") return verified;
    expect(verified).to.deep.equal({ kind: "ok", value: LAMPS });
    for (let at = 0; at < LAMPS; at++) {
      const value = (await store.get(keyOf(at))) ?? new Uint8Array(0);
      const expected = { kind: "ok", value: [at, textFor(at, ROUNDS - 1)] };
      expect(decodeRecord(lamp, keyOf(at), value)).to.deep.equal(expected);
    }
    return undefined;
  } catch (error) {
    if (!(error instanceof RolloutError)) throw error;
    expect(error.code).to.be.oneOf(["store_broken", "store_corrupt"]);
    return { key: error.params["key"] ?? "", reason: error.params["reason"] ?? "" };
  } finally {
    await store?.close();
  }
}
