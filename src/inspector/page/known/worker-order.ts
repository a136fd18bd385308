// Workers as a person asks for them: filtered, ordered, a page at a time. The first order is by who needs a look.
import type { WorkerRow } from "../../page-messages.ts";

export const WORKER_WORDS = [
  ...["failed", "suspected", "cordoned", "draining", "init", "ready", "gone", "removed", "revoked"],
] as const;
export const SORT_KEYS = ["attention", "worker", "state", "load", "held", "beat"] as const;
export type SortKey = (typeof SORT_KEYS)[number];

export interface WorkerQuestion {
  readonly text: string;
  /** One of WORKER_WORDS, or empty for all. */
  readonly word: string;
  readonly sort: SortKey;
  readonly isDescending: boolean;
  /** From 0. */
  readonly page: number;
}

export interface WorkerAnswer {
  readonly rows: readonly WorkerRow[];
  readonly matching: number;
  readonly page: number;
  readonly pages: number;
}

export const PAGE_ROWS = 50;

/** How a worker is, in the one word that matters most. */
export function workerWord({ state, liveness, revoked, cordon_reason }: WorkerRow): string {
  if (revoked) return "revoked";
  // A worker that has said goodbye is not lost, however long it is silent.
  if (state === "gone") return "gone";
  if (liveness !== "alive") return liveness;
  if (state === "draining") return "draining";
  return cordon_reason === null ? state : "cordoned";
}

export function answer(workers: Iterable<WorkerRow>, question: WorkerQuestion): WorkerAnswer {
  const matching = [...workers].filter((row) => isMeant(row, question));
  const sign = question.isDescending ? -1 : 1;
  matching.sort(
    (one, other) => sign * compare(question.sort, one, other) || byText(one.worker_id, other.worker_id),
  );
  const pages = Math.max(1, Math.ceil(matching.length / PAGE_ROWS));
  const page = Math.min(Math.max(0, question.page), pages - 1);
  const rows = matching.slice(page * PAGE_ROWS, (page + 1) * PAGE_ROWS);
  return { rows, matching: matching.length, page, pages };
}

function isMeant(row: WorkerRow, { text, word }: WorkerQuestion): boolean {
  if (word !== "" && workerWord(row) !== word) return false;
  const wanted = text.trim().toLowerCase();
  if (wanted === "") return true;
  return [
    row.worker_id,
    workerWord(row),
    row.trouble,
    row.cordon_reason,
    ...row.plugins.map(({ name }) => name),
  ].some((words) => words?.toLowerCase().includes(wanted) === true);
}

function compare(sort: SortKey, one: WorkerRow, other: WorkerRow): number {
  switch (sort) {
    case "attention":
      return urgency(one) - urgency(other);
    case "worker":
      return byText(one.worker_id, other.worker_id);
    case "state":
      return byText(workerWord(one), workerWord(other));
    case "load":
      return one.load - other.load;
    case "held":
      return one.held - other.held;
    case "beat":
      return (one.last_beat_age_ms ?? Infinity) - (other.last_beat_age_ms ?? Infinity) || 0;
  }
}

/** Small for those that need a look. */
function urgency(row: WorkerRow): number {
  const at = WORKER_WORDS.indexOf(workerWord(row) as (typeof WORKER_WORDS)[number]);
  return (at < 0 ? WORKER_WORDS.length : at) - (row.trouble === null ? 0 : 3.5);
}

function byText(one: string, other: string): number {
  return one < other ? -1 : one > other ? 1 : 0;
}
