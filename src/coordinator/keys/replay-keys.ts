// The keys of a new leader, from the store: all of them, but for their states and what waits behind their heads, which is read as it is
// needed. So what comes in never waits for a look-up, and the number of keys is bounded (C4, C8).
import { recordChecksum } from "../../storage/codec.ts";
import {
  ASSIGNMENT_KEY,
  ITEMS_PREFIX,
  KEY_NUMBERS_KEY,
  KEYS_PREFIX,
  PARTITIONS_PREFIX,
  TIMERS_PREFIX,
} from "../../storage/keys.ts";
import { corrupt, pagesUnder, readRecord, recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import type { RunningItem } from "../ledger/ledger.ts";
import { isInside } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { itemRecord } from "../ledger/records.ts";
import { addToSum, NO_ROW } from "../ledger/tally.ts";
import { assignmentRecord } from "./assignment.ts";
import { keyChart, RUNNING } from "./key.ts";
import type { Letter } from "./key.ts";
import { keyNumbersRecord, keyRecord } from "./key-records.ts";
import type { KeyNumbers, KeyRecord } from "./key-records.ts";
import { keysMatch } from "./key-rows.ts";
import { Keys } from "./keys.ts";
import { partitionRecord } from "./partition-record.ts";
import type { KeysOptions } from "./key-settings.ts";
import { timerRecord } from "./timer-record.ts";
import { Timer } from "./timers.ts";

const PAGE = 1_000;

/** `holderOf` is the item at a place, if somebody has it. Throws store_corrupt or store_newer, naming the key. */
export async function replayKeys(
  store: Store,
  options: Omit<KeysOptions, "numbers" | "assignment">,
  holderOf: (place: Place) => Pick<RunningItem, "id"> | undefined,
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
      mail += restore(store, keys, { row: entry.key, record, checksum }, holderOf);
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
  await restoreTimers(store, keys, numbers);
  await restoreOrigins(store, keys);
  keys.wakeLeft(true);
  await restoreCheckpoints(store, keys);
  return keys;
}

/** All of them: there is a limit, and they may be due at once. */
async function restoreTimers(store: Store, keys: Keys, numbers: KeyNumbers): Promise<void> {
  const found = { count: 0, sum: 0 };
  for await (const page of pagesUnder(store, TIMERS_PREFIX, PAGE))
    for (const entry of page) {
      const record = recordOf(store, entry, timerRecord);
      const checksum = recordChecksum(entry.value);
      found.count++;
      found.sum = addToSum(found.sum, checksum);
      const key = keys.table.get(record.key) ?? corrupt(store, entry.key, `no key ${record.key} has set it`);
      keys.restoreTimer(key, new Timer(record, checksum));
    }
  if (keysMatch(numbers, "timers", found)) return;
  const reason = `${numbers.segments.timers.count} timers were counted, and ${found.count} whole ones are there`;
  corrupt(store, KEY_NUMBERS_KEY, reason);
}

/** Heads from inside that have begun are not read again: what made them has to be known when they end. */
async function restoreOrigins(store: Store, keys: Keys): Promise<void> {
  const heads: Letter[] = [];
  for (const { head, row } of keys.table)
    if (head !== undefined && isInside(head.place) && (row.state === RUNNING || row.context.hasFailed))
      heads.push(head);
  for (let at = 0; at < heads.length; at += PAGE) {
    const page = heads.slice(at, at + PAGE);
    const rows = await store.getMany(page.map(({ place }) => `${ITEMS_PREFIX}${place}`));
    for (const [index, head] of page.entries()) {
      const key = `${ITEMS_PREFIX}${head.place}`;
      const value = rows[index] ?? corrupt(store, key, "an item that its key names is missing");
      const { id, origin } = recordOf(store, { key, value }, itemRecord);
      head.id ??= id;
      head.origin = origin;
    }
  }
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
  holderOf: (place: Place) => Pick<RunningItem, "id"> | undefined,
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
  key.actor = record.actor;
  key.mark = record.mark ?? "";
  key.checksum = checksum;
  const holder = head === "" ? undefined : holderOf(head);
  if (key.head !== undefined && holder !== undefined) key.head.id = holder.id;
  keys.restore(key, { isRunning: holder !== undefined });
  return key.behind;
}
