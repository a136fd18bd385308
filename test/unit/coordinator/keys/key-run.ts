// A ledger with items of keys under random doings, and what has to be true of keys after each of them, told from nothing but the rows:
// one item of a key at a time, in order of submission, none behind a failed one that nobody has skipped, and a state that is the
// fold of what was recorded.
import assert from "node:assert/strict";
import { seededRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import type { KeySettings } from "../../../../src/coordinator/keys/key-settings.ts";
import type { KeyAction } from "../../../../src/coordinator/keys/key.ts";
import { keyStateRecord, pathOf } from "../../../../src/coordinator/keys/key-records.ts";
import { partitionOf } from "../../../../src/base/partition.ts";
import { isKeyed, isPlace, sequenceOf } from "../../../../src/coordinator/ledger/place.ts";
import type { Place } from "../../../../src/coordinator/ledger/place.ts";
import { doneRecord, failedRecord, itemRecord } from "../../../../src/coordinator/ledger/records.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { readHistory } from "../../../../src/coordinator/read/key-history.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import { decodeRecord, okOrFailure, recordChecksum } from "../../../../src/storage/codec.ts";
import type { RecordType } from "../../../../src/storage/codec.ts";
import {
  DONE_PREFIX,
  FAILED_PREFIX,
  ITEMS_PREFIX,
  RUNNING_PREFIX,
  STATES_PREFIX,
} from "../../../../src/storage/keys.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { linesOf, World } from "../../../support/world.ts";
import { successOf } from "../../../support/world-worker.ts";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";

const KEYS = ["a", "b", "c", "d"];
const PRIORITIES = [0, 0, 0, 7, -3];
const WORKERS = 3;
const PARTITIONS = 8;
const NONE = { kind: "none" } as const;

/** An item of a key, told from its rows. */
interface KeyedItem {
  readonly place: Place;
  readonly text: string;
  state: "pending" | "running" | "done" | "failed";
}

interface KeyRunOptions {
  readonly store?: Store;
  readonly keys?: Partial<KeySettings>;
}

export class KeyRun {
  readonly world: World;
  readonly #random: Random;
  readonly #skips: boolean;
  readonly #workers: WorldWorker[] = [];
  /** Failed items that an operator has skipped, by place. */
  readonly #skipped = new Set<Place>();
  /** Items that were given out before, by place. */
  readonly #begun = new Set<Place>();
  /** Items that were retried after they were skipped. */
  readonly #retaken = new Set<Place>();
  #submitted = 0;
  #incarnations = 10;
  executions = 0;

  private constructor(world: World, random: Random, skips: boolean) {
    this.world = world;
    this.#random = random;
    this.#skips = skips;
  }

  static async start(seed: number, { store, keys }: KeyRunOptions = {}): Promise<KeyRun> {
    // Few virtual nodes: each replay measures those of all members again.
    const settings: Partial<KeySettings> = { totalPartitions: PARTITIONS, virtualNodes: 16, ...keys };
    const budgets = { maxAttempts: 2, maxLost: 3 };
    const world = await World.start({ store: store ?? new MemoryStore(), seed, keys: settings, budgets });
    const run = new KeyRun(world, seededRandom(seed), settings.skipsFailed === true);
    for (let number = 1; number <= WORKERS; number++) {
      const worker = await world.worker(number, { slots: 2, credit: 4 });
      worker.plugins = [{ name: "order", version: "1", stateVersion: 1 }];
      await worker.beat();
      run.#workers.push(worker);
    }
    return run;
  }

  #pick<T>(list: readonly T[]): T {
    const one = list[Math.floor(this.#random.unit() * list.length)];
    assert(one !== undefined);
    return one;
  }

  async step(): Promise<void> {
    const drawn = this.#random.unit();
    const worker = this.#pick(this.#workers);
    if (drawn < 0.2) await this.#submit();
    else if (drawn < 0.6) await this.#report(worker);
    else if (drawn < 0.7) await worker.ask(2);
    else if (drawn < 0.76) await this.#release(worker);
    else if (drawn < 0.8) await this.#restart();
    else if (drawn < 0.84) await this.#die(worker);
    else if (drawn < 0.9) await this.#steer();
    else if (drawn < 0.94) await this.#retry();
    else await this.world.watch(this.#pick([300, 2_000, 40_000]), this.#workers);
    await this.check();
  }

  async #submit(): Promise<void> {
    const count = 1 + Math.floor(this.#random.unit() * 4);
    const texts = Array.from({ length: count }, () => `${this.#pick([...KEYS, ""])} ${this.#submitted++}`);
    const submission = `01SVBM1SS10N${String(this.#submitted).padStart(14, "0")}`;
    const parts = { submission, priority: this.#pick(PRIORITIES), keyOf: keyOf };
    const planned = await planSubmission(this.world.store, linesOf(texts, parts));
    assert(planned.kind === "planned");
    const { batch } = planned;
    await this.world.step({ kind: "submit", batch, answer: () => undefined });
    await this.world.settle();
  }

  async #report(worker: WorldWorker): Promise<void> {
    const item = worker.held[Math.floor(this.#random.unit() * worker.held.length)];
    if (item === undefined) return;
    const drawn = this.#random.unit();
    const outcome: ReportedOutcome =
      drawn < 0.1
        ? { kind: "too_large", message: "too large" }
        : drawn < 0.25
          ? { kind: "error", message: "it says no" }
          : drawn < 0.3
            ? { kind: "crash_shared", message: "it died with others" }
            : this.#success(item);
    this.executions++;
    await worker.report([item], outcome);
    await worker.ask(1);
  }

  #success(item: HeldItem): ReportedOutcome {
    const success = successOf(item);
    if (item.keyed === undefined) return success;
    const { commit, state } = item.keyed;
    const before = state === null ? "" : Buffer.from(state).toString();
    const left = Buffer.from(`${before}|${item.text}`);
    return { ...success, keyed: { basedOn: commit, state: left, stateVersion: 1 } };
  }

  async #release(worker: WorldWorker): Promise<void> {
    const [item] = worker.held.slice(-1);
    if (item !== undefined) await worker.handBack([item]);
  }

  async #restart(): Promise<void> {
    await this.world.lead();
    for (const worker of this.#workers) {
      await worker.reconnect();
      await worker.ask(4);
    }
  }

  async #die(worker: WorldWorker): Promise<void> {
    await worker.startAnew(++this.#incarnations);
    await worker.ask(4);
  }

  async #steer(): Promise<void> {
    const [action, key] = [
      this.#pick<KeyAction>(["pause", "resume", "skip", "resume", "skip"]),
      this.#pick(KEYS),
    ];
    const failed = (await this.items()).get(key)?.findLast(({ place }) => this.#isFailedHead(key, place));
    await this.world.ask((answer) => ({ kind: "steerKeys", action, keys: [key], answer }));
    await this.world.settle();
    if (action === "skip" && failed !== undefined) this.#skipped.add(failed.place);
  }

  #isFailedHead(key: string, place: Place): boolean {
    const known = this.world.state.keys.table.get(key);
    return known?.head?.place === place && known.row.context.hasFailed;
  }

  async #retry(): Promise<void> {
    const rows = await this.world.rowsUnder(FAILED_PREFIX);
    if (rows.length === 0) return;
    const { key, value } = this.#pick(rows);
    const record = okOrFailure("", decodeRecord(failedRecord, key, value));
    const place = key.slice(FAILED_PREFIX.length);
    assert(isPlace(place));
    const item = await this.#read(`${ITEMS_PREFIX}${place}`, itemRecord);
    const { id, attempt, class: as, message, isApart } = record;
    const failed = {
      place,
      id,
      attempt,
      class: as,
      message,
      isApart,
      checksum: recordChecksum(value),
      key: item.key,
    };
    if (this.#skipped.delete(place) || this.#skips) this.#retaken.add(place);
    await this.world.ask((answer) => ({ kind: "retry", failed: [failed], answer }));
    await this.world.settle();
  }

  async #read<T>(key: string, type: RecordType<T>): Promise<T> {
    const value = await this.world.store.get(key);
    assert(value !== undefined, `${key} is there`);
    return okOrFailure("", decodeRecord(type, key, value));
  }

  /** By key, in order of submission. */
  async items(): Promise<Map<string, KeyedItem[]>> {
    const states = new Map<string, KeyedItem["state"]>();
    for (const [prefix, state] of [
      [RUNNING_PREFIX, "running"],
      [DONE_PREFIX, "done"],
      [FAILED_PREFIX, "failed"],
    ] as const)
      for (const { key } of await this.world.rowsUnder(prefix)) states.set(key.slice(prefix.length), state);
    const items = new Map<string, KeyedItem[]>();
    for (const { key, value } of await this.world.rowsUnder(ITEMS_PREFIX)) {
      const place = key.slice(ITEMS_PREFIX.length);
      assert(isPlace(place));
      const item = okOrFailure("", decodeRecord(itemRecord, key, value));
      assert.equal(isKeyed(place), item.key !== "", "an item of a key stands in the upper half of its lane");
      if (item.key === "") continue;
      const of = items.get(item.key) ?? [];
      const state = states.get(place) ?? "pending";
      items.set(item.key, [...of, { place, text: Buffer.from(item.payload).toString(), state }]);
    }
    for (const of of items.values()) of.sort((one, other) => sequenceOf(one.place) - sequenceOf(other.place));
    return items;
  }

  async check(): Promise<void> {
    assert.deepEqual(this.world.fatal, [], "a store that is whole is not called damaged");
    for (const [key, items] of await this.items()) {
      const running = items.filter(({ state }) => state === "running");
      assert(running.length <= 1, `K1: of key ${key} ${running.length} items are with workers`);
      const [one] = running;
      if (one !== undefined && !this.#begun.has(one.place)) this.#checkOrder(key, items, one);
      await this.#checkState(key, items);
      await this.#checkHistory(key, items);
    }
  }

  /** The history of a key has what has succeeded, each once, the one that was recorded last first. */
  async #checkHistory(key: string, items: readonly KeyedItem[]): Promise<void> {
    const from = this.world.state.keys.table.get(key)?.last;
    const found = await readHistory(this.world.store, key, { from, limit: 1_000, bytes: 1e6 });
    const told = found.items.map(({ place }) => place);
    const done = items.filter(({ state }) => state === "done").map(({ place }) => place);
    assert.deepEqual([...told].sort(), done.sort(), `the history of key ${key}`);
    const recorded = found.items.map(({ final }) => final.record.completion);
    assert.deepEqual(
      recorded,
      [...recorded].sort((one, other) => other - one),
    );
  }

  /** At its first assignment an item is the first of its key, and nothing that failed keeps it. */
  #checkOrder(key: string, items: readonly KeyedItem[], one: KeyedItem): void {
    for (const { place, state } of items.slice(0, items.indexOf(one))) {
      const isPassed = state === "failed" && (this.#skips || this.#skipped.has(place));
      const isOver = state === "done" || isPassed || this.#retaken.has(place) || this.#begun.has(place);
      const isParked = state === "failed" && !isPassed && !this.#retaken.has(place);
      assert(isOver && !isParked, `${one.text} of key ${key} begins before another one, which is ${state}`);
    }
    this.#begun.add(one.place);
  }

  async #checkState(key: string, items: readonly KeyedItem[]): Promise<void> {
    const row = `${STATES_PREFIX}${pathOf(key, partitionOf(key, PARTITIONS))}`;
    const value = await this.world.store.get(row);
    const state = value === undefined ? NONE : okOrFailure("", decodeRecord(keyStateRecord, row, value));
    const done = items.filter(({ state: as }) => as === "done");
    const folded = "state" in state ? Buffer.from(state.state).toString().split("|").slice(1) : [];
    assert.deepEqual([...folded].sort(), done.map(({ text }) => text).sort(), `K2: the state of key ${key}`);
    for (const [at, { place }] of done.entries()) {
      const before = done[at - 1];
      if (before === undefined || this.#retaken.has(before.place) || this.#retaken.has(place)) continue;
      const texts = [before.place, place].map(
        (where) => done.find((item) => item.place === where)?.text ?? "",
      );
      const [first = 0, second = 0] = texts.map((text) => folded.indexOf(text));
      assert(first < second, `K2: key ${key} has folded its items in order`);
    }
    const last = done.length === 0 ? undefined : await this.#lastCommit(done);
    assert.equal(
      "commit" in state ? state.commit : undefined,
      last,
      "its commit is that of the last of them",
    );
  }

  async #lastCommit(done: readonly KeyedItem[]): Promise<number> {
    const commits = await Promise.all(
      done.map(({ place }) => this.#read(`${DONE_PREFIX}${place}`, doneRecord)),
    );
    return 1 + Math.max(...commits.map(({ completion }) => completion));
  }

  /** Everything heals: all go on, all work, and every item is final in the end. */
  async finish(): Promise<void> {
    await this.world.seal();
    for (let round = 0; ; round++) {
      assert(round < 400, "every item is final in the end");
      await this.world.ask((answer) => ({ kind: "steerKeys", action: "resume", keys: KEYS, answer }));
      for (const key of KEYS) {
        const known = this.world.state.keys.table.get(key);
        if (known?.row.context.hasFailed !== true || known.head === undefined) continue;
        this.#skipped.add(known.head.place);
        await this.world.ask((answer) => ({ kind: "steerKeys", action: "skip", keys: [key], answer }));
        await this.world.ask((answer) => ({ kind: "steerKeys", action: "resume", keys: [key], answer }));
      }
      await this.world.settle();
      for (const worker of this.#workers) {
        await worker.ask(4);
        for (const item of [...worker.held]) await worker.report([item], this.#success(item));
      }
      await this.check();
      const open = [...(await this.items()).values()]
        .flat()
        .filter(({ state }) => state === "pending" || state === "running");
      const { tally } = this.world.state.ledger;
      if (open.length === 0 && tally.pending + tally.count("running") === 0) return;
      await this.world.watch(5_000, this.#workers);
    }
  }

  /** A sealed run is complete when its rows agree with its numbers. */
  async complete(): Promise<void> {
    await this.world.settle();
    assert.equal((await this.world.view()).state, "Complete");
    assert.deepEqual(this.world.fatal, []);
  }
}

function keyOf(text: string): string {
  return text.split(" ")[0] ?? "";
}
