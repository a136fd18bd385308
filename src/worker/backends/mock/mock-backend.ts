// Pretends to work: sleeps, gives the payload back, fails at a rate. For the smokes, the benchmarks and tests; what it
// costs is what rollout itself costs.
import { closeSync, openSync, writeSync } from "node:fs";
import { unreachable } from "../../../base/assert.ts";
import type { Clock } from "../../../base/clock.ts";
import { sleep } from "../../../base/clock.ts";
import { failure } from "../../../base/errors.ts";
import type { WorkerId } from "../../../base/ids.ts";
import type { Random } from "../../../base/random.ts";
import { systemReason } from "../../../base/system-reason.ts";
import type { Backend, ItemAttempt, KeyOfItem, Outcome } from "../backend.ts";

export interface MockBackendOptions {
  readonly clock: Clock;
  /** A seeded one makes the same sequence of sleeps and failures. */
  readonly random: Random;
  /** Nothing at all unless said. */
  readonly sleep?: SleepDistribution;
  /** The share of attempts that end in `error`, 0 to 1; 0 unless said. */
  readonly failureRate?: number;
  readonly journal?: ExecutionJournal;
  /** The size of the state that it keeps for each key; it keeps none unless said. */
  readonly stateBytes?: number | undefined;
}

const NO_SLEEP: SleepDistribution = { kind: "constant", ms: 0 };

export class MockBackend implements Backend {
  readonly #options: MockBackendOptions;

  constructor(options: MockBackendOptions) {
    this.#options = options;
  }

  execute({ itemId, attempt, payload, keyed }: ItemAttempt, signal: AbortSignal): Promise<Outcome> {
    const { random, failureRate = 0, sleep: distribution = NO_SLEEP, journal, stateBytes } = this.#options;
    journal?.record(itemId, attempt);
    const durationMs = drawSleepMs(distribution, random);
    const outcome: Outcome =
      failureRate > 0 && random.unit() < failureRate
        ? { kind: "error", message: "the mock backend failed, as it was asked to" }
        : {
            ...{ kind: "success", output: payload },
            ...(keyed && stateBytes !== undefined && { state: counted(keyed, stateBytes) }),
          };
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

/** One more than before: how many items of the key have succeeded, in decimal digits, and blanks up to the size. */
function counted({ state }: KeyOfItem, bytes: number): Uint8Array {
  const before = state === undefined ? 0 : Number.parseInt(Buffer.from(state).toString(), 10);
  return Buffer.from(String(before + 1).padEnd(bytes));
}

/** How long pretended work takes. All times in milliseconds. */
export type SleepDistribution =
  | { readonly kind: "constant"; readonly ms: number }
  | { readonly kind: "uniform"; readonly minMs: number; readonly maxMs: number }
  | { readonly kind: "exponential"; readonly meanMs: number };

/**
 * The next duration, in milliseconds. An exponential one is cut off at twenty times its mean.
 * @internal
 */
export function drawSleepMs(distribution: SleepDistribution, random: Random): number {
  switch (distribution.kind) {
    case "constant":
      return distribution.ms;
    case "uniform":
      return distribution.minMs + random.unit() * (distribution.maxMs - distribution.minMs);
    case "exponential":
      // `unit` may be 0, never 1.
      return distribution.meanMs * Math.min(-Math.log(1 - random.unit()), 20);
    default:
      return unreachable(distribution, "sleep distribution");
  }
}

/**
 * A file in which each execution leaves a line before it does anything: the witness of tests that nothing ran twice, and
 * independent of what the ledger says. Any number of workers append to one file: a line is one write to a file opened with
 * O_APPEND, so that lines of several processes never mix.
 */
export interface ExecutionJournal {
  /** Returns when the line has been handed to the system: it outlives this process, if not this machine. */
  record(itemId: Uint8Array, attempt: number): void;
  close(): void;
}

/** Lines are `<item id in hex> <attempt> <worker id> <pid>`. Throws file_unwritable. */
export function openExecutionJournal(file: string, workerId: WorkerId): ExecutionJournal {
  const fd = open(file);
  const author = `${workerId} ${process.pid}`;
  return {
    record: (itemId, attempt) => {
      const bytes = Buffer.from(itemId.buffer, itemId.byteOffset, itemId.byteLength);
      writeSync(fd, `${bytes.toString("hex")} ${attempt} ${author}\n`);
    },
    close: () => closeSync(fd),
  };
}

function open(file: string): number {
  try {
    return openSync(file, "a", 0o600);
  } catch (error) {
    throw failure("file_unwritable", { file, reason: systemReason(error) }, error);
  }
}
