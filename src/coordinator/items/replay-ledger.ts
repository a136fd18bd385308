// The ledger of a new leader, from the store: its numbers and the rows in flight. Pending items are read as they are needed,
// final ones not at all, but for some failed items whose messages are shown, so a start costs as much as is in flight and not
// as much as is done (C4).
import type { Epoch } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { failure } from "../../base/errors.ts";
import { LIMITS } from "../../config/limits.ts";
import { decodeRecord, recordChecksum } from "../../storage/codec.ts";
import { EPOCH_STARTS_KEY, FAILED_PREFIX, LEDGER_KEY, RUNNING_PREFIX } from "../../storage/keys.ts";
import { pagesUnder } from "../../storage/pages.ts";
import { readRecord, recordOf } from "../../storage/records.ts";
import { placeOfKey } from "../ledger/place.ts";
import type { Entry, Store } from "../../storage/store.ts";
import { readSetAside } from "../ledger/quarantine-record.ts";
import { EpochStarts, epochStartsRecord } from "../ledger/epoch-starts.ts";
import { FailureMessages } from "../ledger/failure-messages.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import { failedRecord, runningRecord } from "../ledger/records.ts";
import type { ItemBudgets, Ledger, RunningItem } from "../ledger/ledger.ts";
import { itemChart, RUNNING } from "./transitions.ts";
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
}

/** Throws store_corrupt or store_newer, naming the key. */
export async function replayLedger(store: Store, options: LedgerOptions): Promise<Ledger> {
  const numbers = await readRecord(store, LEDGER_KEY, ledgerRecord);
  const setAside = await readSetAside(store);
  const tally = numbers === undefined ? new Tally() : new Tally(numbers, setAside.size);
  const ledger: Ledger = {
    budgets: options.budgets,
    random: options.random,
    tally,
    setAside,
    failureMessages: new FailureMessages(),
    scrub: new Scrub(options.scrubRows),
    running: new Map(),
    lookups: new Lookups(),
    epochStarts: new EpochStarts((await readRecord(store, EPOCH_STARTS_KEY, epochStartsRecord)) ?? [], {
      epoch: options.epoch,
      sequence: tally.nextSequence,
    }),
    returned: new Window(""),
    returnedAlone: new Window("", ALONE_WEIGHT_MAX),
    shelf: new Shelf(),
    alone: new Shelf(),
    delayed: new Window(""),
    fresh: new Map(),
  };
  for (const priority of tally.cursors.keys()) freshWindow(ledger, priority);
  await readRunning(store, ledger, options.nowMs);
  await readFailureMessages(store, ledger);
  return ledger;
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

async function readRunning(store: Store, ledger: Ledger, nowMs: number): Promise<void> {
  let sum = 0;
  for await (const page of pagesUnder(store, RUNNING_PREFIX, PAGE))
    for (const entry of page) {
      const item = readItem(store, ledger, entry, nowMs);
      sum = addToSum(sum, item.checksum);
      ledger.running.set(itemKeyOf(item.id), item);
    }
  if (ledger.tally.matches("running", ledger.running.size, sum)) return;
  const reason = `${ledger.tally.count("running")} running items were counted, and ${ledger.running.size} whole ones are there`;
  throw failure("store_corrupt", { path: store.location, key: LEDGER_KEY, reason });
}

function readItem(store: Store, { budgets }: Ledger, entry: Entry, nowMs: number): RunningItem {
  const { id, number, ...known } = recordOf(store, entry, runningRecord);
  const context = { ...itemChart.initial(budgets).context, ...known };
  return {
    place: placeOfKey(store, RUNNING_PREFIX, entry.key),
    id,
    number,
    row: { state: RUNNING, context },
    assignedAtMs: nowMs,
    receivedFromMs: nowMs,
    checksum: recordChecksum(entry.value),
    mayHaveCheckpoint: true,
    recalledAtMs: undefined,
    hasBegun: false,
  };
}
