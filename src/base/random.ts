// Chance, injected. The only file of the product that draws random bytes; a seeded source makes a run repeat.
import { randomFillSync } from "node:crypto";

export interface Random {
  /** `count` fresh bytes. */
  bytes(count: number): Uint8Array;
  /** Uniform in [0, 1). */
  unit(): number;
}

export const systemRandom: Random = {
  bytes: (count) => randomFillSync(new Uint8Array(count)),
  unit: () => Math.random(),
};

/**
 * The same seed draws the same values (mulberry32). For simulations and generated load, never for secrets.
 * @internal
 */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0;
  const unit = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return { unit, bytes: (count) => Uint8Array.from({ length: count }, () => Math.floor(unit() * 256)) };
}

// Exponential backoff with full jitter: a thousand clients that lost the same server do not come back together.

export interface BackoffRange {
  readonly baseMs: number;
  readonly ceilingMs: number;
}

/** The wait before try number `attempt` (1 is the first retry): uniform in [0, min(ceiling, base × 2^(attempt−1))]. */
export function backoffMs(range: BackoffRange, attempt: number, random: Random): number {
  return random.unit() * backoffCapMs(range, attempt);
}

/** The longest wait before try number `attempt`. */
export function backoffCapMs({ baseMs, ceilingMs }: BackoffRange, attempt: number): number {
  return Math.min(ceilingMs, baseMs * 2 ** Math.min(attempt - 1, 30));
}
