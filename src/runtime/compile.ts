// A chart for the hot path: the same statechart as decision trees, made at start from the machine itself, so there is no
// second state machine to keep in step. Guards and assigns that run are the machine's own functions. A transition costs
// less than a microsecond (`npm run bench -- --only transitions`) and a row two fields; test/unit/runtime/compile.test.ts proves it equal to the interpreter.
import type {
  AnyStateMachine,
  AnyStateNode,
  ContextFrom,
  EventFrom,
  EventObject,
  InputFrom,
  StateValue,
} from "xstate";
import { assert } from "../base/assert.ts";
import { DecisionTrees } from "./decision-tree.ts";
import type { Assignment, Decision, Operation, Params } from "./decision-tree.ts";
import { inertScope } from "./transition.ts";
import { stateName } from "./chart-structure.ts";

/** Where one thing is in its chart. Rows are values: a step returns a new one. */
export interface Row<Context> {
  /** Index into `states` of this build; what is persisted is the name. */
  readonly state: number;
  readonly context: Context;
}

export interface Effect {
  readonly type: string;
  readonly params: Params;
}

export interface CompiledChart<Context, Event, Input> {
  readonly id: string;
  readonly version: string;
  /** Names of the reachable states, the initial one first. */
  readonly states: readonly string[];
  initial(input: Input): Row<Context>;
  /** The row after the event, or the very same row when the chart ignores the event there. Named effects go to `effects`. */
  step(row: Row<Context>, event: Event, effects: Effect[]): Row<Context>;
  /** Undefined for a name that this chart does not have. */
  indexOf(name: string): number | undefined;
  nameOf(row: Row<unknown>): string;
}

interface Leaf {
  readonly kind: "leaf";
  readonly operations: readonly Operation[];
  /** -1: the event is ignored. */
  readonly next: number;
}
type Tree =
  | Leaf
  | (Omit<Extract<Decision, { kind: "ask" }>, "yes" | "no"> & { readonly yes: Tree; readonly no: Tree });

/** Fails loudly, at start, for a chart that uses what cannot be compiled. */
export function compile<Machine extends AnyStateMachine>(
  machine: Machine,
): CompiledChart<ContextFrom<Machine>, EventFrom<Machine>, InputFrom<Machine>> {
  refuseUncompilable(machine.root);
  const builder = new DecisionTrees(machine);
  const values: StateValue[] = [];
  const indexByKey = new Map<string, number>();
  const indexOfValue = (value: StateValue): number => {
    const key = JSON.stringify(value);
    const known = indexByKey.get(key);
    if (known !== undefined) return known;
    indexByKey.set(key, values.length);
    return values.push(value) - 1;
  };
  const plant = (decision: Decision): Tree =>
    decision.kind === "leaf"
      ? {
          kind: "leaf",
          operations: decision.operations,
          next: decision.value === null ? -1 : indexOfValue(decision.value),
        }
      : { ...decision, yes: plant(decision.yes), no: plant(decision.no) };

  indexOfValue(initialValue(machine));
  // XState keeps the configuration untyped.
  const context = machine.config.context as
    | ContextFrom<Machine>
    | ((args: { input: InputFrom<Machine> }) => ContextFrom<Machine>);
  const initial = (input: InputFrom<Machine>): Row<ContextFrom<Machine>> => ({
    state: 0,
    context: typeof context === "function" ? context({ input }) : context,
  });
  const trees: Map<string, Tree>[] = [];
  const events = [...eventTypes(machine.root)];
  for (let at = 0; at < values.length; at++) {
    const value = values[at];
    assert(value !== undefined, "states are dense");
    // A chart in a final state ignores everything.
    const { status } = machine.resolveState({ value, context: {} });
    const heard = status === "active" ? events : [];
    trees.push(new Map(heard.map((type) => [type, plant(builder.build(value, type))])));
  }
  const states = values.map(stateName);
  assert(new Set(states).size === states.length, `${machine.id}: two states share a name`);
  const indexByName = new Map(states.map((name, index) => [name, index]));

  return {
    id: machine.id,
    version: machine.version ?? "",
    states,
    initial,
    step: (row, event, effects) =>
      walk(trees[row.state]?.get((event as EventObject).type), row, event, effects),
    indexOf: (name) => indexByName.get(name),
    nameOf: ({ state }) => {
      const name = states[state];
      assert(name !== undefined, `no state ${state} in chart ${machine.id}`);
      return name;
    },
  };
}

/** Where the chart begins. Entering it must do nothing: a row is made without running the interpreter. */
function initialValue(machine: AnyStateMachine): StateValue {
  refuseInitialWork(machine.root);
  const scope = inertScope(machine, { onAction: () => {} });
  return machine.getInitialSnapshot(scope, {}).value as StateValue;
}

function refuseInitialWork(node: AnyStateNode): void {
  if (node.entry.length > 0) refuse(node, "entry actions in the initial state");
  if (node.always !== undefined) refuse(node, "an eventless transition in the initial state");
  if (node.type === "parallel") Object.values(node.states).forEach(refuseInitialWork);
  if (node.type !== "compound") return;
  if (node.initial.actions.length > 0) refuse(node, "actions on the way into the initial state");
  node.initial.target.forEach(refuseInitialWork);
}

/** Every event that some state mentions; `machine.events` leaves out those that are only forbidden. */
function eventTypes(node: AnyStateNode): Set<string> {
  return new Set([
    ...node.transitions.keys(),
    ...Object.values(node.states).flatMap((child) => [...eventTypes(child)]),
  ]);
}

function walk<Context>(
  start: Tree | undefined,
  row: Row<Context>,
  event: unknown,
  effects: Effect[],
): Row<Context> {
  let tree = start;
  let context: unknown = row.context;
  while (tree !== undefined) {
    for (const operation of tree.operations) {
      if (operation.kind === "effect") effects.push({ type: operation.type, params: operation.params });
      else context = assignTo(context, event, operation.assignment, operation.params);
    }
    if (tree.kind === "leaf") return tree.next < 0 ? row : { state: tree.next, context: context as Context };
    tree = tree.guard({ context, event }, tree.params) ? tree.yes : tree.no;
  }
  return row;
}

function assignTo(context: unknown, event: unknown, assignment: Assignment, params: Params): unknown {
  const args = { context, event };
  if (typeof assignment === "function") return Object.assign({}, context, assignment(args, params));
  const changed: Record<string, unknown> = Object.assign({}, context);
  for (const [key, value] of Object.entries(assignment))
    changed[key] =
      typeof value === "function"
        ? (value as (args: unknown, params: Params) => unknown)(args, params)
        : value;
  return changed;
}

/** A chart that depends on more than (state, event, guards) has no tree: it is refused by name instead of compiled wrongly. */
function refuseUncompilable(node: AnyStateNode): void {
  if (node.type === "history") refuse(node, "history state");
  if (node.invoke.length > 0) refuse(node, "invoke");
  if (node.after.length > 0) refuse(node, "after");
  for (const [event, transitions] of node.transitions) {
    if (event.includes("*")) refuse(node, "a wildcard event");
    // `onDone` runs on an event of its own, which guards and assigns would not be given.
    if (event.startsWith("xstate.")) refuse(node, `the event ${event}`);
    for (const { guard, actions } of transitions) refuseReferences(node, guard, actions);
  }
  for (const { guard, actions } of node.always ?? []) refuseReferences(node, guard, actions);
  refuseReferences(node, undefined, [...node.entry, ...node.exit]);
  if (node.type === "compound") refuseReferences(node, undefined, node.initial.actions);
  Object.values(node.states).forEach(refuseUncompilable);
}

function refuseReferences(node: AnyStateNode, guard: unknown, actions: readonly unknown[]): void {
  const { implementations } = node.machine;
  if (guard !== undefined && hasField(implementations.guards[nameOf(node, guard)], "check"))
    refuse(node, "a guard made of other guards");
  for (const action of actions) {
    const implementation: unknown = implementations.actions[nameOf(node, action)];
    if (hasField(implementation, "resolve") && !hasField(implementation, "assignment"))
      refuse(node, "a built-in action other than assign");
  }
}

/** The name of a guard or an action that is named and has no parameters, or fixed ones. */
function nameOf(node: AnyStateNode, reference: unknown): string {
  if (typeof reference === "string") return reference;
  if (!hasField(reference, "type") || typeof reference === "function")
    return refuse(node, "an inline guard or action");
  if (hasField(reference, "params") && typeof reference.params === "function")
    return refuse(node, "computed parameters");
  return String(reference.type);
}

function hasField<Name extends string>(
  value: unknown,
  name: Name,
): value is { readonly [Key in Name]: unknown } {
  return (typeof value === "object" || typeof value === "function") && value !== null && name in value;
}

function refuse(node: AnyStateNode, what: string): never {
  assert(false, `${node.id} cannot be compiled: ${what}`);
}
