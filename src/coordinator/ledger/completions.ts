// The order in which items became final: one record per turn that finished any, so that whoever follows the results reads them in
// order without a row of its own for each.
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { COMPLETIONS_PREFIX, RECORD_KIND } from "../../storage/keys.ts";
import { corrupt, readRecord, recordOf } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { isPlace } from "./place.ts";
import type { Place } from "./place.ts";

const NUMBER_DIGITS = 12;

export const completionsRecord: RecordType<readonly Place[]> = {
  kind: RECORD_KIND.completions,
  name: "completions",
  encode: (places) => [places],
  decode: (fields) => fields.texts(0).map((text) => (isPlace(text) ? text : fields.refuse(0, "is no place"))),
};

/** `number` counts these records from 0. */
export function completionsEntry(number: number, places: readonly Place[]): Entry {
  const key = completionsKey(number);
  return { key, value: encodeRecord(completionsRecord, key, places) };
}

/** Bytes of these records that are read at once, about: they are small where items become final one by one. */
const READ_BYTES = 16 * 1_024;
const READ_ROWS = 256;

/**
 * The records of these numbers, from the first one on: as many as are read at once, at least one. Throws store_corrupt, also when the
 * first one is missing: they are numbered without gaps.
 */
export async function readCompletions(
  store: Store,
  { from, to }: { readonly from: number; readonly to: number },
): Promise<readonly (readonly Place[])[]> {
  const range = { from: completionsKey(from), to: completionsKey(to) };
  // One alone is what somebody who follows closely reads: a store that has just written it need not look for it.
  if (to === from + 1) return [await readOne(store, range.from)];
  const rows = await store.scan({ ...range, limit: READ_ROWS, bytesMax: READ_BYTES });
  const gap = rows.findIndex(({ key }, at) => key !== completionsKey(from + at));
  const found = gap === -1 ? rows : rows.slice(0, gap);
  if (found.length === 0) return corrupt(store, range.from, "which items became final is missing");
  return found.map((row) => recordOf(store, row, completionsRecord));
}

async function readOne(store: Store, key: string): Promise<readonly Place[]> {
  const places = await readRecord(store, key, completionsRecord);
  return places ?? corrupt(store, key, "which items became final is missing");
}

function completionsKey(number: number): string {
  return `${COMPLETIONS_PREFIX}${number.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}
