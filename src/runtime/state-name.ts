// The state of a chart as one word for people, rows and events: `Ready`, `Draining.Flushing`, `Ready+Alive` for parallel
// regions in the order of the chart.
import type { StateValue } from "xstate";

export function stateName(value: StateValue): string {
  if (typeof value === "string") return value;
  const children = Object.entries(value).map(([key, child]) => ({ key, child }));
  const [only] = children;
  if (children.length === 1 && only?.child !== undefined) return `${only.key}.${stateName(only.child)}`;
  return children.map(({ child }) => (child === undefined ? "" : stateName(child))).join("+");
}
