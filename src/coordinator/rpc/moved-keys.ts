// The calls by which keys go from one run to another. The reactor says which keys there are and what only it knows of them; their states and
// items are read from the store beside that.
import { hash } from "node:crypto";
import { create, toBinary } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  KeyService,
  MovedActor as ActorOnWire,
  MovedKey as KeyOnWire,
} from "../../gen/rollout/v1/keys_pb.ts";
import { MovedKeySchema } from "../../gen/rollout/v1/keys_pb.ts";
import { ItemOriginSchema } from "../../gen/rollout/v1/work_pb.ts";
import {
  ITEM_INDEX_PREFIX,
  ITEMS_PREFIX,
  KEYS_PREFIX,
  MAIL_PREFIX,
  STATES_PREFIX,
} from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { prefixRange } from "../../storage/store.ts";
import { keyRecord, keyStateRecord, mailRecord, pathOf } from "../keys/key-records.ts";
import type { MovedActor, MovedKey, ToldKey } from "../keys/moving.ts";
import { itemIdText, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { itemRecord } from "../ledger/records.ts";
import type { Filled } from "../turn/operator-message.ts";
import { readOrigin, writeOrigin } from "./actor-messages.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { refuseSubmission } from "./submission-refusal.ts";
import { readTask } from "./submissions.ts";

const KEYS_MAX = 100;
/** Keys of one page, and items of one key. */
const PAGE_KEYS = 50;
const ITEMS_MAX = 10_000;
const BYTES_MAX = 8 * 1024 * 1024;
const MARK_DIGITS = 32;

type Methods = Pick<ServiceImpl<typeof KeyService>, "exportKeys" | "importKeys">;

export function movedKeys(leader: Leader, store: Store): Methods {
  const { envelope: coordinator } = leader;
  return {
    async exportKeys({ prefix, after }) {
      const told = await ask(leader, { kind: "tellKeys", prefix, after, limit: PAGE_KEYS });
      const keys: Filled<KeyOnWire>[] = [];
      const unmovable: { key: string; why: string }[] = [...told.unmovable];
      let bytes = 0;
      for (const one of told.keys) {
        const key = await readKey(store, one);
        if (key === undefined) unmovable.push({ key: one.text, why: "too_large" });
        else if (key.state !== undefined || key.items.length > 0 || key.actor !== undefined) {
          bytes += sizeOf(key);
          // One that does not fit is the first of the next page; some that cannot be told may be named twice.
          if (bytes > BYTES_MAX && keys.length > 0)
            return { coordinator, keys, unmovable, after: keys.at(-1)?.key ?? "" };
          keys.push(key);
        }
      }
      return { coordinator, keys, unmovable, after: told.after };
    },

    async importKeys(request) {
      if (request.keys.length > KEYS_MAX)
        return refuse("ImportKeys", `more than ${KEYS_MAX} keys in one call`);
      const task = readTask(request);
      const keys = request.keys.map((key) => takenKey(key));
      const known = await knownItems(store, keys);
      const fresh = keys.map(({ items, ...key }) => ({
        ...key,
        items: items.filter(({ id }) => !known.has(itemIdText(id))),
      }));
      const verdict = await ask(leader, { kind: "takeKeys", keys: fresh, task });
      if (verdict.kind !== "taken") return refuseSubmission(verdict, task);
      const { taken, known: before, there } = verdict;
      return { coordinator, taken, known: before, there: [...there] };
    },
  };
}

/** Undefined when more waits for it than a message holds. Throws store_corrupt. */
async function readKey(store: Store, told: ToldKey): Promise<Filled<KeyOnWire> | undefined> {
  const { text, partition, isPaused, hasState, actor, since } = told;
  const path = pathOf(text, partition);
  const key = await store.get(`${KEYS_PREFIX}${path}`);
  const record = key && recordOf(store, { key: `${KEYS_PREFIX}${path}`, value: key }, keyRecord);
  const mail = await store.scan({ ...prefixRange(`${MAIL_PREFIX}${path}/`), limit: ITEMS_MAX + 1 });
  if (mail.length > ITEMS_MAX) return undefined;
  const behind = mail.map((row) => recordOf(store, row, mailRecord));
  const places = [...(record === undefined || record.head === "" ? [] : [record.head]), ...behind];
  const items = await readItems(
    store,
    places.filter((place) => sequenceOf(place) >= since),
  );
  const stateKey = `${STATES_PREFIX}${path}`;
  const value = hasState ? await store.get(stateKey) : undefined;
  const state = value && recordOf(store, { key: stateKey, value }, keyStateRecord);
  const moved = {
    ...{ key: text, isPaused, stateVersion: state?.stateVersion ?? 0, items },
    ...(state && { state: state.state }),
    ...(actor && { actor: writeActor(actor) }),
  };
  return sizeOf(moved) > BYTES_MAX ? undefined : moved;
}

async function readItems(store: Store, places: readonly Place[]): Promise<Filled<KeyOnWire>["items"]> {
  const keys = places.map((place) => `${ITEMS_PREFIX}${place}`);
  const values = keys.length === 0 ? [] : await store.getMany(keys);
  return places.flatMap((place, at) => {
    const value = values[at];
    if (value === undefined) return [];
    const { id, payload, label, origin } = recordOf(store, { key: keys[at] ?? "", value }, itemRecord);
    const number = origin !== undefined && "number" in origin ? origin.number : 0;
    const onlyIfThere = origin?.kind === "mail" && origin.isOptional;
    const made = origin && { origin: create(ItemOriginSchema, writeOrigin(origin)) };
    return [{ id, payload, label, priority: priorityOf(place), number, onlyIfThere, ...made }];
  });
}

function writeActor({ parent, nextNumber, isFinal, live, timers }: MovedActor): Filled<ActorOnWire> {
  return {
    ...(parent && { parentKey: parent.key }),
    ...{ parentId: parent?.id ?? "", parentNumber: parent?.number ?? 0, nextNumber, isFinal },
    live: live.map((one) => ({ ...one })),
    timers: timers.map(
      ({ dueMs: dueAtMs, isOptional: onlyIfThere, id, number, event, to, asker, index, priority }) => ({
        ...{ id, number, dueAtMs, event, to, onlyIfThere, asker, index, priority },
      }),
    ),
  };
}

/** The mark names the whole of it: the same line, given again, is known. */
function takenKey(wire: KeyOnWire): MovedKey {
  const { key: text, isPaused, state, stateVersion, items, actor } = wire;
  if (text === "") return refuse("ImportKeys", "a key is empty");
  const mark = hash("sha256", toBinary(MovedKeySchema, wire), "hex").slice(0, MARK_DIGITS);
  return {
    ...{ text, isPaused, state, stateVersion, mark, actor: actor && readActor(actor) },
    items: items.map(({ id, payload, label, priority, origin, number, onlyIfThere }) => {
      return {
        id,
        payload,
        label,
        priority,
        origin: readOrigin(origin, { number, isOptional: onlyIfThere }),
      };
    }),
  };
}

function readActor({
  parentKey,
  parentId,
  parentNumber,
  nextNumber,
  isFinal,
  live,
  timers,
}: ActorOnWire): MovedActor {
  const parent = parentKey === undefined ? undefined : { key: parentKey, id: parentId, number: parentNumber };
  return {
    ...{ parent, nextNumber, isFinal },
    live: live.map(({ id, number, isChild, source, hasEnded }) => ({
      id,
      number,
      isChild,
      source,
      hasEnded,
    })),
    timers: timers.map(({ id, number, dueAtMs, event, to, onlyIfThere, asker, index, priority }) => ({
      ...{ id, number, dueMs: dueAtMs, event, to, isOptional: onlyIfThere, asker, index, priority },
    })),
  };
}

/** Ids, as texts, of those items that the run has. */
async function knownItems(store: Store, keys: readonly MovedKey[]): Promise<ReadonlySet<string>> {
  const texts = keys.flatMap(({ items }) => items.map(({ id }) => itemIdText(id)));
  const values =
    texts.length === 0 ? [] : await store.getMany(texts.map((text) => `${ITEM_INDEX_PREFIX}${text}`));
  return new Set(texts.filter((_, at) => values[at] !== undefined));
}

function sizeOf({ items, state }: Pick<Filled<KeyOnWire>, "items" | "state">): number {
  return items.reduce((sum, { payload }) => sum + payload.length + 100, state?.length ?? 0);
}
