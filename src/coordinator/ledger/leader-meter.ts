// A leader's own counts for its metrics, from the moment at which it began to lead: each is an addition where something happens. Nothing is counted
// here that is known anyway (items by state, workers); leader-metrics.ts reads that when it is asked for.
//
// Keeps true: nothing is decided by any of it.
import { countBy } from "../../observe/metrics/count-by.ts";
import { Histogram } from "../../observe/metrics/histogram.ts";

export class LeaderMeter {
  attemptsStarted = 0;
  readonly attemptsEnded = countBy("rollout_attempts_ended_total", "class");
  readonly itemsFinished = countBy("rollout_items_finished_total", "class");
  readonly dispatchLatency = new Histogram("rollout_dispatch_latency_seconds");
  readonly itemDuration = {
    success: new Histogram("rollout_item_duration_seconds"),
    other: new Histogram("rollout_item_duration_seconds"),
  };
  workerFailures = 0;
  workerDrains = 0;
  steals = 0;
  itemsStolen = 0;
  readonly turnDuration = new Histogram("rollout_turn_duration_seconds");
  readonly turnInputs = new Histogram("rollout_turn_inputs");
  inboxRefused = 0;
  /** When a snapshot was last published, monotonic; undefined before the first. */
  publishedAtMs: number | undefined;
}
