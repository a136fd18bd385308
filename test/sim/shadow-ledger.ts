// The ledger as its batches tell it, kept beside the coordinator and without any of its code: what may follow on what is
// written down here a second time.
//
// Keeps true: after every batch, an item is in one place, moves only as its chart allows, and final is final.
import type { RecordType } from "../../src/storage/codec.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  RETURNED_ALONE_PREFIX,
  RETURNED_KEYED_PREFIX,
  RETURNED_PREFIX,
  RUN_KEY,
  RUNNING_PREFIX,
} from "../../src/storage/keys.ts";
import { itemIdText } from "../../src/coordinator/ledger/place.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "../../src/coordinator/ledger/records.ts";
import type {
  DoneRecord,
  FailedRecord,
  ReturnedRecord,
  RunningRecord,
} from "../../src/coordinator/ledger/records.ts";
import { runRecord } from "../../src/coordinator/run/run.ts";
import type { RunRecord } from "../../src/coordinator/run/run.ts";
import type { Batch, Entry } from "../../src/storage/store.ts";
import { short } from "./sim-backend.ts";
import { Violation } from "./world.ts";

export interface ShadowItem {
  readonly idText: string;
  running: RunningRecord | undefined;
  /** Pending again. */
  budgets: ReturnedRecord | undefined;
  /** Pending, and not to be given out yet. */
  isDelayed: boolean;
  done: DoneRecord | undefined;
  failed: FailedRecord | undefined;
  lastAttempt: number;
  /** Number of the batch that made it final. */
  finalSince: number | undefined;
}

/** Changes of items by a batch, in words of the chart. */
export type Change =
  | { readonly kind: "submitted" | "assigned" | "waits" | "done" | "failed"; readonly item: ShadowItem }
  | { readonly kind: "returned"; readonly item: ShadowItem; readonly was: RunningRecord | undefined }
  /** An operator has taken it back: it was final. */
  | { readonly kind: "retaken"; readonly item: ShadowItem; readonly was: FailedRecord };

export class ShadowLedger {
  readonly #byPlace = new Map<string, ShadowItem>();
  readonly #byId = new Map<string, ShadowItem>();
  #batches = 0;
  #synced = 0;
  #run: RunRecord | undefined;

  get(idText: string): ShadowItem | undefined {
    return this.#byId.get(idText);
  }

  get items(): Iterable<ShadowItem> {
    return this.#byId.values();
  }

  /** As it is written down; undefined before anything was. */
  get run(): RunRecord | undefined {
    return this.#run;
  }

  /** Whether what made the item final would survive the loss of power. */
  isOnDisk({ finalSince }: ShadowItem): boolean {
    return finalSince !== undefined && finalSince <= this.#synced;
  }

  /** Nothing that was written down here can be lost any more. */
  caughtUp(): void {
    this.#synced = this.#batches;
  }

  /** Throws a violation. */
  take({ puts, deletes, durability }: Pick<Batch, "puts" | "deletes" | "durability">): Change[] {
    this.#batches++;
    if (durability === "sync") this.#synced = this.#batches;
    const retaken = this.#takeRetaken(deletes);
    const left = this.#takeDeletes(deletes);
    const changes = puts.flatMap((entry) => this.#takePut(entry, left) ?? []);
    for (const [item, was] of retaken) {
      if (item.budgets === undefined)
        throw new Violation(`C9: ${short(item.idText)} has failed and is nowhere`);
      changes.push({ kind: "retaken", item, was });
    }
    return changes;
  }

  /** Failed items may become pending again. */
  #takeRetaken(deletes: readonly string[]): Map<ShadowItem, FailedRecord> {
    const retaken = new Map<ShadowItem, FailedRecord>();
    for (const key of deletes) {
      if (!key.startsWith(FAILED_PREFIX)) continue;
      const item = this.#at(key, FAILED_PREFIX);
      if (item.failed === undefined)
        throw new Violation(`C9: ${short(item.idText)} has not failed and is taken back`);
      retaken.set(item, item.failed);
      [item.failed, item.finalSince] = [undefined, undefined];
    }
    return retaken;
  }

  #takeDeletes(deletes: readonly string[]): Map<ShadowItem, RunningRecord> {
    const left = new Map<ShadowItem, RunningRecord>();
    for (const key of deletes) {
      for (const prefix of [DONE_PREFIX, ITEMS_PREFIX])
        if (key.startsWith(prefix)) throw new Violation(`C9: ${key} is deleted`);
      if (key.startsWith(RUNNING_PREFIX)) {
        const item = this.#at(key, RUNNING_PREFIX);
        if (item.running !== undefined) left.set(item, item.running);
        item.running = undefined;
      }
      if (key.startsWith(RETURNED_PREFIX)) this.#at(key, returnedPrefixOf(key)).budgets = undefined;
      if (key.startsWith(DELAYED_PREFIX)) this.#atDelayed(key).budgets = undefined;
    }
    return left;
  }

  #takePut({ key, value }: Entry, left: ReadonlyMap<ShadowItem, RunningRecord>): Change | undefined {
    const read = <T>(type: RecordType<T>): T => okOrFailure("shadow", decodeRecord(type, key, value));
    if (key === RUN_KEY) this.#run = read(runRecord);
    if (key.startsWith(ITEMS_PREFIX)) return this.#submitted(key, itemIdText(read(itemRecord).id));
    if (key.startsWith(RUNNING_PREFIX))
      return this.#assigned(this.#at(key, RUNNING_PREFIX), read(runningRecord));
    if (key.startsWith(DONE_PREFIX)) {
      const item = this.#final(key, DONE_PREFIX);
      item.done = read(doneRecord);
      return { kind: "done", item };
    }
    if (key.startsWith(FAILED_PREFIX)) {
      const item = this.#final(key, FAILED_PREFIX);
      item.failed = read(failedRecord);
      return { kind: "failed", item };
    }
    if (key.startsWith(RETURNED_PREFIX)) {
      const item = this.#pending(this.#at(key, returnedPrefixOf(key)), read(returnedRecord));
      item.isDelayed = false;
      return { kind: "returned", item, was: left.get(item) };
    }
    if (!key.startsWith(DELAYED_PREFIX)) return undefined;
    const item = this.#pending(this.#atDelayed(key), read(delayedRecord));
    item.isDelayed = true;
    return { kind: "waits", item };
  }

  #submitted(key: string, idText: string): Change {
    const place = key.slice(ITEMS_PREFIX.length);
    if (this.#byPlace.has(place)) throw new Violation(`the row of ${place} is written twice`);
    if (this.#byId.has(idText)) throw new Violation(`${short(idText)} is submitted twice`);
    const item: ShadowItem = {
      idText,
      running: undefined,
      budgets: undefined,
      isDelayed: false,
      done: undefined,
      failed: undefined,
      lastAttempt: 0,
      finalSince: undefined,
    };
    this.#byPlace.set(place, item);
    this.#byId.set(idText, item);
    return { kind: "submitted", item };
  }

  #assigned(item: ShadowItem, record: RunningRecord): Change {
    const { idText } = item;
    if (isFinal(item)) throw new Violation(`C9: ${short(idText)} is final and is given out`);
    if (item.running !== undefined) throw new Violation(`C3: ${short(idText)} is with two workers`);
    if (record.attempt <= item.lastAttempt)
      throw new Violation(
        `C3: attempt ${record.attempt} of ${short(idText)} comes after ${item.lastAttempt}`,
      );
    if (item.budgets !== undefined) throw new Violation(`${short(idText)} is given out and still waits`);
    item.running = record;
    item.isDelayed = false;
    item.lastAttempt = record.attempt;
    return { kind: "assigned", item };
  }

  #pending(item: ShadowItem, budgets: ReturnedRecord): ShadowItem {
    if (isFinal(item)) throw new Violation(`C9: ${short(item.idText)} is final and becomes pending`);
    if (item.running !== undefined) throw new Violation(`${short(item.idText)} is pending and running`);
    item.budgets = budgets;
    item.lastAttempt = Math.max(item.lastAttempt, budgets.attempt);
    return item;
  }

  #final(key: string, prefix: string): ShadowItem {
    const item = this.#at(key, prefix);
    if (isFinal(item)) throw new Violation(`C9: ${short(item.idText)} becomes final a second time`);
    if (item.running !== undefined) throw new Violation(`${short(item.idText)} is final and running`);
    item.finalSince = this.#batches;
    return item;
  }

  #atDelayed(key: string): ShadowItem {
    const [due = ""] = key.slice(DELAYED_PREFIX.length).split("/");
    return this.#at(key, `${DELAYED_PREFIX}${due}/`);
  }

  #at(key: string, prefix: string): ShadowItem {
    const item = this.#byPlace.get(key.slice(prefix.length));
    if (item === undefined) throw new Violation(`${key} is of no item`);
    return item;
  }
}

function returnedPrefixOf(key: string): string {
  const special = [RETURNED_ALONE_PREFIX, RETURNED_KEYED_PREFIX].find((prefix) => key.startsWith(prefix));
  return special ?? RETURNED_PREFIX;
}

/** May be given out now. */
export function isReady(item: ShadowItem): boolean {
  return !isFinal(item) && item.running === undefined && !item.isDelayed;
}

export function isFinal({ done, failed }: ShadowItem): boolean {
  return done !== undefined || failed !== undefined;
}
