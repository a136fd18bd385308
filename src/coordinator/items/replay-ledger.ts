// The ledger of a new leader, from the store: its numbers and the rows in flight. Pending items are read as they are needed,
// final ones not at all, but for some failed items whose messages are shown, so a start costs as much as is in flight and not
// as much as is done (C4).
import type { Epoch } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { LIMITS } from "../../config/limits.ts";
import { decodeRecord, recordChecksum } from "../../storage/codec.ts";
import { EPOCH_STARTS_KEY, FAILED_PREFIX, LEDGER_KEY, RUNNING_PREFIX } from "../../storage/keys.ts";
import { corrupt, pagesUnder, readRecord, recordOf } from "../../storage/records.ts";
import { placeOfKey, itemKeyOf } from "../ledger/place.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { readSetAside } from "../ledger/quarantine-record.ts";
import { EpochStarts, epochStartsRecord } from "../ledger/epoch-starts.ts";
import { FailureMessages } from "../ledger/failure-messages.ts";
import { failedRecord, runningRecord } from "../ledger/records.ts";
import { KEY_SEGMENT_ROWS, KEY_SEGMENTS } from "../keys/key-records.ts";
import { KEY_DEFAULTS } from "../keys/key-settings.ts";
import type { KeySettings } from "../keys/key-settings.ts";
import type { Keys } from "../keys/keys.ts";
import { replayKeys } from "../keys/replay-keys.ts";
import type { ItemBudgets, Ledger, PendingItem, RunningItem } from "../ledger/ledger.ts";
import { replayReleases } from "../release/replay-releases.ts";
import type { Releases } from "../release/releases.ts";
import { itemChart, RUNNING } from "./transitions.ts";
import { LeaderMeter } from "../ledger/leader-meter.ts";
import { Lookups } from "../ledger/lookups.ts";
import { freshWindow } from "../ledger/queue.ts";
import { Scrub } from "../ledger/scrub.ts";
import { Shelf } from "../ledger/shelf.ts";
import { addToSum, ledgerRecord, Tally } from "../ledger/tally.ts";
import { Window } from "../ledger/window.ts";

const PAGE = 1_000;
/** Each may have a server's answer beside its message. */
const FAILED_PAGE = 100;
/** They go one to a worker: few are needed at once. */
const ALONE_WEIGHT_MAX = 16 * 2 ** 20;

export interface LedgerOptions {
  /** The new leader's. */
  readonly epoch: Epoch;
  readonly budgets: ItemBudgets;
  readonly random: Random;
  /** The moment of leading, monotonic. */
  readonly nowMs: number;
  /** In one page of the scrub; as many as it likes unless said. */
  readonly scrubRows?: number | undefined;
  /** As in the configuration's defaults unless said. */
  readonly keys?: KeySettings | undefined;
  /** See `KeysOptions`. */
  readonly keyedStamp: Entry;
}

/** A ledger, and the rooms of keys and of releases behind its doors. */
export interface ReplayedLedger {
  readonly ledger: Ledger;
  readonly keys: Keys;
  readonly releases: Releases;
}

/** Throws store_corrupt or store_newer, naming the key. */
export async function replayLedger(store: Store, options: LedgerOptions): Promise<ReplayedLedger> {
  const numbers = await readRecord(store, LEDGER_KEY, ledgerRecord);
  const setAside = await readSetAside(store);
  const tally = numbers === undefined ? new Tally() : new Tally(numbers, setAside.size);
  const [shelf, alone] = [new Shelf<PendingItem>(), new Shelf<PendingItem>()];
  const running = await readRunning(store, tally, options);
  const byPlace = new Map([...running.values()].map((item) => [item.place, item]));
  const { keys: settings = KEY_DEFAULTS, keyedStamp: stamp } = options;
  const nextSequence = (): number => tally.nextSequence;
  const keys = await replayKeys(
    store,
    { settings, shelves: { shelf, alone }, stamp, nextSequence },
    (place) => byPlace.get(place),
  );
  const releases = await replayReleases(store, {
    nowMs: options.nowMs,
    trials: (release) => countTrials(running.values(), release),
  });
  const ledger: Ledger = {
    trials: releases,
    budgets: options.budgets,
    random: options.random,
    tally,
    meter: new LeaderMeter(),
    setAside,
    failureMessages: new FailureMessages(),
    scrub: new Scrub(options.scrubRows, KEY_SCRUBBED),
    running,
    keys,
    sampled: new Set(),
    lookups: new Lookups(),
    epochStarts: new EpochStarts((await readRecord(store, EPOCH_STARTS_KEY, epochStartsRecord)) ?? [], {
      epoch: options.epoch,
      sequence: tally.nextSequence,
    }),
    returned: new Window(""),
    returnedAlone: new Window("", ALONE_WEIGHT_MAX),
    shelf,
    alone,
    delayed: new Window(""),
    fresh: new Map(),
  };
  for (const priority of tally.cursors.keys()) freshWindow(ledger, priority);
  await readFailureMessages(store, ledger);
  return { ledger, keys, releases };
}

function countTrials(running: Iterable<RunningItem>, release: string): number {
  let count = 0;
  for (const { row } of running) if (row.context.trial === release) count++;
  return count;
}

/** The first that failed, by their places: enough to say why. One that is damaged is the scrub's to find. */
async function readFailureMessages(store: Store, { tally, failureMessages }: Ledger): Promise<void> {
  if (tally.count("failed") === 0) return;
  let [rows, bytes] = [0, 0];
  for await (const page of pagesUnder(store, FAILED_PREFIX, FAILED_PAGE)) {
    for (const { key, value } of page) {
      const read = decodeRecord(failedRecord, key, value);
      if (read.kind === "ok") failureMessages.failed(read.value);
      rows++;
      bytes += value.length;
    }
    if (rows >= LIMITS.failuresReadAtStart || bytes >= LIMITS.failureBytesReadAtStart) return;
  }
}

const KEY_SCRUBBED = KEY_SEGMENTS.map((name) => ({ name, prefix: KEY_SEGMENT_ROWS[name].prefix }));

async function readRunning(
  store: Store,
  tally: Tally,
  options: LedgerOptions,
): Promise<Map<string, RunningItem>> {
  const running = new Map<string, RunningItem>();
  let sum = 0;
  for await (const page of pagesUnder(store, RUNNING_PREFIX, PAGE))
    for (const entry of page) {
      const item = readItem(store, options, entry);
      sum = addToSum(sum, item.checksum);
      running.set(item.itemKey, item);
    }
  if (tally.matches("running", running.size, sum)) return running;
  const reason = `${tally.count("running")} running items were counted, and ${running.size} whole ones are there`;
  return corrupt(store, LEDGER_KEY, reason);
}

function readItem(store: Store, { budgets, nowMs }: LedgerOptions, entry: Entry): RunningItem {
  const { id, number, version, ...known } = recordOf(store, entry, runningRecord);
  const context = { ...itemChart.initial(budgets).context, ...known };
  return {
    place: placeOfKey(store, RUNNING_PREFIX, entry.key),
    id,
    itemKey: itemKeyOf(id),
    number,
    version,
    row: { state: RUNNING, context },
    assignedAtMs: nowMs,
    receivedFromMs: nowMs,
    checksum: recordChecksum(entry.value),
    mayHaveCheckpoint: true,
    recalledAtMs: undefined,
    hasBegun: false,
    ticket: 0,
  };
}
