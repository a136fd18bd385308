// Metrics of a worker.
import { ITEM_SECONDS, TRIP_SECONDS, WORKER_ATTEMPTS } from "./metric-values.ts";
import type { Metrics } from "./metric-values.ts";

export const WORKER_METRICS = {
  rollout_worker_slots: {
    of: "worker",
    type: "gauge",
    help: "Slots of this worker.",
  },
  rollout_worker_executing: {
    of: "worker",
    type: "gauge",
    help: "Slots of this worker in which an item executes.",
  },
  rollout_worker_backlog: {
    of: "worker",
    type: "gauge",
    help: "Items that wait at this worker for a slot.",
  },
  rollout_worker_attempts_ended_total: {
    of: "worker",
    type: "counter",
    help: "Attempts that have ended at this worker, by class.",
    labels: { class: WORKER_ATTEMPTS },
  },
  rollout_worker_item_duration_seconds: {
    of: "worker",
    type: "histogram",
    help: "Execution time of attempts at this worker, whatever their end.",
    buckets: ITEM_SECONDS,
  },
  rollout_worker_beats_total: {
    of: "worker",
    type: "counter",
    help: "Heartbeats that this worker has sent.",
  },
  rollout_worker_beat_round_trip_seconds: {
    of: "worker",
    type: "histogram",
    help: "Time from sending a heartbeat to its answer.",
    buckets: TRIP_SECONDS,
  },
  rollout_worker_is_fenced: {
    of: "worker",
    type: "gauge",
    help: "1 while no coordinator has answered for so long that this worker starts nothing, else 0.",
  },
  rollout_worker_fences_total: {
    of: "worker",
    type: "counter",
    help: "How often this worker has fenced itself.",
  },
  rollout_worker_drain_state: {
    of: "worker",
    type: "gauge",
    help: "1 for the state of this worker's drain, 0 for the others.",
    labels: { state: ["idle", "going_on", "handing_back", "finishing", "saving", "flushing", "drained"] },
  },
  rollout_worker_unacknowledged_results: {
    of: "worker",
    type: "gauge",
    help: "Results of this worker that the coordinator has not acknowledged.",
  },
  rollout_worker_unacknowledged_bytes: {
    of: "worker",
    type: "gauge",
    help: "Bytes of results of this worker that the coordinator has not acknowledged.",
  },
  rollout_worker_processes: {
    of: "worker",
    type: "gauge",
    help: "Processes that this worker has started and that live: those of its backends, and the guardian that ends them with it.",
  },
  rollout_worker_processes_started_total: {
    of: "worker",
    type: "counter",
    help: "Processes that this worker has started, or could not start.",
    labels: { result: ["started", "failed"] },
  },
  rollout_worker_processes_ended_total: {
    of: "worker",
    type: "counter",
    help: "Processes of this worker that have ended: with exit code 0 (clean), or otherwise, killed ones included.",
    labels: { end: ["clean", "failed"] },
  },
} as const satisfies Metrics;
