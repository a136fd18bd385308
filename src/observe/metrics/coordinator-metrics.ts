// Metrics of a coordinator, whether it leads or follows.
import { SHORT_SECONDS } from "./metric-values.ts";
import type { Metrics } from "./metric-values.ts";

export const COORDINATOR_METRICS = {
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
} as const satisfies Metrics;
