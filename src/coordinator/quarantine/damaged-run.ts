// The run of a store that nobody can lead, for those who ask for its results: the service of operators over what can be read.
// Questions that only a leader can answer are refused.
import { create } from "@bufbuild/protobuf";
import type { ConnectRouter } from "@connectrpc/connect";
import { AwaitedValue } from "../../base/awaited-value.ts";
import type { Clock } from "../../base/clock.ts";
import { epoch } from "../../base/ids.ts";
import type { StoreId } from "../../base/ids.ts";
import { LIMITS } from "../../config/limits.ts";
import { OperatorService, RunSchema, RunState } from "../../gen/rollout/v1/run_pb.ts";
import type { GetRunResponse } from "../../gen/rollout/v1/run_pb.ts";
import type { Damage } from "../../storage/codec.ts";
import { decodeRecord } from "../../storage/codec.ts";
import { ITEMS_PREFIX, KEY_NUMBERS_KEY, LEDGER_KEY } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/records.ts";
import type { CommitOutcome, Entry, ScanRange, Store } from "../../storage/store.ts";
import { nextKey } from "../../storage/store.ts";
import type { Input } from "../turn/input.ts";
import { isPlace, PRIORITY_MAX, PRIORITY_MIN, priorityOf, sequenceOf } from "../ledger/place.ts";
import type { Place } from "../ledger/place.ts";
import type { LedgerNumbers } from "../ledger/tally.ts";
import { ledgerRecord, Tally } from "../ledger/tally.ts";
import { FollowedKeys } from "../rpc/followed-keys.ts";
import type { Leader } from "../rpc/leader.ts";
import { envelopeOf } from "../rpc/messages.ts";
import { operatorService } from "../rpc/operator-service.ts";
import { countsOf } from "../run/run-status.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { LedgerExtent } from "../turn/run-terms.ts";
import type { SetAsideItem } from "../ledger/quarantine-record.ts";
import { keyNumbersRecord } from "../keys/key-records.ts";
import { readSetAside } from "../ledger/quarantine-record.ts";
import { itemWithout } from "./set-aside.ts";
import { substituteFor } from "./substitute.ts";

/** As the routes of a leader are, for a transport within this process. */
export async function damagedRun(
  store: Store,
  storeId: StoreId,
  damages: readonly Damage[],
  clock: Clock,
): Promise<(router: ConnectRouter) => void> {
  const view = await DamagedView.over(store, damages);
  const numbers = await numbersOf(view);
  const keyedPriorities = await keyedPrioritiesOf(view);
  const setAside = new Map(await readSetAside(view));
  for (const { key } of damages) {
    const place = await itemWithout(view, key);
    if (place !== null) setAside.set(place, { place, id: new Uint8Array(), key });
  }
  const leader: Leader = {
    envelope: envelopeOf(epoch(0), storeId),
    ...{ workersMax: 0, inboxMax: 0, limits: LIMITS, address: store.location },
    reach: new AwaitedValue(),
    followedKeys: new FollowedKeys(),
    stopping: new AbortController().signal,
    onHigherEpoch: () => undefined,
    push: (input) => answer(input, extentOf(numbers, setAside, keyedPriorities), runOf(numbers, setAside)),
  };
  return (router) => void router.service(OperatorService, operatorService(leader, view, { clock }));
}

function answer(input: Input, extent: LedgerExtent, run: Filled<GetRunResponse>): boolean {
  if (input.kind === "getExtent") input.answer(extent);
  else if (input.kind === "getRun") input.answer(run);
  else return false;
  return true;
}

/** Nothing becomes final any more: what is not is passed over, as in a run that was cancelled. */
function extentOf(
  { nextSequence, nextCompletion, cursors }: LedgerNumbers,
  setAside: ReadonlyMap<Place, SetAsideItem>,
  keyedPriorities: readonly number[],
): LedgerExtent {
  const priorities = [...cursors.keys()].sort((one, other) => other - one);
  const reach = { isOver: true, nextSequence, nextCompletion, priorities, keyedPriorities };
  const releases = { hasReached: () => false, triedBy: () => undefined };
  return { phase: "cancelled", task: null, releases, ...reach, setAside };
}

/** As they were written; all that there may be where that cannot be read. */
async function keyedPrioritiesOf(store: Store): Promise<readonly number[]> {
  const bytes = await store.get(KEY_NUMBERS_KEY);
  if (bytes === undefined) return [];
  const decoded = decodeRecord(keyNumbersRecord, KEY_NUMBERS_KEY, bytes);
  if (decoded.kind === "ok") return decoded.value.priorities;
  return Array.from({ length: PRIORITY_MAX - PRIORITY_MIN + 1 }, (_, at) => PRIORITY_MAX - at);
}

function runOf(numbers: LedgerNumbers, setAside: ReadonlyMap<Place, SetAsideItem>): Filled<GetRunResponse> {
  const counts = countsOf(new Tally(numbers), setAside);
  return {
    run: create(RunSchema, { state: RunState.OPEN, ...counts, workers: {} }),
    finishedPerSecond: [],
    after: "",
  };
}

/** As they were written, or as far as they can be told from the items. */
async function numbersOf(store: Store): Promise<LedgerNumbers> {
  const bytes = await store.get(LEDGER_KEY);
  const decoded = bytes && decodeRecord(ledgerRecord, LEDGER_KEY, bytes);
  if (decoded?.kind === "ok") return decoded.value;
  const tally = new Tally();
  let nextSequence = 0;
  for await (const page of pagesUnder(store, ITEMS_PREFIX, 1_000, 4 * 2 ** 20))
    for (const { key } of page) {
      const place = key.slice(ITEMS_PREFIX.length);
      if (!isPlace(place)) continue;
      tally.openCursor(priorityOf(place), 0);
      nextSequence = Math.max(nextSequence, sequenceOf(place) + 1);
    }
  return { ...tally.numbers, nextSequence };
}

/**
 * A store with rows that cannot be read, as it would be without them: each is gone, or stands as it can be made again. Nothing is
 * written; the store must not change meanwhile.
 */
class DamagedView implements Store {
  readonly location: string;
  readonly supports: Store["supports"];
  readonly everWritten: boolean;
  readonly generation: string;
  readonly #store: Store;
  /** Null: gone. */
  readonly #instead: ReadonlyMap<string, Uint8Array | null>;

  private constructor(store: Store, instead: ReadonlyMap<string, Uint8Array | null>) {
    this.location = store.location;
    this.supports = store.supports;
    this.everWritten = store.everWritten;
    this.generation = store.generation;
    this.#store = store;
    this.#instead = instead;
  }

  static async over(store: Store, damages: readonly Damage[]): Promise<DamagedView> {
    const instead = new Map<string, Uint8Array | null>();
    for (const { key } of damages) {
      const substitute = await substituteFor(store, key);
      if (substitute.kind !== "vital") instead.set(key, substitute.kind === "row" ? substitute.bytes : null);
      // Without its id an item cannot be told of at all.
      else if (!key.startsWith("meta/")) instead.set(key, null);
    }
    return new DamagedView(store, instead);
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    const instead = this.#instead.get(key);
    return instead === undefined ? this.#store.get(key) : (instead ?? undefined);
  }

  getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    return Promise.all(keys.map((key) => this.get(key)));
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    const found: Entry[] = [];
    for (let { from } = range; ;) {
      const limit = range.limit - found.length;
      const page = await this.#store.scan({ ...range, from, limit });
      for (const { key, value } of page) {
        const instead = this.#instead.get(key);
        if (instead !== null) found.push({ key, value: instead ?? value });
      }
      const last = page.at(-1);
      if (last === undefined || page.length < limit || found.length >= range.limit) return found;
      from = nextKey(last.key);
    }
  }

  commit(): Promise<CommitOutcome> {
    return Promise.resolve({ kind: "unknown", cause: new Error("a view of a damaged store is only read") });
  }

  close(): Promise<void> {
    return this.#store.close();
  }
}
