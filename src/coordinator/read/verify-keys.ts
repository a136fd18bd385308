// Keys held against items: each item of a key that is not final is the head of its key or waits behind it, once.
import type { Damage } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { DONE_PREFIX, FAILED_PREFIX, ITEMS_PREFIX, KEYS_PREFIX, MAIL_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { keyRecord, mailRecord } from "../keys/key-records.ts";
import type { Place } from "../ledger/place.ts";

const PAGE = 500;

/** An item that a row of a key names. */
interface Named {
  readonly place: Place;
  /** Key of the row. */
  readonly row: string;
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
  return head === "" ? undefined : { place: head, row: key, hasFailed };
}

function namedByMail({ key, value }: Entry): Named | Damage {
  const read = decodeRecord(mailRecord, key, value);
  return read.kind === "ok" ? { place: read.value, row: key, hasFailed: false } : read;
}

async function verifyNamed(store: Store, named: readonly Named[]): Promise<Damage | undefined> {
  const [items, done, failed] = await Promise.all(
    [ITEMS_PREFIX, DONE_PREFIX, FAILED_PREFIX].map((prefix) =>
      store.getMany(named.map(({ place }) => `${prefix}${place}`)),
    ),
  );
  for (const [at, { place, row, hasFailed }] of named.entries()) {
    const corrupt = (reason: string): Damage => ({ kind: "corrupt", key: row, reason });
    if (items?.[at] === undefined) return corrupt(`it names the item at ${place}, which is missing`);
    if (done?.[at] !== undefined) return corrupt(`it names the item at ${place}, which is done`);
    if ((failed?.[at] !== undefined) !== hasFailed)
      return corrupt(`it names the item at ${place}, which has ${hasFailed ? "not failed" : "failed"}`);
  }
  return undefined;
}
