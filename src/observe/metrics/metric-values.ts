// A metric, and the values that several of them share: bounds of buckets, and classes of attempts.

/** A leader's are there while it leads, and begin at 0 with each leadership. */
export type MetricSource = "leader" | "coordinator" | "worker" | "process";

export interface Metric {
  readonly of: MetricSource;
  readonly type: "counter" | "gauge" | "histogram";
  readonly help: string;
  /** Label → its values. */
  readonly labels?: Readonly<Record<string, readonly string[]>>;
  /** Upper bounds of a histogram's buckets, ascending; the last one, which takes all, is not among them. */
  readonly buckets?: readonly number[];
}

export type Metrics = Readonly<Record<string, Metric>>;

/** Answers within a machine: from a tenth of a millisecond to ten seconds. */
export const SHORT_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10];
/** Ways between machines. */
export const TRIP_SECONDS = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300,
];
/** Items: from a function's millisecond to a training shard of a day. */
export const ITEM_SECONDS = [
  0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400,
];

export const FAILURES = ["error", "timeout", "crash", "too_large", "poison", "cancelled"] as const;
const OWN_ENDS = ["success", "error", "timeout", "crash", "crash_shared", "too_large"] as const;
export const WORKER_ATTEMPTS = [...OWN_ENDS, "preempted", "fenced"] as const;
export const ATTEMPTS = [...WORKER_ATTEMPTS, "stolen", "cancelled", "lost"] as const;
