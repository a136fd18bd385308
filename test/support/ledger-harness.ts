// The reactor with its ledger, over any store and without the loop around it: submissions, workers with sessions, time by
// hand. After each step the state is sane, and what a new leader would read from the store is what this one has (C4).
import assert from "node:assert/strict";
import { runsAlone } from "../../machines/work-item.ts";
import { seededRandom } from "../../src/base/random.ts";
import { turnstile } from "../../src/base/turnstile.ts";
import type { Input } from "../../src/coordinator/turn/input.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import type { Leadership } from "../../src/coordinator/lead/lease.ts";
import { itemIdText } from "../../src/coordinator/ledger/item-id.ts";
import type { ItemBudgets, Ledger } from "../../src/coordinator/ledger/ledger.ts";
import { nextAlone, nextPending } from "../../src/coordinator/ledger/queue.ts";
import { applyLoad, wantedLoads } from "../../src/coordinator/ledger/window-loads.ts";
import { loadWindow } from "../../src/coordinator/read/load-window.ts";
import { readSetAside } from "../../src/coordinator/ledger/quarantine-record.ts";
import { performEffect } from "../../src/coordinator/perform-effect.ts";
import type { EffectPorts } from "../../src/coordinator/perform-effect.ts";
import { react } from "../../src/coordinator/reactor.ts";
import { replay } from "../../src/coordinator/replay.ts";
import { planSubmission } from "../../src/coordinator/rpc/plan-submission.ts";
import type { Lines } from "../../src/coordinator/rpc/plan-submission.ts";
import type { RunLimits, RunView, SubmissionVerdict } from "../../src/coordinator/turn/run-view.ts";
import { scanIntervalMs } from "../../src/coordinator/workers/scan-failures.ts";
import type { CoordinatorState, LivenessSettings } from "../../src/coordinator/turn/state.ts";
import { sanityCheck } from "../../src/coordinator/turn/state.ts";
import type { Turn } from "../../src/coordinator/turn/turn.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import { returnedRecord } from "../../src/coordinator/ledger/records.ts";
import { ITEMS_PREFIX, RETURNED_PREFIX } from "../../src/storage/keys.ts";
import { delayedKey } from "../../src/coordinator/ledger/place.ts";
import type { Place } from "../../src/coordinator/ledger/place.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch, Store } from "../../src/storage/store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import { Idleness } from "./idleness.ts";
import type { ReadyItem } from "./idleness.ts";
import { LIVENESS, persistedOf, workerId } from "./reactor-harness.ts";
import { RecordingEmitter } from "./recording-emitter.ts";
import { RecordingLogger } from "./recording-logger.ts";
import { LedgerWorker } from "./ledger-worker.ts";

export const TASK_DIGEST = new Uint8Array(32).fill(7);
const SUBMISSION = "01SVBM1SS10N00000000000000";

export interface LedgerHarnessOptions {
  readonly store?: Store;
  readonly budgets?: Partial<ItemBudgets>;
  readonly liveness?: Partial<LivenessSettings>;
  /** Where the run is paused. */
  readonly limits?: RunLimits;
  /** Whether each step is compared with a replay; off where thousands of items make that slow. */
  readonly isChecked?: boolean;
  readonly seed?: number;
}

export class LedgerHarness {
  store: Store;
  readonly events = new RecordingEmitter();
  readonly log = new RecordingLogger();
  readonly fatal: unknown[] = [];
  readonly workers: LedgerWorker[] = [];
  /** Rows that were read for the reactor and are not handed over yet. */
  readonly fed: Input[] = [];
  nowMs = 7_000;
  wallMs = 1_700_000_000_000;
  /** Writes of the last step. */
  written: Omit<Batch, "expect"> = { puts: [], deletes: [], durability: "flush" };
  #state: CoordinatorState | undefined;
  /** The present leadership: each batch expects its epoch (C1). */
  #leadership: Leadership | undefined;
  /** Turns that are committed, and whose effects wait; undefined while they leave at once. */
  #unanswered: Turn[] | undefined;
  #asked = 0;
  readonly #idleness = new Idleness(IDLE_MAX_MS);
  #wake: () => void = () => undefined;
  readonly #options: LedgerHarnessOptions;

  private constructor(options: LedgerHarnessOptions) {
    this.#options = options;
    this.store = options.store ?? new MemoryStore();
  }

  static async start(options: LedgerHarnessOptions = {}): Promise<LedgerHarness> {
    const harness = new LedgerHarness(options);
    await harness.lead();
    return harness;
  }

  get #leads(): Leadership {
    assert(this.#leadership !== undefined);
    return this.#leadership;
  }

  get state(): CoordinatorState {
    assert(this.#state !== undefined);
    return this.#state;
  }

  /** A new leader over the same store, or over what is left of it. Streams of before are not heard any more. */
  async lead(store: Store = this.store): Promise<void> {
    this.store = store;
    // Reads that still go on for the leader before come to nobody, also while the new one reads its state.
    this.#state = undefined;
    this.fed.length = 0;
    this.#unanswered = undefined;
    this.#asked = 0;
    this.#leadership = await new StorageLease(store, "the harness").claim();
    this.#state = await this.#replay();
    sanityCheck(this.#state);
  }

  #replay(): Promise<CoordinatorState> {
    const { epoch } = this.#leads;
    const { budgets, liveness, limits = {}, seed = 1 } = this.#options;
    return replay(this.store, {
      liveness: { ...LIVENESS, ...liveness },
      workersMax: 10,
      budgets: { maxAttempts: 3, maxLost: 5, ...budgets },
      limits,
      random: seededRandom(seed + epoch),
      epoch,
      nowMs: this.nowMs,
      scrubRows: SCRUB_ROWS,
    });
  }

  /** One turn: reacts, commits, lets the effects leave. The rows that they read wait in `fed`. */
  async step(...inputs: Input[]): Promise<void> {
    const turn = this.#decide(inputs);
    await this.#commit(turn);
    if (this.#unanswered === undefined) this.#perform(turn);
    else this.#unanswered.push(turn);
    sanityCheck(this.state);
    if (this.#options.isChecked !== false) await this.#checkReplay();
  }

  #decide(inputs: Input[]): Turn {
    return react(this.state, inputs, { nowMs: this.nowMs, wallMs: this.wallMs });
  }

  async #commit(turn: Turn): Promise<void> {
    this.written = turn.writes;
    const { puts, deletes } = turn.writes;
    if (puts.length === 0 && deletes.length === 0) return;
    const outcome = await this.store.commit({ ...turn.writes, expect: [this.#leads.epochRow] });
    assert.equal(outcome.kind, "committed");
  }

  #perform(turn: Turn): void {
    for (const effect of turn.effects) {
      if (READS.has(effect.kind)) this.#asked++;
      performEffect(effect, this.#portsOf(this.state));
    }
  }

  /** From now on commits are answered late: turns are decided on top of them, and their effects wait. */
  answerLate(): void {
    this.#unanswered ??= [];
  }

  answerNow(): void {
    const turns = this.#unanswered ?? [];
    this.#unanswered = undefined;
    for (const turn of turns) this.#perform(turn);
  }

  readonly #inTurn = turnstile();

  #portsOf(leader: CoordinatorState): EffectPorts {
    const answered = (take: () => void): void => {
      // Questions of an earlier leader are answered to nobody.
      if (leader !== this.#state) return;
      this.#asked--;
      take();
      this.#wake();
    };
    return {
      store: this.store,
      events: this.events,
      log: this.log,
      inTurn: this.#inTurn,
      feed: (input) => answered(() => void this.fed.push(input)),
      onFatal: (error) => answered(() => void this.fatal.push(error)),
    };
  }

  /** Everything that the reactor asked for is read; it waits in `fed`. */
  async read(): Promise<void> {
    while (this.#asked > 0) await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  /** Runs until nothing is asked for and nothing waits. */
  async settle(): Promise<void> {
    for (;;) {
      await this.read();
      if (this.fed.length === 0) return;
      await this.step(...this.fed.splice(0));
    }
  }

  async submit(payloads: readonly string[], parts: SubmitParts = {}): Promise<SubmissionVerdict> {
    const verdict = await this.offer(payloads, parts);
    await this.settle();
    return verdict;
  }

  /** A submission whose items no window has loaded yet. */
  async offer(payloads: readonly string[], parts: SubmitParts = {}): Promise<SubmissionVerdict> {
    const planned = await planSubmission(this.store, linesOf(payloads, parts));
    assert(planned.kind !== "gap", "a batch is missing");
    if (planned.kind === "answered") return { kind: "taken", ...planned.answer };
    const verdicts: SubmissionVerdict[] = [];
    const answer = (verdict: SubmissionVerdict): void => void verdicts.push(verdict);
    await this.step({ kind: "submit", batch: planned.batch, answer });
    const [verdict] = verdicts;
    assert(verdict !== undefined && verdicts.length === 1, "a submission is answered once");
    return verdict;
  }

  /** A worker that is registered and has opened its session; `credit` is asked for at once. */
  async worker(number: number, { slots = 4, credit = 0, incarnation = 1 } = {}): Promise<LedgerWorker> {
    const worker = new LedgerWorker(this, number, { slots, incarnation });
    this.workers.push(worker);
    await worker.beat();
    await worker.hello();
    if (credit > 0) await worker.ask(credit);
    return worker;
  }

  async view(): Promise<RunView> {
    const views: RunView[] = [];
    await this.step({ kind: "getRun", answer: (view) => void views.push(view) });
    const [view] = views;
    assert(view !== undefined);
    return view;
  }

  async seal(): Promise<void> {
    await this.step({ kind: "seal", answer: () => undefined });
    await this.settle();
  }

  /** Time passes with a scan at each time that one is due; those workers go on beating. */
  async watch(byMs: number, beating: readonly LedgerWorker[] = []): Promise<void> {
    const stepMs = scanIntervalMs(this.state);
    for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
      const passedMs = Math.min(leftMs, stepMs);
      this.pass(passedMs);
      for (const worker of beating) await worker.beat();
      await this.step({ kind: "scan" });
      await this.settle();
      if (this.#options.isChecked !== false) await this.#checkIdleness();
    }
  }

  async #checkIdleness(): Promise<void> {
    // Rows that were read come to nobody until the commits are answered.
    if (this.#unanswered !== undefined) return this.#idleness.forget();
    const wrong = this.#idleness.check(this.state, await readyItems(this.store), this.nowMs);
    assert.equal(wrong, undefined, "no work waits beside somebody who could do it");
  }

  /** Time passes and nobody looks. */
  pass(byMs: number): void {
    this.nowMs += byMs;
    this.wallMs += byMs;
  }

  /** Time passes until the next of the items that wait is due: the scan that finds it. */
  untilNextWakes(): Input {
    const next = this.state.ledger.delayed.peek();
    assert(next !== undefined, "nothing waits");
    const { steadyOffsetMs = this.wallMs - this.nowMs } = this.state;
    while (delayedKey(this.nowMs + steadyOffsetMs, "" as Place) <= next.key) this.pass(1);
    return { kind: "scan" };
  }

  async #checkReplay(): Promise<void> {
    const replayed = await this.#replay();
    assert.deepEqual(ledgerOf(replayed), ledgerOf(this.state), "C4: replay(store) equals live state");
    const { inOrder, alone } = await drain(replayed.ledger, this.store);
    const pending = await pendingPlaces(this.store);
    const together = pending.filter((place) => !alone.includes(place));
    assert.deepEqual(inOrder, together, "C4: windows hold what is pending, in order");
    assert.deepEqual([...together, ...alone].sort(), [...pending].sort(), "and what runs alone");
  }
}

/** Longer than a load takes, much shorter than anybody's patience. */
const IDLE_MAX_MS = 5_000;

/** Few, so that the scrub is under way while things happen. */
const SCRUB_ROWS = 3;

const READS: ReadonlySet<string> = new Set([
  "loadWindow",
  "verifyLedger",
  "scrubLedger",
  "examineReport",
  "examineClaims",
]);

export interface SubmitParts {
  readonly submission?: string;
  readonly batchNumber?: number;
  readonly priority?: number;
  /** The plugin that the workers have, unless said. */
  readonly plugin?: string;
  /** Whether a sealed run takes it. */
  readonly reopen?: boolean;
}

export function linesOf(
  payloads: readonly string[],
  { submission = SUBMISSION, batchNumber = 1, priority = 0, plugin = "", reopen = false }: SubmitParts = {},
): Lines {
  const lines = payloads.map((payload) => ({ payload: Buffer.from(payload), key: "", label: "", priority }));
  const task = { digest: TASK_DIGEST, plugin, summary: "a task" };
  return { submission, batchNumber, task, reopen, lines };
}

function ledgerOf(state: CoordinatorState): unknown {
  const { tally, running } = state.ledger;
  return {
    workers: persistedOf(state),
    run: state.run,
    task: state.task && { ...state.task, digest: Buffer.from(state.task.digest) },
    countedFrom: state.countedFrom,
    numbers: tally.numbers,
    running: [...running.values()]
      .map(({ place, id, number, row, checksum }) => ({ place, id: itemIdText(id), number, row, checksum }))
      .sort((one, other) => (one.place < other.place ? -1 : 1)),
    held: [...state.workers.values()].map(({ id, held }) => [id, [...held.keys()].sort()]).sort(),
  };
}

/** Items that a new leader would give out, in that order; those that run alone have one of their own. It uses up the ledger. */
async function drain(ledger: Ledger, store: Store): Promise<{ inOrder: string[]; alone: string[] }> {
  const [inOrder, alone]: [string[], string[]] = [[], []];
  for (;;) {
    for (let loads = wantedLoads(ledger); loads.length > 0; loads = wantedLoads(ledger))
      for (const load of loads) applyLoad(ledger, await loadWindow(store, load));
    const taker = { worker: workerId(1), isOnlyOne: true, nowMs: 0 };
    const item = nextPending(ledger, taker) ?? nextAlone(ledger, taker);
    if (item === undefined) return { inOrder, alone };
    if (item.returned !== null && runsAlone(item.returned.budgets)) alone.push(item.key);
    else inOrder.push(item.key);
  }
}

/** Items that may be given out now, from nothing but the rows. */
async function readyItems(store: Store): Promise<ReadyItem[]> {
  const ready = new Map<string, ReadyItem>();
  for (const id of await pendingPlaces(store))
    ready.set(id, { id, attempt: 0, failedBy: "", isAlone: false });
  for (const { key, value } of await store.scan({ ...prefixRange(RETURNED_PREFIX), limit: 1_000_000 })) {
    const budgets = okOrFailure("", decodeRecord(returnedRecord, key, value));
    const id = key.slice(key.lastIndexOf("/") + 1);
    const { attempt, failedBy } = budgets;
    ready.set(id, { id, attempt, failedBy, isAlone: runsAlone(budgets) });
  }
  return [...ready.values()];
}

/** The same, from nothing but the rows. */
async function pendingPlaces(store: Store): Promise<string[]> {
  const placesUnder = async (prefix: string): Promise<string[]> => {
    const rows = await store.scan({ ...prefixRange(prefix), limit: 1_000_000 });
    return rows.map(({ key }) => key.slice(key.lastIndexOf("/") + 1));
  };
  const elsewhere = new Set<string>();
  for (const prefix of ["delayed/", "running/", "done/", "failed/"])
    for (const place of await placesUnder(prefix)) {
      assert(!elsewhere.has(place), `${place} is in two places`);
      elsewhere.add(place);
    }
  const all = await placesUnder(ITEMS_PREFIX);
  for (const place of (await readSetAside(store)).keys()) elsewhere.add(place);
  return all.filter((place) => !elsewhere.has(place));
}
