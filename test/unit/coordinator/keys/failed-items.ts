// Items that have failed, as an operator's retry takes them from the store.
import { recordChecksum } from "../../../../src/storage/codec.ts";
import type { FailedItem } from "../../../../src/coordinator/ledger/ledger.ts";
import { placeOfKey } from "../../../../src/coordinator/ledger/place.ts";
import { failedRecord, itemRecord } from "../../../../src/coordinator/ledger/records.ts";
import { FAILED_PREFIX, ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { readRecord, recordOf } from "../../../../src/storage/records.ts";
import type { World } from "../../../support/world.ts";

/** In order of their places. */
export async function failedItems(world: World): Promise<FailedItem[]> {
  const { store } = world;
  const rows = await world.rowsUnder(FAILED_PREFIX);
  return Promise.all(
    rows.map(async (entry) => {
      const { id, attempt, class: as, message, isApart } = recordOf(store, entry, failedRecord);
      const place = placeOfKey(store, FAILED_PREFIX, entry.key);
      const item = await readRecord(store, `${ITEMS_PREFIX}${place}`, itemRecord);
      const checksum = recordChecksum(entry.value);
      return { place, id, attempt, class: as, message, isApart, checksum, key: item?.key ?? "" };
    }),
  );
}
