// The states of a chart that are active by a machine's value: those that a picture lights.
import { childrenOf, rootOf } from "./model.ts";
import type { ChartModel, ChartState } from "./model.ts";

/** Their ids, innermost ones and those around them, the chart as a whole left out. A state that the chart does not have is passed over. */
export function litStates(model: ChartModel, value: unknown): ReadonlySet<string> {
  const children = childrenOf(model);
  const lit = new Set<string>();
  const light = (around: ChartState, inner: unknown): void => {
    for (const state of children.get(around.id) ?? []) {
      const isNamed = inner === state.key;
      const within = typeof inner === "object" && inner !== null ? Object.entries(inner) : [];
      const found = within.find(([key]) => key === state.key);
      if (!isNamed && found === undefined) continue;
      lit.add(state.id);
      if (found !== undefined) light(state, found[1]);
    }
  };
  light(rootOf(model), value);
  return lit;
}
