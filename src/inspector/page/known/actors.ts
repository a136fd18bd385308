// The actors of a chart that a person can choose, with the state that each is in.
import type { Cluster } from "./cluster.ts";

export interface ActorChoice {
  /** Empty for the run. */
  readonly actor: string;
  readonly state: string | null;
}

/** More are found by their names. */
const SHOWN = 60;

export interface ActorChoices {
  readonly choices: readonly ActorChoice[];
  /** How many more there are. */
  readonly more: number;
}

/** `text`: a part of the name. The chosen one is always among them. */
export function actorsOf(cluster: Cluster, chart: string, text: string, chosen?: string): ActorChoices {
  const wanted = text.trim().toLowerCase();
  const names = namesOf(cluster, chart).filter((name) => name.toLowerCase().includes(wanted));
  const first = names.slice(0, SHOWN);
  const shown = chosen === undefined || first.includes(chosen) ? first : [chosen, ...first];
  const choices = shown.map((actor) => ({ actor, state: cluster.stateOf(chart, actor) }));
  return { choices, more: names.length - first.length };
}

function namesOf(cluster: Cluster, chart: string): readonly string[] {
  const stepped = cluster.steps.flatMap((step) => (step.chart === chart ? [step.actor] : [])).toReversed();
  switch (chart) {
    case "run":
      return cluster.status === undefined ? [] : [""];
    case "coordinator-role": {
      const rows = cluster.status?.coordinators ?? [];
      const leading = rows.toSorted(
        (one, other) => Number(other.role === "leader") - Number(one.role === "leader"),
      );
      return [...new Set([...leading.map(({ address }) => address), ...stepped])];
    }
    case "worker-lifecycle":
    case "worker-trust":
    case "spot-drain":
      // By their ids: a list that jumps cannot be read.
      return [...cluster.workers.keys()].toSorted();
    default: {
      const atWork = chart === "work-item" ? cluster.atWork.map(({ item }) => item) : [];
      return [...new Set([...atWork, ...stepped])];
    }
  }
}
