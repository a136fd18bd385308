// A histogram: how many observations were at most as large as each of its bounds, and their sum. An observation is two additions, and makes
// nothing.
import type { MetricName, NameOf } from "./metric-table.ts";
import { metricOf } from "./metric-table.ts";

export class Histogram {
  readonly #bounds: readonly number[];
  /** One more than bounds: the last one has what is larger than all of them. */
  readonly #counts: Float64Array;
  #sum = 0;

  /** With the buckets that the table has for it. */
  constructor(name: NameOf<"histogram">) {
    this.#bounds = metricOf(name satisfies MetricName).buckets ?? [];
    this.#counts = new Float64Array(this.#bounds.length + 1);
  }

  observe(value: number): void {
    const bounds = this.#bounds;
    let at = 0;
    while (at < bounds.length && value > (bounds[at] ?? Infinity)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
  }

  /** The same, for what the program counts in milliseconds. */
  observeMs(valueMs: number): void {
    this.observe(valueMs / 1_000);
  }

  get sum(): number {
    return this.#sum;
  }

  /** Bound → how many observations are at most that large; the last one is Infinity. */
  get cumulative(): [bound: number, count: number][] {
    let total = 0;
    return [...this.#counts].map((count, at) => [this.#bounds[at] ?? Infinity, (total += count)]);
  }
}
