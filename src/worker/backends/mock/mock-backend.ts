// Pretends to work: sleeps, gives the payload back, fails at a rate. For the smokes, the benchmarks and tests; what it
// costs is what rollout itself costs.
import type { Clock } from "../../../base/clock.ts";
import { sleep } from "../../../base/clock.ts";
import type { Random } from "../../../base/random.ts";
import type { Backend, ItemAttempt, Outcome } from "../backend.ts";
import type { ExecutionJournal } from "./execution-journal.ts";
import { drawSleepMs } from "./sleep-distribution.ts";
import type { SleepDistribution } from "./sleep-distribution.ts";

export interface MockBackendOptions {
  readonly clock: Clock;
  /** A seeded one makes the same sequence of sleeps and failures. */
  readonly random: Random;
  /** Nothing at all unless said. */
  readonly sleep?: SleepDistribution;
  /** The share of attempts that end in `error`, 0 to 1; 0 unless said. */
  readonly failureRate?: number;
  readonly journal?: ExecutionJournal;
}

const NO_SLEEP: SleepDistribution = { kind: "constant", ms: 0 };

export class MockBackend implements Backend {
  readonly #options: MockBackendOptions;

  constructor(options: MockBackendOptions) {
    this.#options = options;
  }

  execute({ itemId, attempt, payload }: ItemAttempt, signal: AbortSignal): Promise<Outcome> {
    const { random, failureRate = 0, sleep: distribution = NO_SLEEP, journal } = this.#options;
    journal?.record(itemId, attempt);
    const durationMs = drawSleepMs(distribution, random);
    const outcome: Outcome =
      failureRate > 0 && random.unit() < failureRate
        ? { kind: "error", message: "the mock backend failed, as it was asked to" }
        : { kind: "success", output: payload };
    if (durationMs <= 0) return Promise.resolve(outcome);
    return this.#after(durationMs, outcome, signal);
  }

  close(): Promise<void> {
    this.#options.journal?.close();
    return Promise.resolve();
  }

  async #after(durationMs: number, outcome: Outcome, signal: AbortSignal): Promise<Outcome> {
    await sleep(this.#options.clock, durationMs, signal);
    return signal.aborted ? { kind: "preempted" } : outcome;
  }
}
