// Inputs of a ledger, as commands that chance puts in any order: each is done to the real reactor over a real
// store, told to the model, and the two are compared.
import { itemIdText, isPlace } from "../../../../src/coordinator/ledger/place.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { COMPLETIONS_PREFIX, DONE_PREFIX, FAILED_PREFIX } from "../../../../src/storage/keys.ts";
import type { Entry, Store } from "../../../../src/storage/store.ts";
import { completionsRecord } from "../../../../src/coordinator/ledger/completions.ts";
import type { FailedItem } from "../../../../src/coordinator/ledger/ledger.ts";
import { doneRecord, failedRecord } from "../../../../src/coordinator/ledger/records.ts";
import type { RecordType } from "../../../../src/storage/codec.ts";
import { decodeRecord, okOrFailure, recordChecksum } from "../../../../src/storage/codec.ts";
import { linesOf, World } from "../../../support/world.ts";
import { claimOf, reportOf, successOf, WorldWorker } from "../../../support/world-worker.ts";
import type { HeldItem } from "../../../support/world-worker.ts";
import { LedgerModel, MODEL_BUDGETS } from "./ledger-model.ts";
import type { ModelItem } from "./ledger-model.ts";
import assert from "node:assert/strict";
import fc from "fast-check";

const WORKERS = 3;
const SLOTS = 2;
/** From the last beat to the failure, and a scan more. */
const FAILURE_MS = 6_250;
/** The scan that finds it: the first one later than an interval and the failure timeout. */
const FAILED_AFTER_MS = 5_750;
/** Workers that went down within less of each other may have gone together. */
const TOGETHER_MS = 12_000;

const worker = fc.nat(WORKERS - 1);
const at = fc.nat(5);
const outcome = fc.constantFrom(
  ...([
    "success",
    "success",
    "success",
    "error",
    "crash",
    "crash_shared",
    "too_large",
    "preempted",
    "stolen",
  ] as const),
);

type Fields = Readonly<Record<string, fc.Arbitrary<unknown>>>;
type Drawn<Of extends Fields> = {
  readonly [Name in keyof Of]: Of[Name] extends fc.Arbitrary<infer Value> ? Value : never;
};

/** A command and what it says, with its weight among the others. */
function to<const Name extends string, Of extends Fields>(weight: number, name: Name, fields: Of) {
  const arbitrary = fc.record({ do: fc.constant(name), ...fields });
  return { weight, arbitrary: arbitrary as unknown as fc.Arbitrary<{ readonly do: Name } & Drawn<Of>> };
}

export const command = fc.oneof(
  to(4, "submit", {
    texts: fc.array(fc.nat(19), { maxLength: 6 }),
    priority: fc.constantFrom(0, 0, 0, 5),
    isAnew: fc.boolean(),
  }),
  to(6, "credit", { worker, more: fc.integer({ min: 1, max: 4 }) }),
  to(8, "report", { worker, at, count: fc.integer({ min: 1, max: 3 }), outcome }),
  to(5, "repeat", { at: fc.nat(60), isSuccess: fc.boolean() }),
  to(3, "handBack", { worker, at }),
  to(5, "hello", { worker, unarrived: fc.nat(2) }),
  to(1, "die", { worker, finished: fc.nat(1) }),
  to(1, "silence", { worker }),
  to(1, "risk", { worker, isAtRisk: fc.boolean() }),
  to(2, "wait", { ms: fc.constantFrom(250, 1_000, 30_000) }),
  to(1, "restart", {}),
  to(3, "retry", { at, count: fc.nat(3) }),
  to(1, "pause", {}),
  to(4, "resume", {}),
  to(8, "deliver", {}),
  to(1, "answerLate", {}),
  to(3, "answerNow", {}),
);

type Command = typeof command extends fc.Arbitrary<infer One> ? One : never;

export class LedgerRun {
  readonly #ledger: World;
  readonly #model = new LedgerModel();
  readonly #workers: WorldWorker[] = [];
  /** Everything that was ever reported, by whom. */
  readonly #reports: {
    readonly by: WorldWorker;
    readonly item: HeldItem;
    readonly outcome: ReportedOutcome;
  }[] = [];
  #submission = 0;
  #batchNumber = 0;
  #incarnations = 1;
  #hasTimePassed = false;
  /** When a process was killed last. */
  #diedAtMs = -Infinity;

  private constructor(ledger: World) {
    this.#ledger = ledger;
  }

  static async start(store: Store, seed: number): Promise<LedgerRun> {
    const ledger = await World.start({ store, seed, budgets: MODEL_BUDGETS });
    const run = new LedgerRun(ledger);
    for (let number = 1; number <= WORKERS; number++) {
      const joined = new WorldWorker(ledger, number, { slots: SLOTS, incarnation: 1 });
      run.#workers.push(joined);
      await joined.beat();
      await run.#hello(joined);
    }
    return run;
  }

  async do(next: Command): Promise<void> {
    const ledger = this.#ledger;
    this.#hasTimePassed = false;
    switch (next.do) {
      case "submit":
        await this.#submit(next);
        break;
      case "credit":
        await this.#ask(this.#worker(next.worker), next.more);
        break;
      case "report": {
        const by = this.#worker(next.worker);
        const items = from(by.held, next.at).slice(0, next.count);
        for (const item of items) this.#reports.push({ by, item, outcome: outcomeOf(next.outcome, item) });
        await this.#report(by, items, next.outcome);
        by.forget(items);
        break;
      }
      case "repeat": {
        const [earlier] = from(this.#reports, next.at);
        if (earlier === undefined) break;
        // The same again, or what a worker that had given up has made after all.
        await this.#report(earlier.by, [earlier.item], next.isSuccess ? "success" : earlier.outcome.kind);
        break;
      }
      case "handBack":
        await this.#handBack(this.#worker(next.worker), next.at);
        break;
      case "hello": {
        const one = this.#worker(next.worker);
        one.held.splice(Math.max(0, one.held.length - next.unarrived));
        await one.beat();
        await this.#hello(one);
        break;
      }
      case "die":
        await this.#die(this.#worker(next.worker), next.finished);
        break;
      case "silence":
        await this.#silence(this.#worker(next.worker));
        break;
      case "risk":
        this.#worker(next.worker).isAtRisk = next.isAtRisk;
        await this.#worker(next.worker).beat();
        break;
      case "wait":
        await this.#wait(next.ms);
        break;
      case "restart":
        await ledger.lead();
        for (const session of this.#model.sessions.values()) session.isOpen = false;
        break;
      case "retry":
        await this.#retry(next.at, next.count);
        break;
      case "pause":
      case "resume":
        await this.#steer(next.do);
        break;
      case "deliver":
        await ledger.read();
        await ledger.step(...ledger.fed.splice(0));
        break;
      case "answerLate":
      case "answerNow":
        ledger[next.do]();
        break;
    }
    await this.#compare();
    assert.deepEqual(ledger.fatal, [], "a store that is whole is not called damaged");
  }

  async #steer(what: "pause" | "resume" | "cancel"): Promise<void> {
    const answer = (): void => undefined;
    if (this.#model.phase !== "cancelled") this.#model.phase = what === "pause" ? "paused" : "active";
    await this.#ledger.step(what === "pause" ? { kind: what, reason: "", answer } : { kind: what, answer });
  }

  /** Some of the items that have failed are retried. */
  async #retry(index: number, count: number): Promise<void> {
    const rows = await this.#ledger.rowsUnder(FAILED_PREFIX);
    const failed = from(rows, index).slice(0, count).map(failedItemOf);
    if (this.#model.phase !== "cancelled")
      for (const { id } of failed) this.#model.retried(this.#model.itemOf(id));
    await this.#ledger.step({ kind: "retry", failed, answer: () => undefined });
  }

  /** Held items fail; after it nothing is given out, whatever happens, and final items stay as they are. */
  async cancel(): Promise<void> {
    this.#model.cancelled();
    await this.#steer("cancel");
    await this.#compare();
    assert.equal(this.#ledger.state.ledger.running.size, 0, "a cancelled run has nothing in flight");
  }

  /** Everything heals: all come back, all work, time passes. Then every item is final, once. */
  async finish(): Promise<void> {
    await this.#steer("resume");
    for (let round = 0; ; round++) {
      assert(round < 200, "everything is final in the end");
      this.#ledger.answerNow();
      for (const one of this.#workers) {
        await one.beat();
        await this.#compare();
        await this.#hello(one);
        await this.#ask(one, 8);
      }
      await this.#ledger.settle();
      await this.#compare();
      for (const one of this.#workers) {
        await this.#report(one, [...one.held], "success");
        one.held.length = 0;
        await this.#compare();
      }
      const states = [...this.#model.items.values()].map(({ state }) => state);
      if (states.every((state) => state === "Done" || state === "Failed")) break;
      await this.#wait(30_000);
      await this.#compare();
    }
    await this.#everyItemIsFinalOnce();
  }

  async #everyItemIsFinalOnce(): Promise<void> {
    const { tally } = this.#ledger.state.ledger;
    const total = this.#model.items.size;
    assert.equal(tally.count("done") + tally.count("failed"), total);
    const rows = await this.#ledger.rowsUnder(COMPLETIONS_PREFIX);
    const last = new Map<string, number>();
    for (const [number, { key, value }] of rows.entries())
      for (const place of okOrFailure("", decodeRecord(completionsRecord, key, value)))
        last.set(place, number);
    const counted = new Map((await this.#finalRows()).map(({ place, completion }) => [place, completion]));
    assert.equal(counted.size, total, "each is final in one place");
    assert.deepEqual([...last].sort(), [...counted].sort(), "each counts where it became final last");
  }

  async #finalRows(): Promise<{ readonly place: string; readonly completion: number }[]> {
    const read = async <T extends { readonly completion: number }>(prefix: string, type: RecordType<T>) => {
      const rows = await this.#ledger.rowsUnder(prefix);
      return rows.map(({ key, value }) => {
        const { completion } = okOrFailure("", decodeRecord(type, key, value));
        return { place: key.slice(prefix.length), completion };
      });
    };
    return [...(await read(DONE_PREFIX, doneRecord)), ...(await read(FAILED_PREFIX, failedRecord))];
  }

  async #compare(): Promise<void> {
    await this.#model.compare(this.#ledger, { hasTimePassed: this.#hasTimePassed });
  }

  #worker(number: number): WorldWorker {
    const one = this.#workers[number];
    assert(one !== undefined);
    return one;
  }

  #isHeard(by: WorldWorker): boolean {
    return this.#model.sessions.get(by.id)?.isOpen === true;
  }

  async #submit({ texts, priority, isAnew }: Extract<Command, { do: "submit" }>): Promise<void> {
    if (this.#model.phase === "cancelled") return;
    if (isAnew || this.#submission === 0) [this.#submission, this.#batchNumber] = [this.#submission + 1, 0];
    const submission = `01SVBM1SS10N${String(this.#submission).padStart(14, "0")}`;
    const batchNumber = ++this.#batchNumber;
    const lines = linesOf(texts.map(String), { submission, batchNumber, priority });
    const planned = await planSubmission(this.#ledger.store, lines);
    assert(planned.kind === "planned");
    for (const { id } of planned.batch.added) this.#model.submitted(itemIdText(id), priority);
    await this.#ledger.step({ kind: "submit", batch: planned.batch, answer: () => undefined });
  }

  async #ask(by: WorldWorker, more: number): Promise<void> {
    const session = this.#model.sessions.get(by.id);
    if (session?.isOpen === true) session.credit += more;
    await this.#ledger.step(by.askInput(more));
  }

  async #report(by: WorldWorker, items: readonly HeldItem[], kind: ReportedOutcome["kind"]): Promise<void> {
    const { wallMs } = this.#ledger;
    if (this.#isHeard(by))
      for (const item of items) this.#model.reported(item, by.id, outcomeOf(kind, item), wallMs);
    const reports = items.map((item) => reportOf(item, outcomeOf(kind, item)));
    await this.#ledger.step(by.resultsInput(reports));
  }

  async #handBack(by: WorldWorker, index: number): Promise<void> {
    const items = from(by.held, index).slice(0, 1);
    const { wallMs } = this.#ledger;
    if (this.#isHeard(by))
      for (const item of items) this.#model.reported(item, by.id, { kind: "preempted" }, wallMs);
    // They may turn out to have been executed all the same.
    for (const item of items) this.#reports.push({ by, item, outcome: outcomeOf("success", item) });
    by.forget(items);
    await this.#ledger.step({ kind: "handedBack", workerId: by.id, port: by.port, attempts: items });
  }

  /** Says what it holds, `finished` being results of an earlier process; what is not kept is dropped. */
  async #hello(by: WorldWorker, finished: readonly HeldItem[] = []): Promise<void> {
    const kept = by.held.filter((item) => this.#model.isCurrent(item, by.id));
    const claimed = new Set([...kept, ...finished].map(({ id }) => this.#model.items.get(itemIdText(id))));
    const gone = this.#model.heldBy(by.id).filter((item) => !claimed.has(item));
    // Items that died with an older process are lost as far as they had begun.
    const begun = this.#model.begunBy(by.id, SLOTS, gone.filter(isOf(by, false)));
    for (const item of gone)
      if (begun.has(item)) this.#model.undecided.add(item);
      else this.#model.returned(item, this.#ledger.wallMs);
    this.#model.sessions.set(by.id, { credit: 0, isOpen: true });
    const claims = [...by.held.map((item) => claimOf(item)), ...finished.map((item) => claimOf(item, true))];
    await this.#ledger.step(by.helloInput(claims));
    by.held.splice(0, by.held.length, ...kept);
  }

  /** The process is killed; the next one has nothing but the results that were not delivered yet. */
  async #die(by: WorldWorker, count: number): Promise<void> {
    const finished = by.held.slice(0, count).filter((item) => this.#model.isCurrent(item, by.id));
    by.held.length = 0;
    by.restart(++this.#incarnations);
    this.#diedAtMs = this.#ledger.nowMs;
    const session = this.#model.sessions.get(by.id);
    if (session !== undefined) session.isOpen = false;
    await by.beat();
    await this.#compare();
    await this.#hello(by, finished);
    await this.#report(by, finished, "success");
  }

  /** One worker is not heard for so long that it fails; then it is heard again. It asks for nothing meanwhile. */
  async #silence(by: WorldWorker): Promise<void> {
    await by.beat();
    await this.#hello(by);
    await this.#compare();
    const failedAtMs = this.#ledger.wallMs + FAILED_AFTER_MS;
    const held = this.#model.heldBy(by.id);
    for (const items of [true, false].map((isOwn) => held.filter(isOf(by, isOwn)))) {
      const begun = this.#model.begunBy(by.id, SLOTS, items);
      for (const item of items)
        if (!begun.has(item)) this.#model.returned(item, failedAtMs);
        else if (this.#ledger.nowMs - this.#diedAtMs < TOGETHER_MS) this.#model.undecided.add(item);
        else this.#model.lost(item);
    }
    const session = this.#model.sessions.get(by.id);
    if (session !== undefined) session.isOpen = false;
    this.#hasTimePassed = true;
    const others = this.#workers.filter((one) => one !== by);
    await this.#ledger.watch(FAILURE_MS, others);
    await by.beat();
  }

  async #wait(ms: number): Promise<void> {
    this.#hasTimePassed = true;
    this.#ledger.pass(ms);
    for (const one of this.#workers) await one.beat();
    await this.#ledger.step({ kind: "scan" });
  }
}

/** Whether the worker's process of now has it, or an older one had. */
function isOf({ incarnation }: WorldWorker, isOwn: boolean): (item: ModelItem) => boolean {
  return ({ holder }) => (holder?.incarnation === incarnation) === isOwn;
}

/** The rest of the list from some place on: whatever number chance has drawn, there is one if the list has any. */
function from<T>(list: readonly T[], at: number): T[] {
  return list.slice(list.length === 0 ? 0 : at % list.length);
}

function failedItemOf({ key, value }: Entry): FailedItem {
  const record = okOrFailure("", decodeRecord(failedRecord, key, value));
  const { id, attempt, class: as, message, isApart } = record;
  const place = key.slice(FAILED_PREFIX.length);
  assert(isPlace(place));
  return { place, id, attempt, class: as, message, isApart, checksum: recordChecksum(value) };
}

function outcomeOf(kind: ReportedOutcome["kind"], item: HeldItem): ReportedOutcome {
  switch (kind) {
    case "success":
      // Each attempt makes another output, so that it shows whose was recorded.
      return successOf({ ...item, text: `${item.text} by ${item.attempt} of ${item.epoch}` });
    case "error":
    case "timeout":
    case "crash":
    case "crash_shared":
    case "too_large":
      return { kind, message: "it broke" };
    default:
      return { kind };
  }
}
