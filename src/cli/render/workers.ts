// Workers for a terminal and for a program.
import { isoTime } from "../../base/clock.ts";
import type { WorkerSummary } from "../../client/list-workers.ts";
import { renderAge } from "./age.ts";
import { renderTable } from "./table.ts";

/** The table, or a sentence when there is nobody to show. */
export function workersText(workers: readonly WorkerSummary[]): string {
  if (workers.length === 0) return "No workers yet. Start one with `rollout worker run`.\n";
  return renderTable<WorkerSummary>(
    [
      { title: "worker", value: ({ workerId }) => workerId },
      { title: "state", value: ({ state }) => state },
      { title: "liveness", value: livenessText },
      { title: "slots", value: ({ slots }) => String(slots), align: "right" },
      { title: "load", value: ({ load }) => `${Math.round(load * 100)}%`, align: "right" },
      { title: "last beat", value: ({ lastBeatAgeMs }) => ageText(lastBeatAgeMs) },
      {
        title: "plugins",
        value: ({ plugins }) => plugins.map(({ name, version }) => `${name}@${version}`).join(" "),
      },
    ],
    workers,
  );
}

/** The stable form of `--json`. */
export function workerObject(worker: WorkerSummary): object {
  return {
    worker_id: worker.workerId,
    incarnation: worker.incarnation,
    state: worker.state,
    liveness: worker.liveness,
    load: worker.load,
    slots: worker.slots,
    plugins: worker.plugins,
    registered_at: isoTime(worker.registeredAtMs),
    last_beat_age_ms: worker.lastBeatAgeMs ?? null,
  };
}

/** Who has said goodbye is not watched any more, and is not lost either. */
function livenessText({ state, liveness }: WorkerSummary): string {
  return state === "gone" ? "-" : liveness;
}

function ageText(ageMs: number | undefined): string {
  return ageMs === undefined ? "not yet" : renderAge(ageMs);
}
