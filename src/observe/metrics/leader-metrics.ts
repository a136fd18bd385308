// Metrics of a leader: the run, workers and fleets as it knows them, and its reactor. They begin at 0 with each leadership.
import { ATTEMPTS, FAILURES, ITEM_SECONDS, SHORT_SECONDS, TRIP_SECONDS } from "./metric-values.ts";
import type { Metrics } from "./metric-values.ts";

export const LEADER_METRICS = {
  // The run, by its leader.
  rollout_items: {
    of: "leader",
    type: "gauge",
    help: "Items by state; each is in one. Delayed ones wait for another attempt, those set aside stand in quarantine.",
    labels: { state: ["pending", "delayed", "running", "done", "failed", "set_aside"] },
  },
  rollout_items_finished_total: {
    of: "leader",
    type: "counter",
    help: "Items that became final: done (class success), or failed and why.",
    labels: { class: ["success", ...FAILURES] },
  },
  rollout_run_state: {
    of: "leader",
    type: "gauge",
    help: "1 for the state that the run is in, 0 for the others.",
    labels: { state: ["open", "sealed", "paused", "complete", "cancelled"] },
  },
  rollout_attempts_started_total: {
    of: "leader",
    type: "counter",
    help: "Attempts that were given to a worker.",
  },
  rollout_attempts_ended_total: {
    of: "leader",
    type: "counter",
    help: "Attempts that have ended, by class. Preempted, stolen, fenced and lost ones charge nobody, and their items run again.",
    labels: { class: ATTEMPTS },
  },
  rollout_attempts_reassigned_total: {
    of: "leader",
    type: "counter",
    help: "Attempts that had begun and ended because their worker was lost.",
  },
  rollout_stale_reports_total: {
    of: "leader",
    type: "counter",
    help: "Reports of attempts that were not current any more; they change nothing.",
  },
  rollout_conflicts_total: {
    of: "leader",
    type: "counter",
    help: "Results that contradict the one that is recorded, which stays.",
  },
  rollout_dispatch_latency_seconds: {
    of: "leader",
    type: "histogram",
    help: "Time that an attempt was with its worker and did not execute: from its assignment to its report, less the execution time that the worker reports.",
    buckets: TRIP_SECONDS,
  },
  rollout_item_duration_seconds: {
    of: "leader",
    type: "histogram",
    help: "Execution time of attempts, as workers report it.",
    labels: { outcome: ["success", "other"] },
    buckets: ITEM_SECONDS,
  },
  rollout_items_executing: {
    of: "leader",
    type: "gauge",
    help: "Items that execute, by the last beats of the workers.",
  },
  rollout_items_waiting_at_workers: {
    of: "leader",
    type: "gauge",
    help: "Assigned items that do not execute yet: the workers' backlogs.",
  },
  // Workers and fleets, by their leader.
  rollout_slots_wanted: {
    of: "leader",
    type: "gauge",
    help: "Slots that the work is worth, as fleets want them; without fleets, one for each item that could run.",
  },
  rollout_allocations: {
    of: "leader",
    type: "gauge",
    help: "Workers that fleets have asked for, by state.",
    labels: { state: ["requested", "queued", "booting", "joined", "ending"] },
  },
  rollout_machine_seconds_total: {
    of: "leader",
    type: "counter",
    help: "Time of machines that fleets have used, in seconds, of this run since its beginning.",
  },
  rollout_workers: {
    of: "leader",
    type: "gauge",
    help: "Workers of the registry by liveness and by state in their lifecycle.",
    labels: {
      liveness: ["alive", "suspected", "failed", "removed"],
      state: ["init", "ready", "draining", "gone"],
    },
  },
  rollout_workers_cordoned: {
    of: "leader",
    type: "gauge",
    help: "Cordoned workers: they failed items that others completed, and get single items to try.",
  },
  rollout_worker_failures_total: {
    of: "leader",
    type: "counter",
    help: "How often a worker fell silent and counted as failed.",
  },
  rollout_worker_drains_total: {
    of: "leader",
    type: "counter",
    help: "How often a worker began to drain.",
  },
  rollout_slots: {
    of: "leader",
    type: "gauge",
    help: "Slots of all workers that are heard.",
  },
  rollout_sessions: {
    of: "leader",
    type: "gauge",
    help: "Workers with an open session.",
  },
  rollout_steals_total: {
    of: "leader",
    type: "counter",
    help: "Recalls that brought unstarted items back for an idle worker.",
  },
  rollout_items_stolen_total: {
    of: "leader",
    type: "counter",
    help: "Unstarted items that recalls brought back for idle workers.",
  },
  rollout_states_sent_total: {
    of: "leader",
    type: "counter",
    help: "Items of keys that were given out with the state of their key.",
  },
  rollout_states_saved_total: {
    of: "leader",
    type: "counter",
    help: "Items of keys that were given out without the state of their key, because the worker had it.",
  },
  // The reactor of the leader.
  rollout_turn_duration_seconds: {
    of: "leader",
    type: "histogram",
    help: "Time to compute one turn of the reactor, without its commit.",
    buckets: SHORT_SECONDS,
  },
  rollout_turn_inputs: {
    of: "leader",
    type: "histogram",
    help: "Inputs that one turn of the reactor took.",
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1_024],
  },
  rollout_inbox_inputs: {
    of: "leader",
    type: "gauge",
    help: "Inputs that wait for a turn of the reactor.",
  },
  rollout_inbox_refused_total: {
    of: "leader",
    type: "counter",
    help: "Inputs that were refused because the inbox was full; their senders try again.",
  },
} as const satisfies Metrics;
