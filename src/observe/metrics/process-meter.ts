// The process as its metrics have it: processors, memory, descriptors, and how late its event loop is.
import { openDescriptors, openFilesLimit } from "../../base/process-table.ts";
import type { Clock, Timer } from "../../base/clock.ts";
import type { Exposition } from "./exposition.ts";
import { Histogram } from "./histogram.ts";

const LOOK_MS = 100;
const MICROSECONDS = 1e6;

export class ProcessMeter {
  readonly #clock: Clock;
  readonly #startedAtMs: number;
  readonly #lag = new Histogram("rollout_event_loop_lag_seconds");
  #timer: Timer | undefined;

  /** Looks at the event loop from now on, until `stop`. */
  constructor(clock: Clock) {
    this.#clock = clock;
    this.#startedAtMs = clock.wallMs();
    this.#look();
  }

  stop(): void {
    this.#timer?.cancel();
  }

  addTo(exposition: Exposition): void {
    const { user, system } = process.cpuUsage();
    const [open, limit] = [openDescriptors(), openFilesLimit()];
    exposition.addHistogram("rollout_event_loop_lag_seconds", this.#lag);
    exposition.add("process_cpu_seconds_total", (user + system) / MICROSECONDS);
    exposition.add("process_resident_memory_bytes", process.memoryUsage.rss());
    if (open !== undefined) exposition.add("process_open_fds", open.length);
    if (limit !== undefined) exposition.add("process_max_fds", limit);
    exposition.add("process_start_time_seconds", this.#startedAtMs / 1_000);
  }

  #look(): void {
    const dueMs = this.#clock.monotonicMs() + LOOK_MS;
    const look = (): void => {
      this.#lag.observeMs(Math.max(0, this.#clock.monotonicMs() - dueMs));
      this.#look();
    };
    this.#timer = this.#clock.after(LOOK_MS, look, { background: true });
  }
}
