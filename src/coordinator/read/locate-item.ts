// From what a person calls an item to its place: its id, the beginning of its id, or the label that its input gave it. Ids are
// looked up; labels have no index, so all items are walked over, a page at a time, for as long as the asker waits.
import { ITEM_INDEX_PREFIX, ITEMS_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/pages.ts";
import { readRecord, recordOf } from "../../storage/records.ts";
import { placeOfKey } from "../ledger/place.ts";
import type { Store } from "../../storage/store.ts";
import { ITEM_ID_BYTES, itemIdText } from "../ledger/item-id.ts";
import { itemIndexRecord, itemRecord } from "../ledger/records.ts";
import type { Place } from "../ledger/place.ts";

export type Sought =
  | { readonly kind: "found"; readonly place: Place }
  | { readonly kind: "unknown" }
  /** Ids, in hexadecimal, of some that the name may mean. */
  | { readonly kind: "several"; readonly ids: readonly string[] };

const ID_DIGITS = 2 * ITEM_ID_BYTES;
const PREFIX_DIGITS_MIN = 6;
/** Shorter numbers are more likely how an input counts its items. */
const LIKELY_LABEL = /^\d{1,15}$/;
/** Payloads of a page are in memory at once. */
const ITEMS_PAGE = 64;
const IDS_PAGE = 256;

/** Throws store_corrupt. `isAwaited` says whether anybody still waits; `unknown` when nobody does. */
export async function findByName(store: Store, name: string, isAwaited: () => boolean): Promise<Sought> {
  const digits = name.toLowerCase();
  const isId = new RegExp(`^[0-9a-f]{${PREFIX_DIGITS_MIN},${ID_DIGITS}}$`).test(digits);
  if (digits.length === ID_DIGITS && isId) return findById(store, Buffer.from(digits, "hex"));
  const ways = [() => findByPrefix(store, digits), () => findByLabel(store, name, isAwaited)];
  if (!isId) ways.shift();
  else if (LIKELY_LABEL.test(name)) ways.reverse();
  for (const find of ways) {
    const sought = await find();
    if (sought.kind !== "unknown") return sought;
  }
  return { kind: "unknown" };
}

export async function findById(store: Store, id: Uint8Array): Promise<Sought> {
  const index = await readRecord(store, `${ITEM_INDEX_PREFIX}${itemIdText(id)}`, itemIndexRecord);
  return index === undefined ? { kind: "unknown" } : { kind: "found", place: index.place };
}

/** Keys hold ids in base64url, 6 bits a character: whole characters of the beginning are a range, the rest is compared. */
async function findByPrefix(store: Store, digits: string): Promise<Sought> {
  const whole = Buffer.from(digits.slice(0, digits.length - (digits.length % 2)), "hex");
  const beginning = whole.toString("base64url").slice(0, Math.floor((whole.length * 8) / 6));
  const from = `${ITEM_INDEX_PREFIX}${beginning}`;
  const rows = await store.scan({ from, to: `${from}~`, limit: IDS_PAGE });
  const found = rows.filter(({ key }) => hexOf(key).startsWith(digits));
  const [only] = found;
  if (only === undefined) return { kind: "unknown" };
  if (found.length > 1) return { kind: "several", ids: found.slice(0, 3).map(({ key }) => hexOf(key)) };
  const index = recordOf(store, only, itemIndexRecord);
  return { kind: "found", place: index.place };
}

async function findByLabel(store: Store, label: string, isAwaited: () => boolean): Promise<Sought> {
  const bytes = Buffer.from(label);
  const found: { readonly place: Place; readonly id: string }[] = [];
  if (bytes.length === 0) return { kind: "unknown" };
  for await (const page of pagesUnder(store, ITEMS_PREFIX, ITEMS_PAGE)) {
    if (!isAwaited()) return { kind: "unknown" };
    for (const { key, value } of page) {
      // Most rows do not even have its bytes in them, and need no decoding.
      if (!Buffer.from(value.buffer, value.byteOffset, value.byteLength).includes(bytes)) continue;
      const item = recordOf(store, { key, value }, itemRecord);
      if (item.label !== label) continue;
      found.push({ place: placeOfKey(store, ITEMS_PREFIX, key), id: Buffer.from(item.id).toString("hex") });
    }
    if (found.length > 1) break;
  }
  const [only] = found;
  if (only === undefined) return { kind: "unknown" };
  if (found.length > 1) return { kind: "several", ids: found.slice(0, 3).map(({ id }) => id) };
  return { kind: "found", place: only.place };
}

function hexOf(key: string): string {
  return Buffer.from(key.slice(ITEM_INDEX_PREFIX.length), "base64url").toString("hex");
}
