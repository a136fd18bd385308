// Workers for a terminal.
import { printable } from "../../base/safe-text.ts";
import type { WorkerSummary } from "../../client/workers.ts";
import type { HintedLine } from "../shell-words.ts";
import { renderAge } from "./quantities.ts";
import { renderTable } from "./table.ts";

/** The table, or a sentence when there is nobody to show. */
export function workersText(workers: readonly WorkerSummary[], line: HintedLine): string {
  if (workers.length === 0) return `No workers yet. Start one with \`${line("worker", "run")}\`.\n`;
  const table = renderTable<WorkerSummary>(
    [
      { title: "worker", value: ({ workerId }) => workerId },
      { title: "state", value: workerWord },
      { title: "items", value: ({ held }) => String(held), align: "right" },
      { title: "slots", value: ({ slots }) => String(slots), align: "right" },
      { title: "load", value: loadText, align: "right" },
      { title: "last beat", value: ({ lastBeatAgeMs }) => ageText(lastBeatAgeMs) },
      {
        title: "plugins",
        value: ({ plugins }) => plugins.map(({ name, version }) => `${name}@${version}`).join(" "),
      },
    ],
    workers,
  );
  const isCordoned = workers.some((worker) => workerWord(worker) === "cordoned");
  const notes = [
    ...troubleLines(workers),
    ...(isCordoned ? [`\`${line("explain", "WORKER")}\` says why a worker is cordoned.`] : []),
  ];
  return [table, ...notes.map((note) => `${note}\n`)].join("");
}

/** Words for workers whose last words may not hold any more. A worker that left in good order said why it left. */
const PAST: ReadonlySet<string> = new Set(["failed", "removed", "revoked"]);
const ABSENT: ReadonlySet<string> = new Set([...PAST, "gone"]);

/**
 * A line for each worker that says that it cannot execute as it should, or has no version that the run executes: "worker 01K…: waiting for
 * the server at …". `nameOf` is what a worker is called.
 */
export function troubleLines(
  workers: readonly WorkerSummary[],
  nameOf = ({ workerId }: WorkerSummary): string => `worker ${workerId}`,
): string[] {
  return workers.flatMap((worker) => {
    const { trouble, unfitReason } = worker;
    if (PAST.has(workerWord(worker))) return [];
    const nothing = unfitReason === undefined ? undefined : `it gets no items: ${unfitReason}`;
    const words = [trouble, nothing].filter((each) => each !== undefined);
    return words.map((each) => `${nameOf(worker)}: ${printable(each)}`);
  });
}

/** Whether it has what the run executes. `plugin`: empty when any will do. */
export function canExecute({ plugins, unfitReason }: WorkerSummary, plugin: string): boolean {
  if (unfitReason !== undefined) return false;
  return plugin === "" || plugins.some(({ name }) => name === plugin);
}

/** The thing that workers, who are there, all lack to execute the run; undefined where one has it. */
export function lackOf(plugin: string, workers: readonly WorkerSummary[]): "plugin" | "version" | undefined {
  const present = workers.filter((worker) => !ABSENT.has(workerWord(worker)));
  if (present.length === 0 || present.some((worker) => canExecute(worker, plugin))) return undefined;
  return present.some(({ unfitReason }) => unfitReason !== undefined) ? "version" : "plugin";
}

/** A sentence without its stop. */
export function lackText(lack: "plugin" | "version", plugin: string): string {
  if (lack === "plugin") return `No worker can execute the plugin ${printable(plugin)}`;
  return `No worker has the version of the plugin ${printable(plugin)} that the run executes now`;
}

/** How a worker is, in the one word that matters most. A worker that has said goodbye is not lost, however long it is silent. */
export function workerWord({ state, liveness, cordonReason, revoked }: WorkerSummary): string {
  if (state === "gone") return "gone";
  if (revoked) return "revoked";
  if (liveness !== "alive") return liveness;
  if (state === "ready" && cordonReason !== undefined) return "cordoned";
  return state;
}

/** The load, or a dash for a worker that is not there: its last beat says nothing of now. */
function loadText(worker: WorkerSummary): string {
  return PAST.has(workerWord(worker)) ? "-" : `${Math.round(worker.load * 100)}%`;
}

/** A coordinator knows those that it has not heard from the time before its start. */
function ageText(ageMs: number | undefined): string {
  return ageMs === undefined ? "before restart" : renderAge(ageMs);
}
