// The table of all metrics: their names, kinds, meanings, and every value that a label of theirs may have. docs/metrics.md is made from it, and
// nothing else is exposed.
//
// Keeps true: a label has the values that stand here and no others, so a cluster of any size and age has the same number of series; none names
// an item or a worker.

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

/** Answers within a machine: from a tenth of a millisecond to ten seconds. */
const SHORT_SECONDS = [0.0001, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 2.5, 10];
/** Ways between machines. */
const TRIP_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300];
/** Items: from a function's millisecond to a training shard of a day. */
const ITEM_SECONDS = [0.001, 0.005, 0.025, 0.1, 0.5, 1, 2.5, 10, 30, 60, 300, 900, 3_600, 14_400, 86_400];

const FAILURES = ["error", "timeout", "crash", "too_large", "poison", "cancelled"] as const;
const OWN_ENDS = ["success", "error", "timeout", "crash", "crash_shared", "too_large"] as const;
const WORKER_ATTEMPTS = [...OWN_ENDS, "preempted", "fenced"] as const;
const ATTEMPTS = [...WORKER_ATTEMPTS, "stolen", "cancelled", "lost"] as const;

export const METRICS = {
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
  // A coordinator, whether it leads or follows.
  rollout_is_leader: {
    of: "coordinator",
    type: "gauge",
    help: "1 on the coordinator that leads and answers calls, else 0.",
  },
  rollout_coordinator_role: {
    of: "coordinator",
    type: "gauge",
    help: "1 for the role that this coordinator is in, 0 for the others.",
    labels: { role: ["following", "claiming", "leader", "fenced", "halted"] },
  },
  rollout_epoch: {
    of: "coordinator",
    type: "gauge",
    help: "Epoch of the leader that this coordinator is or knows; grows with each leadership.",
  },
  rollout_takeovers_total: {
    of: "coordinator",
    type: "counter",
    help: "How often this process became the leader.",
  },
  rollout_replay_seconds: {
    of: "coordinator",
    type: "gauge",
    help: "Time to read the ledger when this process last became the leader.",
  },
  rollout_rehearsal_seconds: {
    of: "coordinator",
    type: "gauge",
    help: "Time that the last rehearsal of the replay took on a coordinator that follows.",
  },
  rollout_snapshot_age_seconds: {
    of: "coordinator",
    type: "gauge",
    help: "Time since the leader has published a snapshot, or a follower has seen a new one. Only where several coordinators share a database.",
  },
  rollout_database_answers: {
    of: "coordinator",
    type: "gauge",
    help: "1 while the database can be read, by the last heartbeats of a coordinator that shares it; else 0.",
  },
  rollout_lease_renewals_total: {
    of: "coordinator",
    type: "counter",
    help: "Renewals of the lease. Stays 0 where one coordinator has the database for itself.",
    labels: { result: ["renewed", "failed"] },
  },
  rollout_store_commit_seconds: {
    of: "coordinator",
    type: "histogram",
    help: "Time from handing a batch to the database to its answer. A batch with `sync` is then on stable storage.",
    labels: { durability: ["sync", "flush"] },
    buckets: SHORT_SECONDS,
  },
  rollout_store_fsync_seconds: {
    of: "coordinator",
    type: "histogram",
    help: "Time of one synced write of the database; batches that share the write count once.",
    buckets: SHORT_SECONDS,
  },
  rollout_store_unanswered_seconds: {
    of: "coordinator",
    type: "gauge",
    help: "How long the oldest synced commit has waited for its answer; 0 when none does.",
  },
  rollout_intake_bytes: {
    of: "coordinator",
    type: "gauge",
    help: "Bytes of received messages in memory, not yet written or dropped.",
  },
  // A worker.
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
  // Each process; the names that have no prefix are those that every Prometheus client has.
  rollout_event_loop_lag_seconds: {
    of: "process",
    type: "histogram",
    help: "How late the event loop ran a timer, measured ten times a second.",
    buckets: SHORT_SECONDS,
  },
  process_cpu_seconds_total: {
    of: "process",
    type: "counter",
    help: "Processor time of this process, user and system.",
  },
  process_resident_memory_bytes: {
    of: "process",
    type: "gauge",
    help: "Memory that this process has in use.",
  },
  process_open_fds: {
    of: "process",
    type: "gauge",
    help: "Files and sockets that this process has open.",
  },
  process_max_fds: {
    of: "process",
    type: "gauge",
    help: "Files and sockets that this process may have open.",
  },
  process_start_time_seconds: {
    of: "process",
    type: "gauge",
    help: "When this process began to answer, in seconds since 1970.",
  },
} as const satisfies Readonly<Record<string, Metric>>;

export type MetricName = keyof typeof METRICS;

type Row<Name extends MetricName> = (typeof METRICS)[Name];

/** Names of one type. */
export type NameOf<Type extends Metric["type"]> = {
  [Name in MetricName]: Row<Name>["type"] extends Type ? Name : never;
}[MetricName];

/** Each label with one of its values; undefined for a metric that has none. */
export type LabelsOf<Name extends MetricName> =
  Row<Name> extends { readonly labels: infer Labels }
    ? { readonly [Label in keyof Labels]: Labels[Label] extends readonly (infer Value)[] ? Value : never }
    : undefined;

/** The row by the type that all rows have. */
export function metricOf(name: MetricName): Metric {
  return METRICS[name];
}
