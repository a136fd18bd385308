// The reactor without the loop around it: inputs in, what left of it out, time by hand. After each step the state is
// sane, and what a new leader would read from the store is what this one has in memory (C4).
import assert from "node:assert/strict";
import type { IncarnationId, WorkerId } from "../../src/base/ids.ts";
import { epoch, parseUlid } from "../../src/base/ids.ts";
import { seededRandom } from "../../src/base/random.ts";
import { turnstile } from "../../src/base/turnstile.ts";
import type { Beat, BeatAnswer, Input } from "../../src/coordinator/turn/input.ts";
import type { WorkerListing } from "../../src/coordinator/turn/worker-view.ts";
import { performEffect } from "../../src/coordinator/perform-effect.ts";
import type { EffectPorts } from "../../src/coordinator/perform-effect.ts";
import { react } from "../../src/coordinator/reactor.ts";
import { replay } from "../../src/coordinator/replay.ts";
import { scanIntervalMs } from "../../src/coordinator/workers/scan-failures.ts";
import type { CoordinatorState, LivenessSettings } from "../../src/coordinator/turn/state.ts";
import {
  isTrusted,
  sanityCheck,
  trustChart,
  workerChart,
  workerStateOf,
} from "../../src/coordinator/turn/state.ts";
import { HEARTBEATS_PREFIX } from "../../src/storage/keys.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Batch } from "../../src/storage/store.ts";
import { prefixRange } from "../../src/storage/store.ts";
import { RecordingEmitter } from "./recording-emitter.ts";
import { RecordingLogger } from "./recording-logger.ts";

/** The defaults of the configuration. */
/** A first leadership, with chance that repeats. */
export const LEADERSHIP = {
  epoch: epoch(0),
  budgets: { maxAttempts: 3, maxLost: 5 },
  random: seededRandom(1),
};

export const LIVENESS: LivenessSettings = {
  heartbeatIntervalMs: 500,
  clockSkewBudgetMs: 250,
  coordinatorFailureTimeoutMs: 5_000,
  removeAfterMs: 60_000,
};

/** Ids that sort as their numbers do. */
export function workerId(number: number): WorkerId {
  return ulid<WorkerId>("W", number);
}

export function incarnationId(number: number): IncarnationId {
  return ulid<IncarnationId>("A", number);
}

function ulid<Id extends WorkerId | IncarnationId>(letter: string, number: number): Id {
  const id = parseUlid<Id>(`01${letter}${String(number).padStart(23, "0")}`);
  assert(id !== undefined);
  return id;
}

export function beatOf(parts: Partial<Beat> = {}): Beat {
  return {
    workerId: workerId(1),
    incarnation: incarnationId(1),
    sequence: 1,
    state: "Ready",
    load: 0,
    sentAtMs: 0,
    slots: 1,
    plugins: [],
    isAtRisk: false,
    trouble: "",
    ...parts,
  };
}

export interface ReactorOptions extends Partial<LivenessSettings> {
  readonly workersMax?: number;
}

export class ReactorHarness {
  readonly store = new MemoryStore();
  events = new RecordingEmitter();
  log = new RecordingLogger();
  nowMs = 7_000;
  wallMs = 1_700_000_000_000;
  state: CoordinatorState;
  /** Writes of the last step. */
  written: Omit<Batch, "expect"> = { puts: [], deletes: [], durability: "flush" };
  readonly #options: ReactorOptions;

  private constructor(state: CoordinatorState, options: ReactorOptions) {
    this.state = state;
    this.#options = options;
  }

  static async start(options: ReactorOptions = {}): Promise<ReactorHarness> {
    const store = new MemoryStore();
    const harness = new ReactorHarness(await replay(store, replayOptions(options, 7_000)), options);
    return harness;
  }

  /** Answers that were read for the reactor's questions; the next `step` may hand them over. */
  readonly fed: Input[] = [];

  readonly #inTurn = turnstile();

  get ports(): EffectPorts {
    return {
      store: this.store,
      events: this.events,
      log: this.log,
      inTurn: this.#inTurn,
      feed: (input) => void this.fed.push(input),
      onFatal: (error) => {
        throw error;
      },
    };
  }

  /** One turn: reacts, commits, lets the effects leave. */
  async step(...inputs: Input[]): Promise<void> {
    const turn = react(this.state, inputs, { nowMs: this.nowMs, wallMs: this.wallMs });
    this.written = turn.writes;
    const outcome = await this.store.commit({ ...turn.writes, expect: [] });
    assert.equal(outcome.kind, "committed");
    for (const effect of turn.effects) performEffect(effect, this.ports);
    sanityCheck(this.state);
    await this.#checkReplay();
  }

  /** Sends one beat and returns its answer. */
  async beat(parts: Partial<Beat> = {}): Promise<BeatAnswer["verdict"]> {
    const [answer] = await this.beats(parts);
    assert(answer !== undefined);
    return answer.verdict;
  }

  /** Sends beats that arrive in one turn, and returns their answers in the order in which they left. */
  async beats(...all: Partial<Beat>[]): Promise<BeatAnswer[]> {
    const answers: BeatAnswer[] = [];
    const answer = (given: BeatAnswer): void => void answers.push(given);
    await this.step(...all.map((parts) => ({ kind: "beat", beat: beatOf(parts), answer }) as const));
    assert.equal(answers.length, all.length, "each beat is answered once");
    return answers;
  }

  async list(after = "", limit = 100): Promise<WorkerListing> {
    const listings: WorkerListing[] = [];
    const answer = (listing: WorkerListing): void => void listings.push(listing);
    await this.step({ kind: "listWorkers", after, limit, answer });
    const [listing] = listings;
    assert(listing !== undefined && listings.length === 1, "a listing is answered once");
    return listing;
  }

  /** Time passes and nobody looks: the process does not run. */
  stall(byMs: number): void {
    this.nowMs += byMs;
    this.wallMs += byMs;
  }

  async scan(): Promise<void> {
    await this.step({ kind: "scan" });
  }

  /** Time passes with a scan at each time that one is due, and one at the end. */
  async watch(byMs: number): Promise<void> {
    const stepMs = scanIntervalMs(this.state);
    for (let leftMs = byMs; leftMs > 0; leftMs -= stepMs) {
      this.stall(Math.min(leftMs, stepMs));
      await this.scan();
    }
  }

  /** A new leader over the same store. */
  async restart(): Promise<void> {
    this.state = await replay(this.store, replayOptions(this.#options, this.nowMs));
    sanityCheck(this.state);
  }

  /** `Ready+Alive`; undefined for a worker that is not registered. */
  stateOf(id: WorkerId = workerId(1)): string | undefined {
    const row = this.state.workers.get(id);
    if (row === undefined) return undefined;
    const { lifecycle, liveness } = workerStateOf(row);
    return `${lifecycle}+${liveness}`;
  }

  /** The topics that were emitted since the last call, in order, but for the heartbeats. */
  takeTopics(): string[] {
    const topics = this.events.events.map(({ topic }) => topic);
    this.events = new RecordingEmitter();
    return topics.filter((topic) => topic !== "worker_heartbeat");
  }

  async #checkReplay(): Promise<void> {
    const replayed = await replay(this.store, replayOptions(this.#options, this.nowMs));
    assert.deepEqual(persistedOf(replayed), persistedOf(this.state), "C4: replay(store) equals live state");
    const beats = await this.store.scan({ ...prefixRange(HEARTBEATS_PREFIX), limit: 10_000 });
    const ids = [...this.state.workers.keys()].sort();
    assert.deepEqual(
      beats.map(({ key }) => key.slice(HEARTBEATS_PREFIX.length)),
      ids,
      "every worker has its latest heartbeat in the store, and nobody else has one",
    );
  }
}

function replayOptions(
  { workersMax = 10, ...liveness }: ReactorOptions,
  nowMs: number,
): Parameters<typeof replay>[1] {
  return { liveness: { ...LIVENESS, ...liveness }, workersMax, nowMs, ...LEADERSHIP };
}

/** Everything of a state that is meant to survive; the rest is measured anew. */
export function persistedOf({ workers, workersCount }: CoordinatorState): unknown {
  return {
    count: workersCount.count,
    counted: hex(workersCount.entry().value),
    workers: [...workers.values()]
      .map((row) => ({
        id: row.id,
        state: workerChart.states[row.chart.state],
        context: row.chart.context,
        trust: trustChart.states[row.trust.state],
        failures: isTrusted(row) ? 0 : row.trust.context.failuresInRow,
        slots: row.slots,
        plugins: row.plugins,
        load: row.load,
        registeredAtWallMs: row.registeredAtWallMs,
        sequence: row.sequence,
        stored: hex(row.stored),
      }))
      .sort((left, right) => (left.id < right.id ? -1 : 1)),
  };
}

function hex(bytes: Uint8Array | undefined): string {
  return bytes === undefined ? "" : Buffer.from(bytes).toString("hex");
}
