// Rows that could not be read and were set aside, as they were, under their own keys behind a prefix. A leader reads which items stand
// in them: they are not given out, and a run without them is complete but for them.
import type { RecordType } from "../../storage/codec.ts";
import { ITEMS_PREFIX, QUARANTINE_PREFIX, RECORD_KIND } from "../../storage/keys.ts";
import { readRecord, recordsUnder } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { itemRecord } from "./records.ts";
import { isPlace } from "./place.ts";
import type { Place } from "./place.ts";

export interface QuarantineRecord {
  /** As it was found; empty for what was whole and went with it. */
  readonly bytes: Uint8Array;
  readonly reason: string;
  /** Place of the item that has no result because of it; null when there is none. */
  readonly place: Place | null;
  readonly atWallMs: number;
}

export const quarantineRecord: RecordType<QuarantineRecord> = {
  kind: RECORD_KIND.quarantine,
  name: "quarantine",
  encode: ({ bytes, reason, place, atWallMs }) => [bytes, reason, place, atWallMs],
  decode: (fields) => {
    const place = fields.isNull(2) ? null : fields.text(2);
    if (place !== null && !isPlace(place)) return fields.refuse(2, "is no place");
    return { bytes: fields.bytes(0), reason: fields.text(1), place, atWallMs: fields.number(3) };
  },
};

export function quarantineKey(key: string): string {
  return `${QUARANTINE_PREFIX}${key}`;
}

/** An item that stands in quarantine. */
export interface SetAsideItem {
  readonly place: Place;
  readonly id: Uint8Array;
  /** Key of the row that was set aside. */
  readonly key: string;
}

const PAGE = 100;
const PAGE_BYTES = 4 * 2 ** 20;

/** By place. Throws store_corrupt, naming the key. */
export async function readSetAside(store: Store): Promise<ReadonlyMap<Place, SetAsideItem>> {
  const items = new Map<Place, SetAsideItem>();
  const rows = recordsUnder(store, QUARANTINE_PREFIX, quarantineRecord, PAGE, PAGE_BYTES);
  for await (const { key, record } of rows) {
    const { place } = record;
    if (place === null || items.has(place)) continue;
    const item = await readRecord(store, `${ITEMS_PREFIX}${place}`, itemRecord);
    const id = item?.id ?? new Uint8Array();
    items.set(place, { place, id, key: key.slice(QUARANTINE_PREFIX.length) });
  }
  return items;
}
