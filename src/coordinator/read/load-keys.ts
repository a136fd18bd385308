// Items, waiting places and states of keys, read from the store for the room that lacks them in memory.
import { recordChecksum } from "../../storage/codec.ts";
import { ITEMS_PREFIX, MAIL_PREFIX, RETURNED_KEYED_PREFIX, STATES_PREFIX } from "../../storage/keys.ts";
import { corrupt, recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { nextKey, prefixRange } from "../../storage/store.ts";
import { checkpointKey, checkpointRecord } from "../ledger/attempt-records.ts";
import type { PendingItem } from "../ledger/ledger.ts";
import type { Place } from "../ledger/place.ts";
import { itemRecord, returnedRecord } from "../ledger/records.ts";
import type { KeyReading, KeysLoad, LoadedKey } from "../keys/key-memory.ts";
import { keyStateRecord, mailKeyOf, mailRecord } from "../keys/key-records.ts";
import type { KeyStateRecord } from "../keys/key-records.ts";

/** Memory of an item beside its payload. */
const ITEM_WEIGHT = 200;
/** Keys that are read at once: few, because each item may have 16 MiB. */
const STEP_FIRST = 4;
const STEP_MAX = 64;

/** Throws store_corrupt, naming the key. */
export async function loadKeys(store: Store, { readings, weightMax }: KeysLoad): Promise<LoadedKey[]> {
  const loaded: LoadedKey[] = [];
  let [weight, step] = [0, STEP_FIRST];
  for (let at = 0; at < readings.length;) {
    const part = readings.slice(at, at + step);
    if (weight >= weightMax) loaded.push(...part.map(({ text }) => ({ text, items: undefined })));
    else {
      const found = await readPart(store, part);
      const added = found.reduce((sum, one) => sum + weightOf(one), 0);
      weight += added;
      const fitting = Math.floor(((weightMax - weight) * part.length) / Math.max(1, added));
      step = Math.max(1, Math.min(STEP_MAX, 4 * step, fitting));
      loaded.push(...found);
    }
    at += part.length;
  }
  return loaded;
}

function weightOf({ items = [], state }: LoadedKey): number {
  return items.reduce((sum, { weight }) => sum + weight, state?.state.length ?? 0);
}

async function readPart(store: Store, part: readonly KeyReading[]): Promise<LoadedKey[]> {
  const [items, states] = await Promise.all([
    readItems(
      store,
      part.flatMap(({ places }) => places),
    ),
    readStates(
      store,
      part.filter(({ withState }) => withState),
    ),
  ]);
  return Promise.all(
    part.map(async (reading) => ({
      text: reading.text,
      items: reading.places.flatMap((place) => items.get(place) ?? []),
      mail: await readMail(store, reading),
      state: states.get(reading.text),
    })),
  );
}

/** Pending items of keys, with what a worker needs. */
async function readItems(store: Store, places: readonly Place[]): Promise<Map<Place, PendingItem>> {
  const found = new Map<Place, PendingItem>();
  if (places.length === 0) return found;
  const [items, returned, checkpoints] = await Promise.all(
    [
      places.map((place) => `${ITEMS_PREFIX}${place}`),
      places.map((place) => `${RETURNED_KEYED_PREFIX}${place}`),
      places.map(checkpointKey),
    ].map((keys) => store.getMany(keys)),
  );
  for (const [at, place] of places.entries()) {
    const key = `${ITEMS_PREFIX}${place}`;
    const value = items?.[at] ?? corrupt(store, key, "an item that its key names is missing");
    const { id, payload, origin } = recordOf(store, { key, value }, itemRecord);
    const [back, left] = [returned?.[at], checkpoints?.[at]];
    const backKey = `${RETURNED_KEYED_PREFIX}${place}`;
    const checkpoint =
      back && left ? recordOf(store, { key: checkpointKey(place), value: left }, checkpointRecord) : null;
    found.set(place, {
      ...{
        key: place,
        weight: ITEM_WEIGHT + payload.length + (checkpoint?.content.length ?? 0),
        id,
        payload,
        checkpoint,
      },
      returned: back
        ? {
            budgets: recordOf(store, { key: backKey, value: back }, returnedRecord),
            checksum: recordChecksum(back),
          }
        : null,
      ...(origin && { origin }),
    });
  }
  return found;
}

async function readStates(
  store: Store,
  readings: readonly KeyReading[],
): Promise<Map<string, KeyStateRecord>> {
  const keys = readings.map(({ path }) => `${STATES_PREFIX}${path}`);
  const values = keys.length === 0 ? [] : await store.getMany(keys);
  return new Map(
    readings.map(({ text }, at) => {
      const key = keys[at] ?? "";
      const value = values[at] ?? corrupt(store, key, "the state of a key is missing");
      return [text, recordOf(store, { key, value }, keyStateRecord)];
    }),
  );
}

async function readMail(store: Store, { path, mail }: KeyReading): Promise<readonly Place[] | undefined> {
  if (mail === null) return undefined;
  const { to } = prefixRange(`${MAIL_PREFIX}${path}/`);
  const from = mail.after < 0 ? `${MAIL_PREFIX}${path}/` : nextKey(mailKeyOf(path, mail.after));
  const rows = await store.scan({ from, to, limit: mail.limit });
  return rows.map((row) => recordOf(store, row, mailRecord));
}
