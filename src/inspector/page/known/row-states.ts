// The state of an actor's chart by the rows that are told of it, where no step of it was heard: whoever opens the page late sees
// where everything is. Rows have words of their own for some states.
import type { RunNumbers, WorkerRow } from "../../page-messages.ts";

export interface Rows {
  readonly status: RunNumbers | undefined;
  readonly workers: ReadonlyMap<string, WorkerRow>;
  readonly atWork: readonly { readonly item: string }[];
}

const ROLES: Readonly<Record<string, string>> = {
  following: "Candidate.Following",
  claiming: "Candidate.Claiming",
  leader: "Leader",
  fenced: "Fenced",
  halted: "Halted",
};

/** Null when the rows do not say it. */
export function stateByRow(rows: Rows, chart: string, actor: string): string | null {
  switch (chart) {
    case "run":
      return rows.status === undefined ? null : runState(rows.status);
    case "coordinator-role": {
      const row = rows.status?.coordinators.find(({ address }) => address === actor);
      return row?.present === true ? (ROLES[row.role] ?? null) : null;
    }
    case "worker-lifecycle":
    case "worker-trust":
    case "spot-drain": {
      const row = rows.workers.get(actor);
      return row === undefined ? null : workerState(chart, row);
    }
    case "work-item":
      return rows.atWork.some(({ item }) => item === actor) ? "Running" : null;
    default:
      return null;
  }
}

/** The state of an item's chart by the word that `rollout explain` has for it. */
export function itemState(word: string): string | null {
  if (["fresh", "returned", "delayed"].includes(word)) return "Pending";
  return ["running", "done", "failed"].includes(word) ? capital(word) : null;
}

function runState({ state, sealed }: RunNumbers): string | null {
  const outer = sealed ? "Sealed" : "Open";
  if (state === "open" || state === "sealed") return `${outer}.Active`;
  if (state === "paused") return `${outer}.Paused`;
  return state === "complete" || state === "cancelled" ? capital(state) : null;
}

function workerState(chart: string, { state, liveness, cordon_reason, drain }: WorkerRow): string | null {
  if (chart === "worker-lifecycle") return `${capital(state)}+${capital(liveness)}`;
  if (chart === "worker-trust") return cordon_reason === null ? "Trusted" : "Cordoned";
  return drain?.state ?? "Idle";
}

function capital(word: string): string {
  return word.slice(0, 1).toUpperCase() + word.slice(1);
}
