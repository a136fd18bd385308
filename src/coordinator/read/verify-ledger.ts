// The ledger's rows, compared with what should be there: all at once where nothing changes any more, at completion and before an
// export says that it is whole; and a page of one segment for the scrub, while items move.
import type { Damage, RecordType } from "../../storage/codec.ts";
import { decodeRecord, findDamage, recordChecksum } from "../../storage/codec.ts";
import { ITEM_INDEX_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { KEY_SEGMENT_ROWS, KEY_SEGMENTS } from "../keys/key-records.ts";
import type { KeyNumbers } from "../keys/key-records.ts";
import { isKeySegment, keyDisagreement } from "../keys/key-rows.ts";
import { isKeyed, isPlace, itemIdText } from "../ledger/place.ts";
import { verifyMail } from "./verify-keys.ts";
import { verifyReleases } from "./verify-releases.ts";
import { itemIndexRecord, itemRecord } from "../ledger/records.ts";
import type { ScrubbedPage, ScrubRequest } from "../ledger/scrub.ts";
import type { LedgerNumbers, SegmentName } from "../ledger/tally.ts";
import { addToSum, disagreement, SEGMENT_ROWS, SEGMENTS, Tally } from "../ledger/tally.ts";

/** Rows that are read at once, and their bytes: they may have 16 MiB each. */
const PAGE = 1_000;
const PAGE_BYTES = 4 * 2 ** 20;

/** The first thing that is wrong; undefined when every row is whole and all are there. The rows must not change meanwhile. */
export async function verifyLedger(
  store: Store,
  numbers: LedgerNumbers,
  keyNumbers?: KeyNumbers,
): Promise<Damage | undefined> {
  const tally = new Tally(numbers);
  let openItems = 0;
  for (const segment of SEGMENTS) {
    const walked = await walk(store, SEGMENT_ROWS[segment]);
    const damage = walked.damage ?? disagreement(tally, segment, walked);
    if (damage !== undefined) return damage;
    if (segment === "items") openItems += walked.keyed;
    if (segment === "done" || segment === "failed") openItems -= walked.keyed;
  }
  const ofReleases = await verifyReleases(store);
  if (ofReleases !== undefined || keyNumbers === undefined) return ofReleases;
  for (const segment of KEY_SEGMENTS) {
    const walked = await walk(store, KEY_SEGMENT_ROWS[segment]);
    const damage = walked.damage ?? keyDisagreement(keyNumbers, segment, walked);
    if (damage !== undefined) return damage;
  }
  return verifyMail(store, openItems);
}

interface Walked {
  readonly count: number;
  readonly sum: number;
  /** How many of the rows are of items that have keys. */
  readonly keyed: number;
  /** The first row that is not whole; what comes behind it was not looked at. */
  readonly damage: Damage | undefined;
}

async function walk(
  store: Store,
  { prefix, record }: { readonly prefix: string; readonly record: RecordType<unknown> },
): Promise<Walked> {
  let [count, sum, keyed] = [0, 0, 0];
  for await (const page of pagesUnder(store, prefix, PAGE, PAGE_BYTES)) {
    for (const { key, value } of page) {
      const damage = findDamage(record, key, value);
      if (damage !== undefined) return { count, sum, keyed, damage };
      sum = addToSum(sum, recordChecksum(value));
      const place = key.slice(prefix.length);
      if (isPlace(place) && isKeyed(place)) keyed++;
    }
    count += page.length;
  }
  return { count, sum, keyed, damage: undefined };
}

/** Rows that are read at once: they may have 16 MiB each, and are in memory together. */
const STEP_MAX = 16;
const FIRST_STEP = 4;
/** Bytes after which a page ends before its limit. */
const BYTES_MAX = 8 * 2 ** 20;

/** In steps that grow while rows are light. `findMore` looks around rows that are whole. */
export async function readScrubPage(
  store: Store,
  { segment, from, limit }: ScrubRequest,
  findMore?: typeof findUnindexed,
): Promise<ScrubbedPage> {
  const { prefix, record } = isKeySegment(segment)
    ? KEY_SEGMENT_ROWS[segment]
    : SEGMENT_ROWS[segment as SegmentName];
  const { to } = prefixRange(prefix);
  const rows: { key: string; checksum: number }[] = [];
  let [bytes, heaviest, fitting] = [0, 1, FIRST_STEP];
  for (let next = from; ;) {
    const step = Math.min(STEP_MAX, fitting, limit - rows.length);
    const entries = await store.scan({ from: next, to, limit: step });
    for (const { key, value } of entries) {
      const damage = findDamage(record, key, value);
      if (damage !== undefined) return { segment, rows, next: null, damage };
      rows.push({ key, checksum: recordChecksum(value) });
      bytes += value.length;
      heaviest = Math.max(heaviest, value.length);
    }
    const damage = await findMore?.(store, segment, entries);
    if (damage !== undefined) return { segment, rows, next: null, damage };
    const last = entries.at(-1);
    if (last === undefined || entries.length < step) return { segment, rows, next: null, damage: undefined };
    next = nextKey(last.key);
    if (rows.length >= limit || bytes >= BYTES_MAX) return { segment, rows, next, damage: undefined };
    fitting = Math.max(1, Math.min(4 * step, Math.floor((BYTES_MAX - bytes) / heaviest)));
  }
}

/** The first of these items whose place by its id is missing, damaged or another one. Nothing of other segments. */
export async function findUnindexed(
  store: Store,
  segment: string,
  entries: readonly Entry[],
): Promise<Damage | undefined> {
  if (segment !== "items") return undefined;
  const keys: string[] = [];
  for (const { key, value } of entries) {
    const item = decodeRecord(itemRecord, key, value);
    if (item.kind !== "ok") return item;
    keys.push(`${ITEM_INDEX_PREFIX}${itemIdText(item.value.id)}`);
  }
  const values = await store.getMany(keys);
  for (const [at, key] of keys.entries()) {
    const damage = damageOf(key, values[at], entries[at]?.key.slice(ITEMS_PREFIX.length));
    if (damage !== undefined) return damage;
  }
  return undefined;
}

function damageOf(key: string, value: Uint8Array | undefined, place: string | undefined): Damage | undefined {
  if (value === undefined)
    return { kind: "corrupt", key, reason: `the item at ${place} is not found by its id` };
  const index = decodeRecord(itemIndexRecord, key, value);
  if (index.kind !== "ok") return index;
  if (index.value.place === place) return undefined;
  return { kind: "corrupt", key, reason: `it names ${index.value.place}, and the item is at ${place}` };
}
