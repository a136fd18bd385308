// The operators' calls about keys. The reactor says how a key stands; its item, the worker that has it and its state are read from the
// store beside that, so an answer may be a moment older in one part than in another.
import type { ServiceImpl } from "@connectrpc/connect";
import { failure } from "../../base/errors.ts";
import { KeyAction } from "../../gen/rollout/v1/keys_pb.ts";
import type { Key, KeyAsks, KeyContents, KeyService } from "../../gen/rollout/v1/keys_pb.ts";
import { FAILED_PREFIX, ITEMS_PREFIX, RUNNING_PREFIX, STATES_PREFIX } from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Store } from "../../storage/store.ts";
import type { KeyAction as Action } from "../keys/key.ts";
import { keyStateRecord, pathOf } from "../keys/key-records.ts";
import { itemDigits } from "../ledger/place.ts";
import { failedRecord, itemRecord, runningRecord } from "../ledger/records.ts";
import type { SeenAsks, SeenKey } from "../turn/input.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";

/** Keys that one call names, and keys that one answer tells. */
const NAMED_MAX = 100;
const LISTED_MAX = 500;
/** States and payloads in one answer, unless those of one key are more. */
const CONTENTS_BYTES_MAX = 1024 * 1024;

const ACTIONS: Readonly<Partial<Record<KeyAction, Action>>> = {
  [KeyAction.PAUSE]: "pause",
  [KeyAction.RESUME]: "resume",
  [KeyAction.SKIP]: "skip",
  [KeyAction.RETIRE]: "retire",
};

export function keyService(leader: Leader, store: Store): ServiceImpl<typeof KeyService> {
  const { envelope: coordinator } = leader;
  return {
    async getKey({ key: text, withState }) {
      const seen = await ask(leader, { kind: "getKey", key: text });
      if (seen === undefined) throw failure("key_unknown", { key: text });
      const [told] = await tell(store, [seen]);
      const key = told?.key;
      const state = withState ? await stateOf(store, seen) : undefined;
      const asks = seen.asks && (await tellAsks(store, seen.asks));
      return { coordinator, ...(key && { key }), ...(state && { state }), ...(asks && { asks }) };
    },

    async listKeys({ phases, after, limit: asked, withContents }) {
      const limit = asked === 0 ? LISTED_MAX : Math.min(asked, LISTED_MAX);
      const { keys, after: next } = await ask(leader, { kind: "listKeys", phases, after, limit });
      const all = await tell(store, keys);
      if (!withContents) return { coordinator, keys: all.map(({ key }) => key), after: next };
      const told = fitting(all);
      return {
        ...{ coordinator, keys: told.map(({ key }) => key), contents: told.map(({ contents }) => contents) },
        after: told.length < all.length ? (told.at(-1)?.key.key ?? "") : next,
      };
    },

    async steerKeys({ action: asked, keys }) {
      const action = ACTIONS[asked] ?? refuse("SteerKeys", "action is none that this version knows");
      if (keys.length > NAMED_MAX) return refuse("SteerKeys", `more than ${NAMED_MAX} keys in one call`);
      return { coordinator, ...(await ask(leader, { kind: "steerKeys", action, keys })) };
    },

    async listPartitions() {
      return { coordinator, ...(await ask(leader, { kind: "listPartitions" })) };
    },
  };
}

async function tellAsks(store: Store, seen: SeenAsks): Promise<Filled<KeyAsks>> {
  const { timers, invocations, children, actions, isFinal, retiresAtMs, parent } = seen;
  const keys = invocations.map(({ head = "" }) => (head === "" ? "" : `${ITEMS_PREFIX}${head}`));
  const items = await readAll(store, keys, itemRecord);
  const failedKey = actions?.failed === undefined ? "" : `${FAILED_PREFIX}${actions.failed}`;
  const [failed] = await readAll(store, [failedKey], failedRecord);
  return {
    timers: timers.map(({ to, ...timer }) => ({ ...timer, ...(to !== "" && { to }) })),
    invocations: invocations.map(({ id, source }, at) => {
      const item = items[at];
      return { id, source, item: item === undefined ? "" : itemDigits(item.id) };
    }),
    children: [...children],
    ...(actions && { actions: actions.open }),
    ...(failed && { actionsError: { class: failed.class, message: failed.message } }),
    isFinal,
    ...(retiresAtMs !== undefined && { retiresAtMs }),
    ...(parent !== undefined && { parent }),
  };
}

interface Told {
  readonly key: Filled<Key>;
  readonly contents: Filled<KeyContents>;
}

async function tell(store: Store, keys: readonly SeenKey[]): Promise<Told[]> {
  const heads = keys.map(({ head }) => head ?? "");
  const read = <T>(prefix: string, type: RecordType<T>): Promise<(T | undefined)[]> =>
    readAll(
      store,
      heads.map((head) => (head === "" ? "" : `${prefix}${head}`)),
      type,
    );
  const [items, running, failed, states] = await Promise.all([
    read(ITEMS_PREFIX, itemRecord),
    read(RUNNING_PREFIX, runningRecord),
    read(FAILED_PREFIX, failedRecord),
    readAll(
      store,
      keys.map((key) => (key.hasState ? stateKeyOf(key) : "")),
      keyStateRecord,
    ),
  ]);
  return keys.map(({ key, phase, partition, owner, items: open, isPaused, hasFailed, commit }, at) => {
    const [item, held, end, state] = [items[at], running[at], failed[at], states[at]];
    const told = {
      ...{ key, phase, partition, items: open },
      ...(owner !== undefined && { owner }),
      ...(held && { worker: held.worker }),
      ...(item && { head: itemDigits(item.id) }),
      ...((isPaused || hasFailed) && { parkedBy: hasFailed ? "failed" : "paused" }),
      ...(hasFailed && end && { error: { class: end.class, message: end.message } }),
      ...(state && { stateBytes: state.state.length }),
      ...(commit > 0 && { stateCommit: commit }),
    };
    return {
      key: told,
      contents: { ...(state && { state: state.state }), ...(item && { next: item.payload }) },
    };
  });
}

/** As many of the first as one message has room for, at least one. */
function fitting(told: readonly Told[]): readonly Told[] {
  let bytes = 0;
  const end = told.findIndex(({ contents: { state, next } }, at) => {
    bytes += (state?.length ?? 0) + (next?.length ?? 0);
    return at > 0 && bytes > CONTENTS_BYTES_MAX;
  });
  return end === -1 ? told : told.slice(0, end);
}

async function stateOf(store: Store, key: SeenKey): Promise<Uint8Array | undefined> {
  const [state] = await readAll(store, [key.hasState ? stateKeyOf(key) : ""], keyStateRecord);
  return state?.state;
}

function stateKeyOf({ key, partition }: SeenKey): string {
  return `${STATES_PREFIX}${pathOf(key, partition)}`;
}

/** The records under these keys, where there are any; an empty key is none. Throws store_corrupt. */
async function readAll<T>(
  store: Store,
  keys: readonly string[],
  type: RecordType<T>,
): Promise<(T | undefined)[]> {
  const named = keys.filter((key) => key !== "");
  const values = named.length === 0 ? [] : await store.getMany(named);
  const found = new Map(named.map((key, at) => [key, values[at]]));
  return keys.map((key) => {
    const value = found.get(key);
    return value && recordOf(store, { key, value }, type);
  });
}
