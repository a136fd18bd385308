// What should be true of every item, in the simplest words: where it is, how often it was given out, what it was charged
// with. Told of what happens; who is given what, it takes from the ledger's rows and checks that it was allowed.
import assert from "node:assert/strict";
import { itemIdText } from "../../src/coordinator/ledger/item-id.ts";
import type { RunningRecord } from "../../src/coordinator/ledger/ledger-records.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "../../src/coordinator/ledger/ledger-records.ts";
import type { ReportedOutcome } from "../../src/coordinator/session-frame.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import type { RecordType } from "../../src/storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../src/storage/keys.ts";
import type { Store } from "../../src/storage/store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import type { HeldItem } from "./ledger-worker.ts";

export const MODEL_BUDGETS = { maxAttempts: 3, maxLost: 3 };

export interface ModelItem {
  state: "Pending" | "Delayed" | "Running" | "Done" | "Failed";
  attempt: number;
  charged: number;
  lost: number;
  /** While it is running. */
  holder: Pick<RunningRecord, "worker" | "incarnation" | "epoch" | "number"> | undefined;
  output: string | undefined;
}

/** The coordinator's side of a worker, as the model sees it. */
export interface ModelSession {
  credit: number;
  isOpen: boolean;
}

export class LedgerModel {
  /** By the text of the id. */
  readonly items = new Map<string, ModelItem>();
  readonly sessions = new Map<string, ModelSession>();
  /** Successes of attempts that were given up, by the text of the id: each may still be taken while the item is nobody's. */
  readonly #late = new Map<string, { readonly attempt: number; readonly output: string }[]>();

  submitted(id: string): void {
    assert(!this.items.has(id));
    const nothing = { attempt: 0, charged: 0, lost: 0, holder: undefined, output: undefined };
    this.items.set(id, { state: "Pending", ...nothing });
  }

  heldBy(worker: string): ModelItem[] {
    return [...this.items.values()]
      .filter(({ holder }) => holder?.worker === worker)
      .sort((one, other) => (one.holder?.number ?? 0) - (other.holder?.number ?? 0));
  }

  /** Whether the report names what the item is running under. */
  isCurrent(held: HeldItem, worker: string): boolean {
    const item = this.items.get(itemIdText(held.id));
    return (
      item?.holder?.worker === worker &&
      item.holder.incarnation === held.incarnation &&
      item.holder.epoch === held.epoch &&
      item.attempt === held.attempt
    );
  }

  reported(held: HeldItem, worker: string, outcome: ReportedOutcome): void {
    const id = itemIdText(held.id);
    const item = this.items.get(id);
    if (item === undefined) return;
    if (!this.isCurrent(held, worker)) {
      if (outcome.kind !== "success") return;
      const late = { attempt: held.attempt, output: Buffer.from(outcome.output).toString() };
      this.#late.set(id, [...(this.#late.get(id) ?? []), late]);
      return;
    }
    item.holder = undefined;
    switch (outcome.kind) {
      case "success":
        item.state = "Done";
        item.output = Buffer.from(outcome.output).toString();
        return;
      case "too_large":
        item.state = "Failed";
        return;
      case "error":
      case "timeout":
      case "crash":
        item.charged++;
        item.state = item.charged >= MODEL_BUDGETS.maxAttempts ? "Failed" : "Delayed";
        return;
      default:
        item.state = "Pending";
    }
  }

  lost(item: ModelItem): void {
    item.lost++;
    item.holder = undefined;
    item.state = item.lost >= MODEL_BUDGETS.maxLost ? "Failed" : "Pending";
  }

  returned(item: ModelItem): void {
    item.holder = undefined;
    item.state = "Pending";
  }

  /** Holds the rows against the model, and takes from them what was given out and what has waited long enough. */
  async compare(store: Store, { hasTimePassed }: { readonly hasTimePassed: boolean }): Promise<void> {
    const rows = await readRows(store);
    assert.deepEqual([...rows.keys()].sort(), [...this.items.keys()].sort(), "no item is lost, none appears");
    for (const [id, row] of rows) {
      const item = this.items.get(id);
      assert(item !== undefined);
      if (item.state === "Delayed" && hasTimePassed && row.state !== "Delayed") item.state = "Pending";
      if (item.state === "Pending" && row.state === "Running") this.#assigned(item, row);
      if (item.state === "Pending" && row.state === "Done") this.#takenLate(id, item, row);
      const { output, ...rest } = row;
      if (item.state === "Done") assert.equal(output, item.output, "the result that was reported first");
      const { state, attempt } = item;
      if (state === "Done" || state === "Failed")
        assert.deepEqual([row.state, row.attempt], [state, attempt]);
      else assert.deepEqual({ ...rest, output: undefined }, item);
    }
  }

  #takenLate(id: string, item: ModelItem, { attempt, output }: ModelItem): void {
    const isReported = this.#late.get(id)?.some((late) => late.attempt === attempt && late.output === output);
    assert(isReported === true && attempt <= item.attempt, "a late result is of an attempt that there was");
    Object.assign(item, { state: "Done" as const, attempt, output });
  }

  #assigned(item: ModelItem, { holder, attempt }: ModelItem): void {
    assert(holder !== undefined);
    const session = this.sessions.get(holder.worker);
    assert(session?.isOpen === true, "work is given to those who have a session");
    assert(session.credit > 0, "credit is never exceeded");
    assert.equal(attempt, item.attempt + 1, "the attempt grows by one at each assignment and never repeats");
    session.credit--;
    item.state = "Running";
    item.attempt = attempt;
    item.holder = holder;
  }
}

async function readRows(store: Store): Promise<Map<string, ModelItem>> {
  const read = async <T>(prefix: string, type: RecordType<T>): Promise<Map<string, T>> => {
    const entries = await store.scan({ ...prefixRange(prefix), limit: 100_000 });
    return new Map(
      entries.map(({ key, value }) => [
        key.slice(key.lastIndexOf("/") + 1),
        okOrFailure("", decodeRecord(type, key, value)),
      ]),
    );
  };
  const [items, returned, delayed, running, done, failed] = await Promise.all([
    read(ITEMS_PREFIX, itemRecord),
    read(RETURNED_PREFIX, returnedRecord),
    read(DELAYED_PREFIX, delayedRecord),
    read(RUNNING_PREFIX, runningRecord),
    read(DONE_PREFIX, doneRecord),
    read(FAILED_PREFIX, failedRecord),
  ]);
  const rows = new Map<string, ModelItem>();
  for (const [place, { id }] of items) {
    const row: ModelItem = {
      ...{ state: "Pending", attempt: 0, charged: 0, lost: 0 },
      ...{ holder: undefined, output: undefined },
      ...returned.get(place),
    };
    const found: ModelItem["state"][] = returned.has(place) ? ["Pending"] : [];
    const waiting = delayed.get(place);
    if (waiting !== undefined) found.push(Object.assign(row, waiting, { state: "Delayed" as const }).state);
    const held = running.get(place);
    if (held !== undefined) {
      const { attempt, charged, lost, worker, incarnation, epoch, number } = held;
      const holder = { worker, incarnation, epoch, number };
      found.push(Object.assign(row, { state: "Running" as const, attempt, charged, lost, holder }).state);
    }
    const result = done.get(place);
    if (result !== undefined) {
      const output = Buffer.from(result.output).toString();
      found.push(Object.assign(row, { state: "Done" as const, attempt: result.attempt, output }).state);
    }
    const end = failed.get(place);
    if (end !== undefined)
      found.push(Object.assign(row, { state: "Failed" as const, attempt: end.attempt }).state);
    assert(found.length <= 1, `an item is in one place, not in ${found.join(", ")}`);
    rows.set(itemIdText(id), row);
  }
  return rows;
}
