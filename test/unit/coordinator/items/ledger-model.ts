// The truth about every item, in the simplest words: where it is, how often it was given out, what it was charged
// with. Told of what happens; who is given what, it takes from the ledger's rows and checks that it was allowed.
import { itemIdText, isPlace, priorityOf } from "../../../../src/coordinator/ledger/place.ts";
import type { RunningRecord } from "../../../../src/coordinator/ledger/records.ts";
import {
  delayedRecord,
  doneRecord,
  failedRecord,
  itemRecord,
  returnedRecord,
  runningRecord,
} from "../../../../src/coordinator/ledger/records.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { decodeRecord, okOrFailure } from "../../../../src/storage/codec.ts";
import type { RecordType } from "../../../../src/storage/codec.ts";
import {
  DELAYED_PREFIX,
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  RETURNED_PREFIX,
  RUNNING_PREFIX,
} from "../../../../src/storage/keys.ts";
import type { World } from "../../../support/world.ts";
import type { HeldItem } from "../../../support/world-worker.ts";
import assert from "node:assert/strict";

export const MODEL_BUDGETS = { maxAttempts: 3, maxLost: 3, maxReturns: 4 };
const RETURNS_WINDOW_MS = 60_000;

export interface ModelItem {
  state: "Pending" | "Delayed" | "Running" | "Done" | "Failed";
  readonly priority: number;
  attempt: number;
  charged: number;
  lost: number;
  failedBy: string;
  blamed: string;
  isApart: boolean;
  returnedAtMs: readonly number[];
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
  /** Whether work is given out. */
  phase: "active" | "paused" | "cancelled" = "active";
  /** Successes of attempts that were given up, by the text of the id: each may still be taken while the item is nobody's. */
  readonly #late = new Map<string, { readonly attempt: number; readonly output: string }[]>();

  /** Items that older processes of workers had begun, while it is not known whether many went down together. */
  readonly undecided = new Set<ModelItem>();

  submitted(id: string, priority: number): void {
    assert(!this.items.has(id));
    this.items.set(id, neverGivenOut(priority));
  }

  itemOf(id: Uint8Array): ModelItem {
    const item = this.items.get(itemIdText(id));
    assert(item !== undefined);
    return item;
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

  /** Items of the worker's that have begun for certain: those among the first by number and by priority. */
  begunBy(worker: string, slots: number, items = this.heldBy(worker)): ReadonlySet<ModelItem> {
    const first = new Set(items.slice(0, slots));
    const byPriority = [...items].sort((one, other) => other.priority - one.priority);
    return new Set(byPriority.slice(0, slots).filter((item) => first.has(item)));
  }

  reported(held: HeldItem, worker: string, outcome: ReportedOutcome, wallMs: number): void {
    const id = itemIdText(held.id);
    const item = this.items.get(id);
    if (item === undefined) return;
    if (!this.isCurrent(held, worker)) {
      if (outcome.kind !== "success") return;
      const late = { attempt: held.attempt, output: Buffer.from(outcome.output).toString() };
      this.#late.set(id, [...(this.#late.get(id) ?? []), late]);
      return;
    }
    switch (outcome.kind) {
      case "crash_shared":
        if (!item.isApart && item.lost < 2) {
          Object.assign(item, { isApart: true, state: "Pending", holder: undefined });
          return;
        }
        return charge(item, worker);
      case "success":
        item.holder = undefined;
        item.state = "Done";
        item.output = Buffer.from(outcome.output).toString();
        return;
      case "too_large":
        item.holder = undefined;
        item.state = "Failed";
        return;
      case "error":
      case "timeout":
      case "crash":
        return charge(item, worker);
      default:
        this.returned(item, wallMs);
    }
  }

  lost(item: ModelItem): void {
    item.lost++;
    item.holder = undefined;
    item.state = item.lost >= MODEL_BUDGETS.maxLost ? "Failed" : "Pending";
  }

  returned(item: ModelItem, wallMs: number): void {
    const recent = item.returnedAtMs.filter((atMs) => wallMs - atMs < RETURNS_WINDOW_MS);
    item.returnedAtMs = [...recent, wallMs].slice(-MODEL_BUDGETS.maxReturns);
    item.holder = undefined;
    item.state = item.returnedAtMs.length >= MODEL_BUDGETS.maxReturns ? "Delayed" : "Pending";
  }

  /** By an operator. Items that run apart go on doing so. */
  retried(item: ModelItem): void {
    assert.equal(item.state, "Failed");
    const { attempt, priority, isApart } = item;
    Object.assign(item, { ...neverGivenOut(priority), attempt, isApart });
  }

  cancelled(): void {
    this.phase = "cancelled";
    for (const item of this.items.values())
      if (item.state === "Running") Object.assign(item, { state: "Failed", holder: undefined });
  }

  /** Holds the rows against the model, and takes from them what was given out and what has waited long enough. */
  async compare(world: World, { hasTimePassed }: { readonly hasTimePassed: boolean }): Promise<void> {
    const rows = await readRows(world);
    assert.deepEqual([...rows.keys()].sort(), [...this.items.keys()].sort(), "no item is lost, none appears");
    for (const [id, row] of rows) {
      const item = this.items.get(id);
      assert(item !== undefined);
      if (this.undecided.has(item)) this.#mayBeLost(item, row);
      if (item.state === "Delayed" && hasTimePassed && row.state !== "Delayed") item.state = "Pending";
      if (item.state === "Pending" && row.state === "Running") this.#assigned(item, row);
      const isWaiting = item.state === "Pending" || item.state === "Delayed";
      if (isWaiting && row.state === "Done") this.#takenLate(id, item, row);
      const { output, ...rest } = row;
      if (item.state === "Done") assert.equal(output, item.output, "the result that was reported first");
      const { state, attempt } = item;
      if (state === "Done" || state === "Failed")
        assert.deepEqual([row.state, row.attempt], [state, attempt]);
      else assert.deepEqual({ ...rest, output: undefined }, item);
    }
  }

  /** It stays where it is until it is known how it was lost. */
  #mayBeLost(item: ModelItem, row: ModelItem): void {
    const isThere = row.state === "Running" && row.attempt === item.attempt;
    if (item.state === "Running" && isThere) return;
    this.undecided.delete(item);
    if (item.state !== "Running") return;
    const isCounted = row.lost > item.lost || row.state === "Failed";
    if (isCounted) this.lost(item);
    else Object.assign(item, { holder: undefined, state: "Pending" });
  }

  #takenLate(id: string, item: ModelItem, { attempt, output }: ModelItem): void {
    const isReported = this.#late.get(id)?.some((late) => late.attempt === attempt && late.output === output);
    assert(isReported === true && attempt <= item.attempt, "a late result is of an attempt that there was");
    assert(this.phase !== "cancelled", "a cancelled run takes nothing more");
    Object.assign(item, { state: "Done" as const, attempt, output });
  }

  #assigned(item: ModelItem, { holder, attempt }: ModelItem): void {
    assert(holder !== undefined);
    assert.equal(this.phase, "active", "nothing is given out by a run that is paused or cancelled");
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

function neverGivenOut(priority: number): ModelItem {
  const history = { failedBy: "", blamed: "", isApart: false, returnedAtMs: [], tried: "" };
  const numbers = { priority, attempt: 0, charged: 0, lost: 0 };
  return { state: "Pending", ...numbers, ...history, holder: undefined, output: undefined };
}

function charge(item: ModelItem, worker: string): void {
  item.holder = undefined;
  item.charged++;
  if (item.failedBy === "") item.blamed = worker;
  else if (item.blamed !== worker) item.blamed = "";
  item.failedBy = worker;
  item.state = item.charged >= MODEL_BUDGETS.maxAttempts ? "Failed" : "Delayed";
}

async function readRows(world: World): Promise<Map<string, ModelItem>> {
  const read = async <T>(prefix: string, type: RecordType<T>): Promise<Map<string, T>> => {
    const entries = await world.rowsUnder(prefix);
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
    assert(isPlace(place));
    const row: ModelItem = { ...neverGivenOut(priorityOf(place)), ...returned.get(place) };
    const found: ModelItem["state"][] = returned.has(place) ? ["Pending"] : [];
    const waiting = delayed.get(place);
    if (waiting !== undefined) found.push(Object.assign(row, waiting, { state: "Delayed" as const }).state);
    const held = running.get(place);
    if (held !== undefined) {
      const { worker, incarnation, epoch, number } = held;
      const { attempt, charged, lost, failedBy, blamed, isApart, returnedAtMs, tried } = held;
      const history = { attempt, charged, lost, failedBy, blamed, isApart, returnedAtMs, tried };
      const holder = { worker, incarnation, epoch, number };
      found.push(Object.assign(row, { state: "Running" as const, ...history, holder }).state);
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
