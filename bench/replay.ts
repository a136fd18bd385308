// The cost of a restart: the time a new leader needs to read its state, with more and more finished items and the same number in
// flight. It has to be flat.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "../src/base/assert.ts";
import { systemClock } from "../src/base/clock.ts";
import { epoch, newUlid } from "../src/base/ids.ts";
import type { IncarnationId, RunId, WorkerId } from "../src/base/ids.ts";
import { systemRandom } from "../src/base/random.ts";
import { turnstile } from "../src/base/turnstile.ts";
import { planSubmission } from "../src/coordinator/rpc/submissions.ts";
import { react } from "../src/coordinator/reactor.ts";
import { replay } from "../src/coordinator/replay.ts";
import type { SessionFrame } from "../src/coordinator/turn/session-frame.ts";
import type { CoordinatorState } from "../src/coordinator/turn/state.ts";
import { openLevelStore } from "../src/storage/level/level-store.ts";
import { claimStore } from "../src/storage/store-identity.ts";
import type { Store } from "../src/storage/store.ts";
import type { Input } from "../src/coordinator/turn/input.ts";
import { performEffect } from "../src/coordinator/perform-effect.ts";
import { NoopEmitter } from "../src/observe/events.ts";
import { silentLogger } from "../src/observe/log.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";

const FINISHED = [1_000, 100_000, 1_000_000] as const;
const IN_FLIGHT = 1_000;
const BATCH = 2_000;
const [clock, random] = [systemClock, systemRandom];
const LEADERSHIP = {
  liveness: {
    heartbeatIntervalMs: 500,
    clockSkewBudgetMs: 250,
    coordinatorFailureTimeoutMs: 5_000,
    removeAfterMs: 60_000,
  },
  workersMax: 10,
  epoch: epoch(0),
  budgets: { maxAttempts: 3, maxLost: 5 },
  random,
};

export const replayBench: Bench = {
  name: "replay",
  async run(note) {
    const figures: Figure[] = [];
    for (const finished of FINISHED) {
      const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
      try {
        const path = join(directory, "db");
        await fill(path, finished);
        const openedMs = clock.monotonicMs();
        const store = await openLevelStore({ path, holderName: "bench", clock });
        const replayedFromMs = clock.monotonicMs();
        const state = await replay(store, { ...LEADERSHIP, nowMs: clock.monotonicMs() });
        const endMs = clock.monotonicMs();
        assert(state.ledger.running.size === IN_FLIGHT, "everything in flight is back");
        await store.close();
        note(
          `${finished} finished: open ${round(replayedFromMs - openedMs)} ms, replay ${round(endMs - replayedFromMs, 1)} ms`,
        );
        const name = `${finished} finished, ${IN_FLIGHT} in flight`;
        figures.push({
          name: `${name}: open the database`,
          value: round(replayedFromMs - openedMs),
          unit: "ms",
        });
        figures.push({ name: `${name}: replay`, value: round(endMs - replayedFromMs, 1), unit: "ms" });
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }
    return figures;
  },
};

/** A store with so many finished items, made by the reactor itself. */
async function fill(path: string, finished: number): Promise<void> {
  const store = await openLevelStore({ path, holderName: "bench", clock });
  await claimStore(store, { runId: newUlid<RunId>(clock, random), clock, random });
  const drive = new Drive(store, await replay(store, { ...LEADERSHIP, nowMs: clock.monotonicMs() }));
  await drive.join();
  for (let done = 0; done < finished; done += BATCH)
    await drive.finish(done, Math.min(BATCH, finished - done));
  await drive.assign(finished, IN_FLIGHT);
  await store.close();
}

class Drive {
  readonly #store: Store;
  readonly #state: CoordinatorState;
  readonly #workerId = newUlid<WorkerId>(clock, random);
  readonly #incarnation = newUlid<IncarnationId>(clock, random);
  #assigned: { readonly id: Uint8Array; readonly attempt: number }[] = [];
  readonly #inTurn = turnstile();
  #fed: Input[] = [];
  #batch = 0;
  readonly #port = {
    send: (frame: SessionFrame) => {
      if (frame.kind === "assignments") this.#assigned.push(...frame.items);
    },
    end: () => {},
  };

  constructor(store: Store, state: CoordinatorState) {
    this.#store = store;
    this.#state = state;
  }

  async join(): Promise<void> {
    const [workerId, incarnation] = [this.#workerId, this.#incarnation];
    const beat = {
      workerId,
      incarnation,
      sequence: 1,
      state: "Ready",
      load: 0,
      sentAtMs: 0,
      slots: 4_096,
      plugins: [],
      isAtRisk: false,
      trouble: "",
    } as const;
    await this.#step({ kind: "beat", beat, answer: () => {} });
    await this.#step({
      kind: "hello",
      workerId,
      incarnation,
      held: [],
      sessionNumber: 0,
      ackedAssignment: 0,
      port: this.#port,
    });
  }

  async assign(from: number, count: number): Promise<void> {
    this.#batch++;
    const lines = Array.from({ length: count }, (_, at) => ({
      payload: Buffer.from(`{"n":${from + at}}`),
      key: "",
      priority: 0,
      label: "",
    }));
    const submission = {
      submission: "bench",
      batchNumber: this.#batch,
      task: { digest: new Uint8Array(32), plugin: "", summary: "" },
      reopen: false,
      lines,
    };
    const planned = await planSubmission(this.#store, submission);
    assert(planned.kind === "planned", "each batch is a new one");
    const { batch } = planned;
    await this.#step({ kind: "submit", batch, answer: () => {} });
    await this.#step({ kind: "credit", workerId: this.#workerId, port: this.#port, more: count });
    while (this.#assigned.length < count) await this.#step();
  }

  async finish(from: number, count: number): Promise<void> {
    await this.assign(from, count);
    const digest = new Uint8Array(32);
    const outcome = { kind: "success", output: new Uint8Array(64), digest } as const;
    const reports = this.#assigned.map(({ id, attempt }) => ({
      id,
      attempt,
      incarnation: this.#incarnation,
      epoch: 0,
      outcome,
    }));
    this.#assigned = [];
    await this.#step({
      kind: "results",
      workerId: this.#workerId,
      port: this.#port,
      number: this.#batch,
      reports,
    });
  }

  async #step(...inputs: Input[]): Promise<void> {
    const fed = this.#fed;
    this.#fed = [];
    const turn = react(this.#state, [...fed, ...inputs], {
      nowMs: clock.monotonicMs(),
      wallMs: clock.wallMs(),
    });
    const outcome = await this.#store.commit({ ...turn.writes, durability: "flush", expect: [] });
    assert(outcome.kind === "committed", "the bench's store takes what it is given");
    const ports = {
      store: this.#store,
      events: new NoopEmitter(),
      log: silentLogger,
      feed: (input: Input) => void this.#fed.push(input),
      onFatal: (error: unknown) => assert(false, String(error)),
      isLeader: () => Promise.resolve(true),
      inTurn: this.#inTurn,
    };
    for (const effect of turn.effects) performEffect(effect, ports);
    await new Promise<void>((resolve) => clock.nextTurn(resolve));
  }
}
