// How long pretended work takes.
import { unreachable } from "../../../base/assert.ts";
import type { Random } from "../../../base/random.ts";

/** All times in milliseconds. */
export type SleepDistribution =
  | { readonly kind: "constant"; readonly ms: number }
  | { readonly kind: "uniform"; readonly minMs: number; readonly maxMs: number }
  | { readonly kind: "exponential"; readonly meanMs: number };

/** The next duration, in milliseconds. An exponential one is cut off at twenty times its mean. */
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
