// The order in which items became final: one record per turn that finished any, so that whoever follows the results reads them in
// order without a row of its own for each.
import { encodeRecord } from "../../storage/codec.ts";
import type { RecordType } from "../../storage/codec.ts";
import { COMPLETIONS_PREFIX, RECORD_KIND } from "../../storage/keys.ts";
import { corrupt, readRecord } from "../../storage/records.ts";
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

/** Throws store_corrupt, also when there is no such record: they are numbered without gaps. */
export async function readCompletions(store: Store, number: number): Promise<readonly Place[]> {
  const key = completionsKey(number);
  const places = await readRecord(store, key, completionsRecord);
  return places ?? corrupt(store, key, "which items became final is missing");
}

function completionsKey(number: number): string {
  return `${COMPLETIONS_PREFIX}${number.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}
