// A chart as data: states, transitions, guards and actions by name. Its hash goes into every snapshot, so that
// a chart that was changed without a new version is noticed before an old snapshot is read into it.
import { createHash } from "node:crypto";
import type { AnyStateMachine, AnyStateNode } from "xstate";

type Json = string | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Same chart, same hash, on every machine and Node version. Functions count by name only: their text is not structure. */
export function structureHash(machine: AnyStateMachine): string {
  return createHash("sha256")
    .update(JSON.stringify(describeNode(machine.root)))
    .digest("hex")
    .slice(0, 16);
}

function describeNode(node: AnyStateNode): Json {
  return {
    key: node.key,
    type: node.type,
    initial:
      node.type === "compound"
        ? { target: targetsOf(node.initial.target), actions: node.initial.actions.map(describeReference) }
        : null,
    entry: node.entry.map(describeReference),
    exit: node.exit.map(describeReference),
    on: [...node.transitions]
      .map(([event, list]) => [event, list.map(describeTransition)] as const)
      .sort(byName),
    always: (node.always ?? []).map(describeTransition),
    states: Object.values(node.states).map(describeNode),
  };
}

function describeTransition(
  transition: AnyStateNode["always"] extends (infer T)[] | undefined ? T : never,
): Json {
  return {
    guard: transition.guard === undefined ? null : describeReference(transition.guard),
    target: transition.target === undefined ? null : targetsOf(transition.target),
    actions: transition.actions.map(describeReference),
    reenter: transition.reenter,
  };
}

function targetsOf(targets: readonly AnyStateNode[] | undefined): Json {
  return (targets ?? []).map((target) => target.id);
}

/** A guard or an action: its name and its static parameters. */
function describeReference(reference: unknown): Json {
  if (typeof reference === "string") return reference;
  if (typeof reference === "object" && reference !== null && "type" in reference) {
    const params: unknown = "params" in reference ? reference.params : undefined;
    if (params === undefined) return [String(reference.type), "none"];
    return [String(reference.type), typeof params === "function" ? "computed" : JSON.stringify(params)];
  }
  return "inline";
}

function byName(left: readonly [string, Json], right: readonly [string, Json]): number {
  return left[0] < right[0] ? -1 : 1;
}
