// How often something may happen at most, that was seen so often: the upper bound of Clopper and Pearson.
import { logGamma } from "../../../src/base/statistics/log-gamma.ts";

const HALVINGS = 50;

/** With `confidence` the true rate is at most that, after `count` of `trials`. */
export function certainBound(count: number, trials: number, confidence: number): number {
  let [low, high] = [count / trials, 1];
  for (let at = 0; at < HALVINGS; at++) {
    const middle = (low + high) / 2;
    if (chanceOfAtMost(count, trials, middle) > 1 - confidence) low = middle;
    else high = middle;
  }
  return high;
}

function chanceOfAtMost(count: number, trials: number, rate: number): number {
  let chance = 0;
  for (let k = 0; k <= count; k++)
    chance += Math.exp(
      logGamma(trials + 1) -
        logGamma(k + 1) -
        logGamma(trials - k + 1) +
        k * Math.log(rate) +
        (trials - k) * Math.log1p(-rate),
    );
  return chance;
}
