// Every row of a coordinator's store that nobody writes to, looked at: which cannot be read, and how far the ledger reaches. Constant
// memory, but for the damages, of which the first ones are enough.
import type { Damage } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { LEDGER_KEY } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/pages.ts";
import { verifySegment } from "../../storage/segment-count.ts";
import type { Store } from "../../storage/store.ts";
import { verifyLedger } from "../read/verify-ledger.ts";
import { ledgerRecord } from "../ledger/tally.ts";
import { workersSegment } from "../workers/worker-record.ts";
import { damageOf, ROWS_UNDER, SINGLE_ROWS } from "./known-rows.ts";

const PAGE = 1_000;
const PAGE_BYTES = 4 * 2 ** 20;
/** More say nothing new, and each is set aside by a command of its own. */
const DAMAGES_MAX = 1_000;

/** In order of prefix; when every row is whole, what is wrong with their numbers. Empty: nothing is. */
export async function findDamages(store: Store): Promise<readonly Damage[]> {
  const damages: Damage[] = [];
  for (const { key, record } of SINGLE_ROWS) {
    const bytes = await store.get(key);
    const damage = bytes && damageOf(record, key, bytes);
    if (damage !== undefined) damages.push(damage);
  }
  for (const { prefix, record } of ROWS_UNDER)
    for await (const page of pagesUnder(store, prefix, PAGE, PAGE_BYTES))
      for (const { key, value } of page) {
        const damage = damageOf(record, key, value);
        if (damage !== undefined) damages.push(damage);
        if (damages.length >= DAMAGES_MAX) return damages;
      }
  return damages.length > 0 ? damages : findMiscounts(store);
}

async function findMiscounts(store: Store): Promise<readonly Damage[]> {
  const workers = await verifySegment(store, workersSegment);
  if (workers.kind !== "ok") return [workers];
  const bytes = await store.get(LEDGER_KEY);
  const numbers = bytes && decodeRecord(ledgerRecord, LEDGER_KEY, bytes);
  const damage = numbers?.kind === "ok" ? await verifyLedger(store, numbers.value) : undefined;
  return damage === undefined ? [] : [damage];
}
