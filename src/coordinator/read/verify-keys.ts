// Keys held against items: each item of a key that is not final is the head of its key or waits behind it, once.
import type { Damage } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { DONE_PREFIX, FAILED_PREFIX, ITEMS_PREFIX, KEYS_PREFIX, MAIL_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { keyRecord, mailKey, mailRecord, pathOf } from "../keys/key-records.ts";
import type { Place } from "../ledger/place.ts";
import { itemRecord } from "../ledger/records.ts";

const PAGE = 500;

/** An item that a row of a key names. */
interface Named {
  readonly place: Place;
  /** Key of the row, and the part of it that is the key's. */
  readonly row: string;
  readonly path: string;
  readonly isHead: boolean;
  readonly hasFailed: boolean;
}

/** Nothing is written meanwhile. `openItems`: items of keys that are not final. */
export async function verifyMail(store: Store, openItems: number): Promise<Damage | undefined> {
  let open = 0;
  for (const [prefix, read] of [
    [KEYS_PREFIX, namedByKey],
    [MAIL_PREFIX, namedByMail],
  ] as const)
    for await (const page of pagesUnder(store, prefix, PAGE)) {
      const named: Named[] = [];
      for (const entry of page) {
        const found = read(entry);
        if (found !== undefined && "kind" in found) return found;
        if (found !== undefined) named.push(found);
      }
      const damage = await verifyNamed(store, named);
      if (damage !== undefined) return damage;
      open += named.filter(({ hasFailed }) => !hasFailed).length;
    }
  if (open === openItems) return undefined;
  const reason = `keys name ${open} items that are not final, and ${openItems} are there`;
  return { kind: "corrupt", key: KEYS_PREFIX, reason };
}

function namedByKey({ key, value }: Entry): Named | Damage | undefined {
  const read = decodeRecord(keyRecord, key, value);
  if (read.kind !== "ok") return read;
  const { head, hasFailed } = read.value;
  return head === ""
    ? undefined
    : { place: head, row: key, path: key.slice(KEYS_PREFIX.length), isHead: true, hasFailed };
}

function namedByMail({ key, value }: Entry): Named | Damage {
  const read = decodeRecord(mailRecord, key, value);
  const path = key.slice(MAIL_PREFIX.length, key.lastIndexOf("/"));
  return read.kind === "ok" ? { place: read.value, row: key, path, isHead: false, hasFailed: false } : read;
}

function hashOf(path: string): string {
  return path.slice(path.indexOf("/") + 1);
}

async function verifyNamed(store: Store, named: readonly Named[]): Promise<Damage | undefined> {
  const [items, done, failed] = await Promise.all(
    [ITEMS_PREFIX, DONE_PREFIX, FAILED_PREFIX].map((prefix) =>
      store.getMany(named.map(({ place }) => `${prefix}${place}`)),
    ),
  );
  const mail = await store.getMany(named.map(({ path, place }) => mailKey(path, place)));
  for (const [at, { place, row, path, isHead, hasFailed }] of named.entries()) {
    const corrupt = (reason: string): Damage => ({ kind: "corrupt", key: row, reason });
    const item = items?.[at];
    if (item === undefined) return corrupt(`it names the item at ${place}, which is missing`);
    const read = decodeRecord(itemRecord, `${ITEMS_PREFIX}${place}`, item);
    if (read.kind !== "ok") return read;
    // An item is of one key, is its head or in its mail, and has one place there: so it is named once.
    if (hashOf(pathOf(read.value.key, 0)) !== hashOf(path))
      return corrupt(`it names the item at ${place}, which is of another key`);
    if (isHead ? mail[at] !== undefined : mailKey(path, place) !== row)
      return corrupt(`it names the item at ${place}, which another row names`);
    if (done?.[at] !== undefined) return corrupt(`it names the item at ${place}, which is done`);
    if ((failed?.[at] !== undefined) !== hasFailed)
      return corrupt(`it names the item at ${place}, which has ${hasFailed ? "not failed" : "failed"}`);
  }
  return undefined;
}
