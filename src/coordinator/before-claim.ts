// The look before a claim. It finds reasons not to lead a store: charts that it does not know, a store that went back to an
// older state, and, where nobody else can write, a ledger that it cannot read. Nothing is written here.
import type { Epoch } from "../base/ids.ts";
import type { EventEmitter } from "../observe/events.ts";
import { LEDGER_KEY } from "../storage/keys.ts";
import { readRecord } from "../storage/records.ts";
import type { Store } from "../storage/store.ts";
import { readSetAside } from "./ledger/quarantine-record.ts";
import { ledgerRecord } from "./ledger/tally.ts";
import { checkLedgerCharts } from "./ledger-charts.ts";
import type { LeaseRows, LostEpochs } from "./lead/lease.ts";
import type { StoreExtent, StoreMemory, StoreRollback } from "./lead/store-memory.ts";
import { rollbackTo } from "./lead/store-memory.ts";
import { announceRollback, rolledBack } from "./rollback.ts";

export interface BeforeClaimOptions {
  readonly store: Store;
  /** This host's, of the store; without it nothing is remembered. */
  readonly memory?: StoreMemory | undefined;
  /** Whether to go on with a store that went back. */
  readonly acceptsRollback: boolean;
  /** Throws what says more of a store that went back to this, if there is such a thing. */
  readonly explainRollback?: ((found: StoreExtent) => Promise<void>) | undefined;
  readonly events: EventEmitter;
  /** This process is not to lead the store; called before that is thrown. */
  readonly onRolledBack?: (rollback: StoreRollback) => Promise<void>;
  /** Reads the rows of the lease. */
  readonly look: () => Promise<LeaseRows>;
  /** Reads the ledger as a leader does, and forgets it. */
  readonly rehearse: () => Promise<unknown>;
}

/** More than so many items in flight take too long to be read twice. */
const REHEARSED_ITEMS_MAX = 10_000;

/**
 * Looks at the store whose lease is about to be taken as `rows` have it. Resolves with the epochs that the store has lost, where it went back
 * and somebody wants to go on. Throws store_rolled_back, store_newer, store_corrupt, or what the store throws.
 */
export async function checkBeforeClaim(
  options: BeforeClaimOptions,
  rows: LeaseRows,
): Promise<LostEpochs | undefined> {
  const { store, memory } = options;
  const state = await checkLedgerCharts(store);
  const found = await extentOf(store, rows);
  await adopt(rows, memory);
  const rollback = await rollbackOf(found, options);
  if (rollback !== undefined) await haltOrAccept(options, rollback);
  // Under a leader that writes, rows and their numbers are not of one moment.
  const isStill = !store.supports.multiProcess && state === "readable";
  if (isStill && found.running <= REHEARSED_ITEMS_MAX) await options.rehearse();
  if (rollback === undefined) return undefined;
  const highest = rollback.seen.epoch as Epoch;
  return memory ? { highest, accepted: await memory.recall() } : { highest };
}

/** A rollback that another host has accepted is accepted on this one. Its own file is read first: it may have accepted more since. */
async function adopt({ lease }: LeaseRows, memory: StoreMemory | undefined): Promise<void> {
  if (lease === undefined || lease.accepted.accepted === 0) return;
  await memory?.recall();
  memory?.adopt(lease.accepted);
}

/** How far the store has got, and how many items are in flight. */
async function extentOf(store: Store, rows: LeaseRows): Promise<StoreExtent & { readonly running: number }> {
  const numbers = await readRecord(store, LEDGER_KEY, ledgerRecord);
  const epoch = Math.max(rows.lease?.epoch ?? -1, rows.epoch ?? -1);
  if (numbers === undefined) return { epoch, completion: 0, submitted: 0, done: 0, running: 0 };
  const { segments, nextCompletion: completion, nextSequence: submitted } = numbers;
  const done = segments.done.count + (await readSetAside(store)).size;
  return { epoch, completion, submitted, done, running: segments.running.count };
}

/** Rows that were read before this host saw a later leader say nothing of what the store has lost: they are read again. */
async function rollbackOf(
  found: StoreExtent,
  { store, memory, look }: Pick<BeforeClaimOptions, "store" | "memory" | "look">,
): Promise<StoreRollback | undefined> {
  const seen = await memory?.recall();
  if (seen === undefined || rollbackTo(found, seen) === undefined) return undefined;
  return rollbackTo(await extentOf(store, await look()), seen);
}

async function haltOrAccept(
  { store, memory, acceptsRollback, explainRollback, events, onRolledBack }: BeforeClaimOptions,
  rollback: StoreRollback,
): Promise<void> {
  await explainRollback?.(rollback.found);
  if (acceptsRollback) memory?.accept(rollback.found);
  const { accepted = 0 } = (await memory?.recall()) ?? {};
  announceRollback(events, rollback, acceptsRollback ? accepted : 0);
  if (acceptsRollback) return;
  await onRolledBack?.(rollback);
  throw rolledBack(store, rollback);
}
