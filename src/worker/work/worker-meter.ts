// A worker's own counts for its metrics, since its process began. Nothing is counted here that it knows anyway.
import { countBy } from "../../observe/metrics/count-by.ts";
import type { Exposition } from "../../observe/metrics/exposition.ts";
import { Histogram } from "../../observe/metrics/histogram.ts";
import type { Finished } from "./execution.ts";

export class WorkerMeter {
  readonly #ended = countBy("rollout_worker_attempts_ended_total", "class");
  readonly #duration = new Histogram("rollout_worker_item_duration_seconds");
  readonly #roundTrip = new Histogram("rollout_worker_beat_round_trip_seconds");
  #fences = 0;

  ended({ outcome, durationMs }: Pick<Finished, "outcome" | "durationMs">): void {
    this.#ended[outcome.kind]++;
    this.#duration.observeMs(durationMs);
  }

  /** A heartbeat was answered. */
  answered(afterMs: number): void {
    this.#roundTrip.observeMs(afterMs);
  }

  fenced(): void {
    this.#fences++;
  }

  addTo(exposition: Exposition): void {
    exposition.addEach("rollout_worker_attempts_ended_total", "class", this.#ended);
    exposition.addHistogram("rollout_worker_item_duration_seconds", this.#duration);
    exposition.addHistogram("rollout_worker_beat_round_trip_seconds", this.#roundTrip);
    exposition.add("rollout_worker_fences_total", this.#fences);
  }
}
