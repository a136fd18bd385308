// Metrics of each process. The names that have no prefix are those that every Prometheus client has.
import { SHORT_SECONDS } from "./metric-values.ts";
import type { Metrics } from "./metric-values.ts";

export const PROCESS_METRICS = {
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
} as const satisfies Metrics;
