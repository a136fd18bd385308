// A coordinator's reactor with its ledger, over any store and without the loop around it: submissions, beats, workers with
// sessions, operators, time by hand. After each step the state is sane, and what a new leader would read from the store is what
// this one has (C4).
import { runsAlone } from "../../machines/work-item.ts";
import { AwaitedValue } from "../../src/base/awaited-value.ts";
import { epoch, parseUlid } from "../../src/base/ids.ts";
import type { StoreId, WorkerId } from "../../src/base/ids.ts";
import { seededRandom } from "../../src/base/random.ts";
import type { Random } from "../../src/base/random.ts";
import { turnstile } from "../../src/base/turnstile.ts";
import { LIMITS } from "../../src/config/limits.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import type { Leadership } from "../../src/coordinator/lead/lease.ts";
import { isKeyed, isPlace, itemKeyOf, delayedKey } from "../../src/coordinator/ledger/place.ts";
import type { ItemBudgets, Ledger } from "../../src/coordinator/ledger/ledger.ts";
import type { Place } from "../../src/coordinator/ledger/place.ts";
import { readSetAside } from "../../src/coordinator/ledger/quarantine-record.ts";
import { nextAlone, nextPending } from "../../src/coordinator/ledger/queue.ts";
import { returnedRecord } from "../../src/coordinator/ledger/records.ts";
import { applyLoad, wantedLoads } from "../../src/coordinator/ledger/window-loads.ts";
import { performEffect } from "../../src/coordinator/perform-effect.ts";
import type { EffectPorts } from "../../src/coordinator/perform-effect.ts";
import { react } from "../../src/coordinator/reactor.ts";
import { keyRecord } from "../../src/coordinator/keys/key-records.ts";
import type { KeySettings } from "../../src/coordinator/keys/key-settings.ts";
import { KEY_DEFAULTS } from "../../src/coordinator/keys/key-settings.ts";
import { verifyLedger } from "../../src/coordinator/read/verify-ledger.ts";
import { loadWindow } from "../../src/coordinator/read/load-window.ts";
import { replay } from "../../src/coordinator/replay.ts";
import { FollowedKeys } from "../../src/coordinator/rpc/followed-keys.ts";
import type { Leader } from "../../src/coordinator/rpc/leader.ts";
import { envelopeOf } from "../../src/coordinator/rpc/messages.ts";
import { planSubmission } from "../../src/coordinator/rpc/submissions.ts";
import type { Lines } from "../../src/coordinator/rpc/submissions.ts";
import type { Beat, BeatAnswer, Input } from "../../src/coordinator/turn/input.ts";
import type { Filled } from "../../src/coordinator/turn/operator-message.ts";
import type { RunReach, RunLimits, SubmissionVerdict } from "../../src/coordinator/turn/run-terms.ts";
import type { CoordinatorState, LivenessSettings } from "../../src/coordinator/turn/state.ts";
import { workerStateOf } from "../../src/coordinator/turn/state.ts";
import { sanityCheck } from "./sanity-check.ts";
import type { Turn } from "../../src/coordinator/turn/turn.ts";
import type { GetRunResponse, ListWorkersResponse, Run } from "../../src/gen/rollout/v1/run_pb.ts";
import { meaningOf } from "../../src/coordinator/run/run.ts";
import { scanIntervalMs } from "../../src/coordinator/workers/scan-failures.ts";
import { decodeRecord, okOrFailure } from "../../src/storage/codec.ts";
import {
  HEARTBEATS_PREFIX,
  ITEMS_PREFIX,
  KEYS_PREFIX,
  QUARANTINE_PREFIX,
  RETURNED_PREFIX,
} from "../../src/storage/keys.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch, Entry, Store } from "../../src/storage/store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import { batchOf } from "./batch.ts";
import { Idleness } from "./idleness.ts";
import type { ReadyItem } from "./idleness.ts";
import { difference } from "./persisted-state.ts";
import { PowerLossStore } from "./power-loss-store.ts";
import { RecordingEmitter } from "./recording-emitter.ts";
import { RecordingLogger } from "./recording-logger.ts";
import { beatOf, workerId, WorldWorker } from "./world-worker.ts";
import assert from "node:assert/strict";

export const TASK_DIGEST = new Uint8Array(32).fill(7);
const SUBMISSION = "01SVBM1SS10N00000000000000";
const STORE = parseUlid<StoreId>("01STE000000000000000000000") ?? assert.fail();

/** A first leadership, with chance that repeats. */
export const LEADERSHIP = {
  epoch: epoch(0),
  budgets: { maxAttempts: 3, maxLost: 5 },
  random: seededRandom(1),
};

/** The defaults of the configuration. */
export const LIVENESS: LivenessSettings = {
  heartbeatIntervalMs: 500,
  clockSkewBudgetMs: 250,
  coordinatorFailureTimeoutMs: 5_000,
  removeAfterMs: 60_000,
};

export interface WorldOptions {
  readonly store?: Store;
  readonly budgets?: Partial<ItemBudgets>;
  readonly liveness?: Partial<LivenessSettings>;
  /** Where the run is paused. */
  readonly limits?: RunLimits;
  readonly workersMax?: number;
  /** Whether each step is compared with a replay; off where thousands of items make that slow. */
  readonly isChecked?: boolean;
  readonly seed?: number;
  readonly keys?: Partial<KeySettings>;
}

/** `state` is the name of the compiled chart's: `Open.Active`. */
type RunInNumbers = Omit<Filled<Run>, "state" | "pauseReason"> & {
  readonly state: string;
  readonly pauseReason: string | null;
};

export class World {
  store: Store;
  events = new RecordingEmitter();
  readonly log = new RecordingLogger();
  readonly fatal: unknown[] = [];
  readonly workers: WorldWorker[] = [];
  /** Rows that were read for the reactor and are not handed over yet. */
  readonly fed: Input[] = [];
  /** The word of the store when it is asked whether this coordinator leads. */
  isLeader = true;
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
  readonly reach = new AwaitedValue<RunReach>();
  readonly followedKeys = new FollowedKeys();
  readonly #idleness = new Idleness(IDLE_MAX_MS);
  #wake: () => void = () => undefined;
  readonly #options: WorldOptions;

  private constructor(options: WorldOptions) {
    this.#options = options;
    this.store = options.store ?? new MemoryStore();
  }

  static async start(options: WorldOptions = {}): Promise<World> {
    const world = new World(options);
    await world.lead();
    return world;
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
    this.#leadership = await new StorageLease(store, "the world").claim();
    this.#state = await this.#replay();
    sanityCheck(this.#state);
  }

  /** The machine loses its power, and a new leader finds what is left on its disk, as in `PowerLossStore`. */
  async losePower(random?: Random): Promise<void> {
    assert(this.store instanceof PowerLossStore, "the power of such a store can be lost");
    await this.lead(this.store.losePower(random));
  }

  #replay(): Promise<CoordinatorState> {
    const { epoch } = this.#leads;
    const { budgets, liveness, limits = {}, workersMax = 10, seed = 1, keys } = this.#options;
    return replay(this.store, {
      liveness: { ...LIVENESS, ...liveness },
      workersMax,
      budgets: { ...LEADERSHIP.budgets, ...budgets },
      limits,
      random: seededRandom(seed + epoch),
      epoch,
      nowMs: this.nowMs,
      scrubRows: SCRUB_ROWS,
      keys: { ...KEY_DEFAULTS, ...keys },
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

  /** A question whose answer leaves with its turn. */
  async ask<Answer>(inputOf: (answer: (given: Answer) => void) => Input): Promise<Answer> {
    const answers: Answer[] = [];
    await this.step(inputOf((given) => void answers.push(given)));
    const [answer] = answers;
    assert(answer !== undefined && answers.length === 1, "a question is answered once");
    return answer;
  }

  #decide(inputs: Input[]): Turn {
    return react(this.state, inputs, { nowMs: this.nowMs, wallMs: this.wallMs });
  }

  async #commit(turn: Turn): Promise<void> {
    this.written = turn.writes;
    if (!turn.hasWrites && !turn.isSynced) return;
    const expect = [this.#leads.epochRow, ...turn.writes.expect];
    const outcome = await this.store.commit({ ...turn.writes, expect });
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
      reach: this.reach,
      followedKeys: this.followedKeys,
      inTurn: this.#inTurn,
      isLeader: async () => Promise.resolve(this.isLeader),
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

  /** A submission, of which windows have not loaded what they do not have yet. */
  async offer(payloads: readonly string[], parts: SubmitParts = {}): Promise<SubmissionVerdict> {
    const planned = await planSubmission(this.store, linesOf(payloads, parts));
    assert(planned.kind !== "gap" && planned.kind !== "reused", `the batch is refused: ${planned.kind}`);
    if (planned.kind === "answered") return { kind: "taken", ...planned.answer };
    const { batch } = planned;
    return this.ask((answer) => ({ kind: "submit", batch, answer }));
  }

  /** A worker that is registered and has opened its session; `credit` is asked for at once. */
  async worker(
    number: number,
    { slots = 4, credit = 0, incarnation = 1, plugins = [] as Beat["plugins"] } = {},
  ): Promise<WorldWorker> {
    const worker = new WorldWorker(this, number, { slots, incarnation });
    worker.plugins = plugins;
    this.workers.push(worker);
    await worker.beat();
    await worker.hello();
    if (credit > 0) await worker.ask(credit);
    return worker;
  }

  /** The run in numbers, and its state by the name of the chart. */
  async view(): Promise<RunInNumbers> {
    const { run } = await this.ask<Filled<GetRunResponse>>((answer) => ({ kind: "getRun", answer }));
    assert(run !== undefined);
    return { ...run, state: meaningOf(this.state).name, pauseReason: run.pauseReason ?? null };
  }

  list(after = "", limit = 100): Promise<Filled<ListWorkersResponse>> {
    return this.ask((answer) => ({ kind: "listWorkers", after, limit, answer }));
  }

  /** One beat, of a worker that has no session, and its verdict. */
  async beat(parts: Partial<Beat> = {}): Promise<BeatAnswer["verdict"]> {
    const [answer] = await this.beats(parts);
    assert(answer !== undefined);
    return answer.verdict;
  }

  /** Beats that arrive in one turn, and their answers in the order in which they left. */
  async beats(...all: Partial<Beat>[]): Promise<BeatAnswer[]> {
    const answers: BeatAnswer[] = [];
    const answer = (given: BeatAnswer): void => void answers.push(given);
    await this.step(...all.map((parts) => ({ kind: "beat", beat: beatOf(parts), answer }) as const));
    assert.equal(answers.length, all.length, "each beat is answered once");
    return answers;
  }

  async seal(): Promise<void> {
    await this.step({ kind: "seal", answer: () => undefined });
    await this.settle();
  }

  /** Time passes with a scan at each time that one is due; those workers go on beating. */
  async watch(byMs: number, beating: readonly WorldWorker[] = []): Promise<void> {
    const stepMs = scanIntervalMs(this.state);
    for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
      const passedMs = Math.min(leftMs, stepMs);
      this.pass(passedMs);
      for (const worker of beating) await worker.beat();
      await this.scan();
      if (this.#options.isChecked !== false) await this.#checkIdleness();
    }
  }

  async scan(): Promise<void> {
    await this.step({ kind: "scan" });
    await this.settle();
  }

  /** A scan over rows that somebody has changed behind the leader's back. */
  async scanUnchecked(): Promise<void> {
    const turn = this.#decide([{ kind: "scan" }]);
    this.#perform(turn);
    await this.read();
    const found = this.#decide(this.fed.splice(0));
    this.#perform(found);
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

  /** `Ready+Alive`; undefined for a worker that is not registered. */
  stateOf(id: WorkerId = workerId(1)): string | undefined {
    const row = this.state.workers.get(id);
    if (row === undefined) return undefined;
    const { lifecycle, liveness } = workerStateOf(row);
    return `${lifecycle}+${liveness}`;
  }

  /** The context of an item that is running, in its chart. */
  contextOf(item: { readonly id: Uint8Array } | undefined) {
    return this.state.ledger.running.get(itemKeyOf(item?.id ?? new Uint8Array()))?.row.context;
  }

  /** How often each item that is running was lost, fewest first. */
  get losses(): number[] {
    return [...this.state.ledger.running.values()].map(({ row }) => row.context.lost).sort();
  }

  rowsUnder(prefix: string): Promise<Entry[]> {
    return this.store.scan({ ...prefixRange(prefix), limit: 1_000_000 });
  }

  async countUnder(prefix: string): Promise<number> {
    return (await this.rowsUnder(prefix)).length;
  }

  /** Behind the leader's back, the last byte of a row becomes another one, or the row is gone. Returns its key. */
  async damage(prefix: string, nth = 0, how: "flipped" | "gone" = "flipped"): Promise<string> {
    const row = (await this.rowsUnder(prefix))[nth];
    assert(row !== undefined, `there is no row ${nth} under ${prefix}`);
    const { key } = row;
    const value = Buffer.from(row.value);
    value[value.length - 1] = (value.at(-1) ?? 0) ^ 1;
    const harm = how === "gone" ? { deletes: [key] } : { puts: [{ key, value }] };
    await this.store.commit(batchOf(harm));
    return key;
  }

  /** The topics that were emitted since the last call, in order, but for the heartbeats. */
  takeTopics(): string[] {
    const topics = this.events.events.map(({ topic }) => topic);
    this.events = new RecordingEmitter();
    return topics.filter((topic) => topic !== "worker_heartbeat");
  }

  /** This coordinator, for a service in front of it: `push` takes what the service says. */
  leader(push: Leader["push"], parts: Partial<Leader> = {}): Leader {
    return {
      envelope: envelopeOf(epoch(this.state.epoch), STORE),
      ...{ workersMax: 10, inboxMax: 1_000, limits: LIMITS, address: "nowhere:1" },
      reach: this.reach,
      followedKeys: this.followedKeys,
      stopping: new AbortController().signal,
      onHigherEpoch: () => undefined,
      push,
      ...parts,
    };
  }

  async #checkReplay(): Promise<void> {
    const replayed = await this.#replay();
    assert.equal(difference(replayed, this.state), undefined, "C4: replay(store) equals live state");
    const { inOrder, alone } = await drain(replayed.ledger, this.store);
    const pending = (await pendingPlaces(this.store)).filter((place) => !isPlace(place) || !isKeyed(place));
    const { ledger, keys } = this.state;
    if (keys.isInUse) {
      const damage = await verifyLedger(this.store, ledger.tally.numbers, keys.rows.numbers);
      assert.equal(damage, undefined, "each item of a key that is not final stands at its key, once");
    }
    const together = pending.filter((place) => !alone.includes(place));
    assert.deepEqual(inOrder, together, "C4: windows hold what is pending, in order");
    assert.deepEqual([...together, ...alone].sort(), [...pending].sort(), "and what runs alone");
    const heartbeatsUnder = async (prefix: string): Promise<string[]> =>
      (await this.rowsUnder(prefix)).map(({ key }) => key.slice(prefix.length));
    const heard = await heartbeatsUnder(HEARTBEATS_PREFIX);
    const aside = await heartbeatsUnder(`${QUARANTINE_PREFIX}${HEARTBEATS_PREFIX}`);
    const ids = [...this.state.workers.keys()].filter((id) => heard.includes(id) || !aside.includes(id));
    assert.deepEqual(
      heard,
      ids.sort(),
      "every worker has its latest heartbeat in the store, nobody else has one",
    );
  }
}

/** The texts of so many items, each another one. */
export function texts(count: number, prefix = "item", from = 0): string[] {
  return Array.from({ length: count }, (_, at) => `${prefix} ${from + at}`);
}

/** Longer than a load takes, much shorter than anybody's patience. */
const IDLE_MAX_MS = 5_000;

/** Few, so that the scrub is under way while things happen. */
const SCRUB_ROWS = 3;

const READS: ReadonlySet<string> = new Set([
  "loadWindow",
  "loadKeys",
  "verifyLedger",
  "scrubLedger",
  "examineReport",
  "examineClaims",
  "confirmLeadership",
  "readCounts",
]);

export interface SubmitParts {
  readonly submission?: string;
  readonly batchNumber?: number;
  readonly priority?: number;
  /** The plugin that the workers have, unless said. */
  readonly plugin?: string;
  /** Whether a sealed run takes it. */
  readonly reopen?: boolean;
  /** The key of each line, unless none has one. */
  readonly keyOf?: (payload: string) => string;
  /** The event id of each line. */
  readonly eventOf?: (payload: string) => string;
}

export function linesOf(
  payloads: readonly string[],
  {
    submission = SUBMISSION,
    batchNumber = 1,
    priority = 0,
    plugin = "",
    reopen = false,
    keyOf = () => "",
    eventOf = () => "",
  }: SubmitParts = {},
): Lines {
  const lines = payloads.map((payload) => ({
    payload: Buffer.from(payload),
    key: keyOf(payload),
    eventId: eventOf(payload),
    label: "",
    priority,
  }));
  const task = { digest: TASK_DIGEST, plugin, summary: "a task" };
  return { submission, batchNumber, task, reopen, lines };
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
  const heads = await waitingHeads(store);
  const isFirst = (id: string): boolean => !isPlace(id) || !isKeyed(id) || heads.has(id);
  for (const id of (await pendingPlaces(store)).filter(isFirst))
    ready.set(id, { id, attempt: 0, failedBy: "", isAlone: false });
  for (const { key, value } of await store.scan({ ...prefixRange(RETURNED_PREFIX), limit: 1_000_000 })) {
    const budgets = okOrFailure("", decodeRecord(returnedRecord, key, value));
    const id = key.slice(key.lastIndexOf("/") + 1);
    if (!isFirst(id)) continue;
    const { attempt, failedBy } = budgets;
    ready.set(id, { id, attempt, failedBy, isAlone: runsAlone(budgets) });
  }
  return [...ready.values()];
}

/** Items that are the next of their keys, and may be given out. */
async function waitingHeads(store: Store): Promise<ReadonlySet<string>> {
  const heads = new Set<string>();
  for (const { key, value } of await store.scan({ ...prefixRange(KEYS_PREFIX), limit: 1_000_000 })) {
    const { state, head } = okOrFailure("", decodeRecord(keyRecord, key, value));
    if (state === "Waiting") heads.add(head);
  }
  return heads;
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
