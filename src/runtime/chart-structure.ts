// A chart as data: states, transitions, guards and actions by name. Its hash goes into every snapshot, so that
// a chart that was changed without a new version is noticed before an old snapshot is read into it.
import { createHash } from "node:crypto";
import type { AnyStateMachine, AnyStateNode, StateValue } from "xstate";

type Json = string | boolean | null | readonly Json[] | { readonly [key: string]: Json };

/** Rows and snapshots are stamped at every step of their actors. */
const hashes = new WeakMap<AnyStateMachine, string>();

/** Same chart, same hash, on every machine and Node version. Functions count by name only: their text is not structure. */
export function structureHash(machine: AnyStateMachine): string {
  const known = hashes.get(machine);
  if (known !== undefined) return known;
  const hash = hashOf(machine);
  hashes.set(machine, hash);
  return hash;
}

function hashOf(machine: AnyStateMachine): string {
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
      .sort(([left], [right]) => (left < right ? -1 : 1)),
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

// The state of a chart as one word for people, rows and events: `Ready`, `Draining.Flushing`, `Ready+Alive` for parallel
// regions in the order of the chart.

export function stateName(value: StateValue): string {
  if (typeof value === "string") return value;
  const children = Object.entries(value).map(([key, child]) => ({ key, child }));
  const [only] = children;
  if (children.length === 1 && only?.child !== undefined) return `${only.key}.${stateName(only.child)}`;
  return children.map(({ child }) => (child === undefined ? "" : stateName(child))).join("+");
}

/** The value that `stateName` calls so; undefined when the chart has no such state. */
export function stateValueOf(machine: AnyStateMachine, name: string): StateValue | undefined {
  return valueWithin(machine.root, name);
}

function valueWithin(node: AnyStateNode, name: string): StateValue | undefined {
  const children = Object.values<AnyStateNode>(node.states);
  if (node.type !== "parallel" || children.length === 1) return valueOfOne(children, name);
  const parts = name.split("+");
  const values = children.map((child, at) => [child.key, valueWithin(child, parts[at] ?? "")] as const);
  const isWhole = parts.length === children.length && values.every(([, value]) => value !== undefined);
  return isWhole ? Object.fromEntries(values) : undefined;
}

function valueOfOne(children: readonly AnyStateNode[], name: string): StateValue | undefined {
  for (const child of children) {
    const isLeaf = Object.keys(child.states).length === 0;
    if (isLeaf && name === child.key) return child.key;
    if (isLeaf || !name.startsWith(`${child.key}.`)) continue;
    const inner = valueWithin(child, name.slice(child.key.length + 1));
    if (inner !== undefined) return { [child.key]: inner };
  }
  return undefined;
}
