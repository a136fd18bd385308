// An executor of a backend whose executions end when the test says so.
import type { Clock } from "../../../../src/base/clock.ts";
import type { Assigned } from "../../../../src/worker/work/backlog.ts";
import type { ExecutorOptions } from "../../../../src/worker/work/executor.ts";
import { Executor } from "../../../../src/worker/work/executor.ts";
import { BacklogPace } from "../../../../src/worker/work/backlog-pace.ts";
import type { Backend } from "../../../../src/worker/backends/backend.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { fixedPlugins } from "../../../support/fixed-plugins.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";

/** Small limits, and nobody hears of anything, but for what `parts` say. `prefetch`: so many wait, 3 unless said. */
export function executorOf(
  backend: Backend,
  clock: Clock,
  { prefetch = 3, ...parts }: Partial<ExecutorOptions> & { readonly prefetch?: number } = {},
): Executor {
  const slots = parts.slots ?? 2;
  return new Executor({
    plugins: fixedPlugins(backend),
    pace: new BacklogPace({ timeMs: 250, slots, least: prefetch, most: prefetch }),
    ...{
      slots,
      capacity: slots + prefetch,
      maxOutputBytes: 8,
      maxCheckpointBytes: 4,
      maxStateBytes: 4,
      env: {},
      clock,
    },
    log: new RecordingLogger(),
    mayStart: () => true,
    onFinished: () => undefined,
    onHandedBack: () => undefined,
    onSurplus: () => undefined,
    onRoom: () => undefined,
    ...parts,
  });
}

/** The first attempts of these, or what they are; it starts what it may. */
export function give(executor: Executor, ...items: (number | Assigned)[]): void {
  for (const item of items) executor.take(typeof item === "number" ? assignedItem(item) : item);
  executor.pump();
}
