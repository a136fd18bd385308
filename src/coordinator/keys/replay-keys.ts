// The keys of a new leader, from the store: all of them, but for their states and what waits behind their heads, which is read as it is
// needed. So what comes in never waits for a look-up, and the number of keys is bounded (C4, C8).
import { recordChecksum } from "../../storage/codec.ts";
import { ASSIGNMENT_KEY, KEY_NUMBERS_KEY, KEYS_PREFIX, PARTITIONS_PREFIX } from "../../storage/keys.ts";
import { corrupt, pagesUnder, readRecord, recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import type { Place } from "../ledger/place.ts";
import { addToSum } from "../ledger/tally.ts";
import { assignmentRecord } from "./assignment.ts";
import { keyChart, NO_ROW } from "./key.ts";
import { keyNumbersRecord, keyRecord } from "./key-records.ts";
import type { KeyRecord } from "./key-records.ts";
import { keysMatch } from "./key-rows.ts";
import { Keys } from "./keys.ts";
import { partitionRecord } from "./partition-record.ts";
import type { KeysOptions } from "./key-settings.ts";

const PAGE = 1_000;

/** `isRunning` says of a place whether somebody has its item. Throws store_corrupt or store_newer, naming the key. */
export async function replayKeys(
  store: Store,
  options: Omit<KeysOptions, "numbers" | "assignment">,
  isRunning: (place: Place) => boolean,
): Promise<Keys> {
  const numbers = await readRecord(store, KEY_NUMBERS_KEY, keyNumbersRecord);
  const assignment = await readRecord(store, ASSIGNMENT_KEY, assignmentRecord);
  const keys = new Keys({ ...options, numbers, assignment });
  if (numbers === undefined) return keys;
  const found = { count: 0, sum: 0 };
  let mail = 0;
  for await (const page of pagesUnder(store, KEYS_PREFIX, PAGE))
    for (const entry of page) {
      const record = recordOf(store, entry, keyRecord);
      const checksum = recordChecksum(entry.value);
      found.count++;
      found.sum = addToSum(found.sum, checksum);
      mail += restore(store, keys, { row: entry.key, record, checksum }, isRunning);
    }
  if (!keysMatch(numbers, "keys", found))
    return corrupt(
      store,
      KEY_NUMBERS_KEY,
      `${numbers.segments.keys.count} keys were counted, and ${found.count} whole ones are there`,
    );
  if (mail !== numbers.segments.mail.count)
    return corrupt(
      store,
      KEY_NUMBERS_KEY,
      `${numbers.segments.mail.count} items behind others of their keys were counted, and the keys have ${mail}`,
    );
  await restoreCheckpoints(store, keys);
  return keys;
}

async function restoreCheckpoints(store: Store, { warmth: { checkpoints } }: Keys): Promise<void> {
  for await (const page of pagesUnder(store, PARTITIONS_PREFIX, PAGE))
    for (const entry of page) {
      const record = recordOf(store, entry, partitionRecord);
      checkpoints.set(record.partition, record);
    }
}

/** Returns how many items stand behind its head. */
function restore(
  store: Store,
  keys: Keys,
  { row, record, checksum }: { readonly row: string; readonly record: KeyRecord; readonly checksum: number },
  isRunning: (place: Place) => boolean,
): number {
  const { text, state, head, mail, isPaused, hasFailed, isDelayed } = record;
  const index = keyChart.indexOf(state) ?? corrupt(store, row, `no state ${state} in the chart of a key`);
  const key = keys.table.ensure(text);
  if (state !== "Idle") key.row = { state: index, context: { mail, isPaused, hasFailed, isDelayed } };
  key.head = head === "" ? undefined : { place: head, item: undefined };
  key.commit = record.commit;
  key.hasState = record.stateChecksum !== null;
  key.stateChecksum = record.stateChecksum ?? NO_ROW;
  key.stateVersion = record.stateVersion;
  key.why = record.why;
  key.last = record.last === "" ? undefined : record.last;
  key.checksum = checksum;
  keys.restore(key, { isRunning: head !== "" && isRunning(head) });
  return key.behind;
}
