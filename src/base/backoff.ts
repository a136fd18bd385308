// Exponential backoff with full jitter: a thousand clients that lost the same server do not come back together.
import type { Random } from "./random.ts";

export interface BackoffRange {
  readonly baseMs: number;
  readonly ceilingMs: number;
}

/** The wait before try number `attempt` (1 is the first retry): uniform in [0, min(ceiling, base × 2^(attempt−1))]. */
export function backoffMs(range: BackoffRange, attempt: number, random: Random): number {
  const cap = Math.min(range.ceilingMs, range.baseMs * 2 ** Math.min(attempt - 1, 30));
  return random.unit() * cap;
}
