// One metric of a simulated release, looked at after every item by the product's own test. A look that ends as the one before is recognized
// without it, by one pair of means that are apart by the margin: as long as both are possible the test holds, and as long as stable's is
// better than all that is possible, and the candidate's worse, it proves. The pair lies in the middle, so it stays for many items.
import { addNumber, boundsOf, compare, emptyCounts } from "../../../src/base/statistics/metric.ts";
import type { ArmCounts, MetricSpec, Verdict } from "../../../src/base/statistics/metric.ts";
import { addToRate, logMixture } from "../../../src/base/statistics/rate-sequence.ts";
import type { RateCounts } from "../../../src/base/statistics/rate-sequence.ts";

export type ArmName = "stable" | "candidate";

/** Rounded towards a look too many. */
const ROUNDING = 1e-9;

/** A mean of a version, and whether it is possible. */
class Watched {
  readonly counts: ArmCounts;
  /** The logarithm of 1 / alpha for a rate, and of 2 / alpha for other means. */
  readonly #evidence: number;
  #mean = NaN;
  /** The logarithms of the rate and of its complement. */
  #logs = { bad: NaN, good: NaN };
  /** How much likelier the mixture makes what was seen than the rate does: a logarithm, kept from item to item. */
  #against = NaN;

  constructor(metric: MetricSpec, alphaOfArm: number) {
    this.counts = emptyCounts(metric);
    this.#evidence = Math.log((this.counts.kind === "rate" ? 1 : 2) / alphaOfArm);
  }

  set(mean: number): void {
    const { counts } = this;
    this.#mean = mean;
    if (counts.kind !== "rate") return;
    this.#logs = { bad: Math.log(mean), good: Math.log1p(-mean) };
    const { bad, good } = this.#logs;
    this.#against = logMixture(counts.n, counts.k) - counts.k * bad - (counts.n - counts.k) * good;
  }

  /** Before the observation is counted. */
  see({ n, k }: RateCounts, isBad: boolean): void {
    const alike = isBad ? k : n - k;
    this.#against += Math.log((alike + 0.5) / (n + 1)) - (isBad ? this.#logs.bad : this.#logs.good);
  }

  /** Whether the mean certainly lies within the bounds; false where that takes a closer look, also for what is no number. */
  get isPossible(): boolean {
    const { counts } = this;
    if (counts.kind === "rate") return this.#against < this.#evidence - ROUNDING;
    const distance = Math.abs(counts.weighted - this.#mean * counts.weights);
    return distance < this.#evidence + counts.penalty - ROUNDING * counts.n;
  }

  /** Whether all that is possible certainly lies above the mean; false as above. */
  get isBelowAll(): boolean {
    return this.#isBeyond(1);
  }

  get isAboveAll(): boolean {
    return this.#isBeyond(-1);
  }

  #isBeyond(sign: 1 | -1): boolean {
    const { counts } = this;
    if (counts.kind === "rate")
      return sign * (counts.k - this.#mean * counts.n) > 0 && this.#against > this.#evidence + ROUNDING;
    const distance = sign * (counts.weighted - this.#mean * counts.weights);
    return distance > this.#evidence + counts.penalty + ROUNDING * counts.n;
  }
}

export class JudgedMetric {
  readonly metric: MetricSpec;
  readonly alphaOfArm: number;
  /** The margin between badnesses of 0 and 1. */
  readonly #margin: number;
  readonly #arms: Readonly<Record<ArmName, Watched>>;

  constructor(metric: MetricSpec, alphaOfArm: number) {
    this.metric = metric;
    this.alphaOfArm = alphaOfArm;
    this.#margin = metric.kind === "number" ? metric.maxWorse / (metric.high - metric.low) : metric.maxWorse;
    this.#arms = {
      stable: new Watched(metric, alphaOfArm),
      candidate: new Watched(metric, alphaOfArm),
    };
  }

  get stable(): ArmCounts {
    return this.#arms.stable.counts;
  }

  get candidate(): ArmCounts {
    return this.#arms.candidate.counts;
  }

  /** One more observation: of a rate 1 for a bad one and 0 for a good one. */
  add(arm: ArmName, value: number): void {
    const watched = this.#arms[arm];
    const { counts } = watched;
    if (counts.kind === "rate") {
      watched.see(counts, value === 1);
      addToRate(counts, value === 1);
    } else if (this.metric.kind === "number") addNumber(this.metric, counts, value, this.alphaOfArm);
  }

  /** As the product's test says after the last observation. */
  look(): Verdict {
    const { stable: own, candidate: other } = this.#arms;
    if (own.isPossible && other.isPossible) return "hold";
    if (own.isBelowAll && other.isAboveAll) return "proof";
    return this.#watch();
  }

  /** Looks closely, and chooses the pair of means by which the next looks are short. */
  #watch(): Verdict {
    const { stable, candidate, alphaOfArm } = this;
    const { verdict } = compare(this.metric, this, alphaOfArm);
    const [own, other] = [boundsOf(stable, alphaOfArm), boundsOf(candidate, alphaOfArm)];
    // A mean that is possible for both, or one between all of the one and all of the other.
    const lower = Math.max(own.lower, other.lower - this.#margin);
    const upper = Math.max(0, Math.min(own.upper, other.upper - this.#margin));
    const middle = (lower + upper) / 2;
    this.#arms.stable.set(middle);
    this.#arms.candidate.set(middle + this.#margin);
    return verdict;
  }
}
