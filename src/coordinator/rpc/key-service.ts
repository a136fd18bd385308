// The operators' calls about keys. The reactor says how a key stands; its item, the worker that has it and its state are read from the
// store beside that, so an answer may be a moment older in one part than in another.
import { create } from "@bufbuild/protobuf";
import type { ServiceImpl } from "@connectrpc/connect";
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import { KeyAction } from "../../gen/rollout/v1/keys_pb.ts";
import type { GetKeyRequest, Key, KeyAsks, KeyContents, KeyService } from "../../gen/rollout/v1/keys_pb.ts";
import { ItemOriginSchema } from "../../gen/rollout/v1/work_pb.ts";
import { FAILED_PREFIX, ITEMS_PREFIX, RUNNING_PREFIX, STATES_PREFIX } from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { RecordType } from "../../storage/codec.ts";
import type { Store } from "../../storage/store.ts";
import type { KeyAction as Action } from "../keys/key.ts";
import { standingOf } from "../keys/awaited-keys.ts";
import { keyStateRecord, pathOf } from "../keys/key-records.ts";
import { isPlace, itemDigits } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import { failedRecord, itemRecord, runningRecord } from "../ledger/records.ts";
import { readHistory } from "../read/key-history.ts";
import { readWaiting } from "../read/waiting-items.ts";
import { writeOrigin } from "./actor-messages.ts";
import type { SeenAsks, SeenKey } from "../turn/key-terms.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { Leader } from "./leader.ts";
import { ask, refuse } from "./leader.ts";
import { movedKeys } from "./moved-keys.ts";
import { writeResult } from "./results.ts";

/** Keys that one call names, or items of one that it tells; and keys that one answer tells. */
const NAMED_MAX = 100;
const WAIT_MAX_MS = 20_000;
const LISTED_MAX = 500;
/** States and payloads in one answer, unless those of one key are more. */
const CONTENTS_BYTES_MAX = 1024 * 1024;
/** Items that wait for one key, and their payloads, in one answer. */
const MAIL_MAX = 256;
const MAIL_BYTES_MAX = 256 * 1024;

const ACTIONS: Readonly<Partial<Record<KeyAction, Action>>> = {
  [KeyAction.PAUSE]: "pause",
  [KeyAction.RESUME]: "resume",
  [KeyAction.SKIP]: "skip",
  [KeyAction.RETIRE]: "retire",
};

export function keyService(leader: Leader, store: Store, clock: Clock): ServiceImpl<typeof KeyService> {
  const { envelope: coordinator } = leader;
  return {
    async getKey(asked, { signal }) {
      const seen = await lookAtKey(leader, clock, asked, signal);
      if (seen === undefined) throw failure("key_unknown", { key: asked.key });
      const [told] = await tell(store, [seen]);
      const key = told?.key;
      const state = asked.withState ? told?.contents.state : undefined;
      const asks = seen.asks && (await tellAsks(store, seen.asks));
      const end = leader.reach.value?.isOver ?? false;
      const parts = { ...(key && { key }), ...(state && { state }), ...(asks && { asks }) };
      return { coordinator, ...parts, after: seen.standing, end };
    },

    async listKeys({ phases, prefix, fromCommit, parkedActions, after, limit: asked, withContents, mail }) {
      const limit = asked === 0 ? LISTED_MAX : Math.min(asked, LISTED_MAX);
      const question = {
        phases,
        prefix,
        fromCommit,
        parkedActions: parkedActions && !withContents,
        after,
        limit,
      };
      const { keys, after: next, commit } = await ask(leader, { kind: "listKeys", ...question });
      const all = await tell(store, keys);
      if (!withContents) return { coordinator, keys: all.map(({ key }) => key), after: next, commit };
      const told = mail === 0 ? fitting(all) : await withMail(store, fitting(all), keys, mail);
      return {
        ...{ coordinator, keys: told.map(({ key }) => key), contents: told.map(({ contents }) => contents) },
        ...{ after: told.length < all.length ? (told.at(-1)?.key.key ?? "") : next, commit },
      };
    },

    async listKeyHistory({ key: text, after, limit: asked }) {
      const seen = await ask(leader, { kind: "getKey", key: text, isAwaited: false });
      if (seen === undefined) throw failure("key_unknown", { key: text });
      const from = after === "" ? seen.last : placeIn(after);
      const limit = asked === 0 ? NAMED_MAX : Math.min(asked, NAMED_MAX);
      const { items, next = "" } = await readHistory(store, text, { from, limit, bytes: CONTENTS_BYTES_MAX });
      return { coordinator, results: items.map((item) => writeResult(item, true)), after: next };
    },

    async steerKeys({ action: asked, keys }) {
      const action = ACTIONS[asked] ?? refuse("SteerKeys", "action is none that this version knows");
      if (keys.length > NAMED_MAX) return refuse("SteerKeys", `more than ${NAMED_MAX} keys in one call`);
      return { coordinator, ...(await ask(leader, { kind: "steerKeys", action, keys })) };
    },

    ...movedKeys(leader, store),

    async listPartitions() {
      return { coordinator, ...(await ask(leader, { kind: "listPartitions" })) };
    },
  };
}

/** Waits, if that is asked for, until the key stands otherwise than the caller knows; at once where too many wait. */
async function lookAtKey(
  leader: Leader,
  clock: Clock,
  { key, after, waitMs }: Pick<GetKeyRequest, "key" | "after" | "waitMs">,
  signal: AbortSignal,
): Promise<SeenKey | undefined> {
  const look = (isAwaited: boolean): Promise<SeenKey | undefined> =>
    ask(leader, { kind: "getKey", key, isAwaited });
  const followed = after === "" || waitMs === 0 ? undefined : leader.followedKeys.follow(key);
  if (followed === undefined) return look(false);
  try {
    const seen = await look(true);
    if ((seen?.standing ?? standingOf(undefined)) !== after) return seen;
    const gone = AbortSignal.any([signal, leader.stopping]);
    const patience = { clock, waitMs: Math.min(waitMs, WAIT_MAX_MS), signal: gone };
    return (await followed.until(after, patience)) ? await look(false) : seen;
  } finally {
    followed.end();
  }
}

function placeIn(after: string): Place {
  return isPlace(after) ? after : refuse("ListKeyHistory", "after is not what an answer has said");
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
  return keys.map(
    ({ key, isOfActions, phase, partition, owner, items: open, isPaused, hasFailed, commit }, at) => {
      const [item, held, end, state] = [items[at], running[at], failed[at], states[at]];
      const told = {
        ...{ key, phase, partition, items: open, ofActions: isOfActions },
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
        contents: {
          ...(state && { state: state.state }),
          ...(item && { next: item.payload }),
          ...{ waiting: [], hasMore: false },
        },
      };
    },
  );
}

/** The same with what waits for each, as far as one message has room for it; at least one. `seen`: in the same order. */
async function withMail(
  store: Store,
  told: readonly Told[],
  seen: readonly SeenKey[],
  mail: number,
): Promise<readonly Told[]> {
  const limits = { count: Math.min(mail, MAIL_MAX), bytes: MAIL_BYTES_MAX };
  const whole: Told[] = [];
  let bytes = 0;
  for (const [at, { key, contents }] of told.entries()) {
    const { key: text, partition, head, items: open } = seen[at] ?? {};
    bytes += contents.state?.length ?? 0;
    if (text === undefined || partition === undefined || (head === undefined && open === 0)) {
      whole.push({ key, contents });
      continue;
    }
    const { items, hasMore } = await readWaiting(store, { text, partition, head }, limits);
    for (const { payload } of items) bytes += payload.length;
    if (at > 0 && bytes > CONTENTS_BYTES_MAX) return whole;
    const waiting = items.map(({ payload, origin }) => ({
      payload,
      ...(origin && { origin: create(ItemOriginSchema, writeOrigin(origin)) }),
    }));
    whole.push({ key, contents: { ...contents, waiting, hasMore } });
  }
  return whole;
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
