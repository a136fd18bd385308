// Every outcome of a chart, whatever its guards say: the states that can be reached, and for one state and one event the ways
// that the guards can fall. Tables and paths are held against it to be found complete.
import type { AnyStateMachine, AnyStateNode, StateValue } from "xstate";
import { DecisionTrees } from "../../src/runtime/decision-tree.ts";
import type { Decision } from "../../src/runtime/decision-tree.ts";
import { stateName } from "../../src/runtime/state-name.ts";
import { TransitionPlanner } from "../../src/runtime/transition.ts";

/** One way through the guards of an event in a state. */
export interface GuardOutcome {
  /** The answers in the order of asking: `1.no 2.yes`; empty where nothing is asked. */
  readonly guards: string;
  /** Null when the event is then ignored. */
  readonly next: StateValue | null;
  /** Whether the guards fall this way for a context and an event; for charts that ask before they assign. */
  holds(context: object, event: { type: string }): boolean;
}

/** The events that any state mentions, in order. */
export function chartEvents(machine: AnyStateMachine): string[] {
  const types = new Set<string>();
  const collect = (node: AnyStateNode): void => {
    for (const type of node.transitions.keys()) types.add(type);
    Object.values(node.states).forEach(collect);
  };
  collect(machine.root);
  return [...types].sort();
}

/** Every state that some answers of the guards lead to, by name. */
export function reachableStates(machine: AnyStateMachine): ReadonlyMap<string, StateValue> {
  const trees = new DecisionTrees(machine);
  const { value } = new TransitionPlanner(machine).begin({}).snapshot;
  const found = new Map([[stateName(value), value]]);
  for (const from of found.values()) {
    if (machine.resolveState({ value: from, context: {} }).status !== "active") continue;
    for (const type of chartEvents(machine))
      for (const { next } of leavesOf(trees.build(from, type)))
        if (next !== null) found.set(stateName(next), found.get(stateName(next)) ?? next);
  }
  return found;
}

/** The ways that the guards can fall. A chart in a final state asks nothing and ignores everything. */
export function outcomesOf(
  machine: AnyStateMachine,
  value: StateValue,
  type: string,
): readonly GuardOutcome[] {
  if (machine.resolveState({ value, context: {} }).status !== "active")
    return [{ guards: "", next: null, holds: () => true }];
  return leavesOf(new DecisionTrees(machine).build(value, type));
}

function leavesOf(decision: Decision, asked = 0): GuardOutcome[] {
  if (decision.kind === "leaf") return [{ guards: "", next: decision.value, holds: () => true }];
  const { guard, params, yes, no } = decision;
  const branch = (answer: boolean): GuardOutcome[] =>
    leavesOf(answer ? yes : no, asked + 1).map((rest) => ({
      guards: `${asked + 1}.${answer ? "yes" : "no"} ${rest.guards}`.trim(),
      next: rest.next,
      holds: (context, event) => guard({ context, event }, params) === answer && rest.holds(context, event),
    }));
  return [...branch(true), ...branch(false)];
}
