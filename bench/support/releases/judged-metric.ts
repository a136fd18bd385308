// One metric of a simulated release, looked at after every item by the product's own test. A look that cannot end in a verdict is
// recognized without it, which makes campaigns of millions of looks a second possible.
import { addNumber, boundsOf, compare, emptyCounts, verdictOn } from "../../../src/base/statistics/metric.ts";
import type { ArmCounts, MetricSpec, Verdict } from "../../../src/base/statistics/metric.ts";
import { differenceOf } from "../../../src/base/statistics/interval.ts";
import { addToRate } from "../../../src/base/statistics/rate-sequence.ts";
import type { RateCounts } from "../../../src/base/statistics/rate-sequence.ts";

export type ArmName = "stable" | "candidate";

export class JudgedMetric {
  readonly metric: MetricSpec;
  readonly alphaOfArm: number;
  readonly stable: ArmCounts;
  readonly candidate: ArmCounts;
  /** The logarithm of 1 / alpha. */
  readonly #evidence: number;
  /** The logarithm of the mixture's chance for what was seen, kept from item to item. */
  readonly #logMixture = { stable: 0, candidate: 0 };

  constructor(metric: MetricSpec, alphaOfArm: number) {
    this.metric = metric;
    this.alphaOfArm = alphaOfArm;
    this.#evidence = -Math.log(alphaOfArm);
    this.stable = emptyCounts(metric);
    this.candidate = emptyCounts(metric);
  }

  /** One more observation: of a rate 1 for a bad one and 0 for a good one. */
  add(arm: ArmName, value: number): void {
    const counts = this[arm];
    if (counts.kind === "rate") {
      const alike = value === 1 ? counts.k : counts.n - counts.k;
      this.#logMixture[arm] += Math.log((alike + 0.5) / (counts.n + 1));
      addToRate(counts, value === 1);
    } else if (this.metric.kind === "number") addNumber(this.metric, counts, value, this.alphaOfArm);
  }

  isBreached(): boolean {
    return this.#leanings() === "worse" && this.#verdict() === "breach";
  }

  isProved(): boolean {
    return this.#leanings() === "not worse" && this.#verdict() === "proof";
  }

  #verdict(): Verdict {
    return compare(this.metric, this, this.alphaOfArm).verdict;
  }

  /** The only way that a verdict could go; undefined where `compare` would hold. */
  #leanings(): "worse" | "not worse" | undefined {
    const { metric, stable, candidate, alphaOfArm } = this;
    if (stable.n === 0 || candidate.n === 0) return undefined;
    if (stable.kind === "rate" && candidate.kind === "rate") {
      const own = stable.k / stable.n;
      const other = candidate.k / candidate.n - metric.maxWorse;
      // If both versions leave it possible that stable has one certain rate, and the candidate that with the margin, there is no verdict.
      // One that lies nearer to the version of more items shows that most often.
      const nearer = own + (other - own) / (1 + Math.sqrt(stable.n / candidate.n));
      const between = Math.min(1 - metric.maxWorse, Math.max(0, nearer));
      const canDecide =
        this.#excludes("stable", stable, between) ||
        this.#excludes("candidate", candidate, between + metric.maxWorse);
      return canDecide ? (other > own ? "worse" : "not worse") : undefined;
    }
    const unit = metric.kind === "number" ? metric.high - metric.low : 1;
    const worse = differenceOf(boundsOf(candidate, alphaOfArm), boundsOf(stable, alphaOfArm));
    const verdict = verdictOn(worse, metric.maxWorse / unit);
    return verdict === "hold" ? undefined : verdict === "breach" ? "worse" : "not worse";
  }

  #excludes(arm: ArmName, { n, k }: RateCounts, rate: number): boolean {
    if (rate <= 0) return k > 0;
    if (rate >= 1) return k < n;
    // No mixture is likelier than the rate that was seen, which is likelier than this one by no more than chi-square says.
    const distance = k / n - rate;
    if (n * distance * distance < rate * (1 - rate) * this.#evidence) return false;
    const own = k * Math.log(rate) + (n - k) * Math.log1p(-rate);
    // Rounded towards a look too many.
    return this.#logMixture[arm] - own >= this.#evidence - 1e-9;
  }
}
