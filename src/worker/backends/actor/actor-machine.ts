// Whether a user's machine can be a durable actor: found when the file is loaded, and told by the name of the type and its state. An
// actor's machine computes and does nothing else, so nothing is let in that would be done at once, or that nobody would do.
import type { AnyStateMachine, AnyStateNode } from "xstate";
import { isMachine, isRecentMachine } from "../../../charts/read-machine.ts";

/** Actions that are part of the computation: they change the snapshot, queue an event within it, or are for those who listen to it. */
const COMPUTING = ["assign", "raise", "cancel", "emit", "log", "enqueueActions"];

/** An action as a machine has it: XState's own are functions with members. */
interface FoundAction {
  readonly type?: unknown;
  readonly resolve?: unknown;
  readonly delay?: unknown;
}

/** Throws with all that is in the way, each with its state. */
export function demandActorMachine(type: string, machine: unknown): asserts machine is AnyStateMachine {
  if (!isMachine(machine) || !isRecentMachine(machine))
    throw new TypeError(`the machine of actor ${type} is no machine of XState 5`);
  const faults = faultsOf(machine.root, machine);
  if (faults.length === 0) return;
  throw new TypeError(`${type} cannot be an actor: ${faults.slice(0, FAULTS_SHOWN).join("; ")}`);
}

const FAULTS_SHOWN = 5;

function faultsOf(node: AnyStateNode, machine: AnyStateMachine): string[] {
  const where = node === machine.root ? "its root state" : `state ${node.path.join(".")}`;
  const timed = node.after.length > 0 ? [`${where} has "after": timers are not kept yet`] : [];
  const invoked = node.invoke.map(
    ({ src }) =>
      `${where} invokes ${typeof src === "string" ? src : "an actor without a name"}: invocations are not made yet`,
  );
  // Its timers are actions of it too, and were named.
  const own = timed.length > 0 ? [] : [...node.entry, ...node.exit];
  const transitions = [...node.transitions.values()].flat();
  const taken = [...own, ...[...transitions, ...(node.always ?? [])].flatMap(({ actions }) => actions)];
  const acting = taken.flatMap((action) => {
    const fault = faultOf(action, machine);
    return fault === undefined ? [] : [`${where} ${fault}`];
  });
  const below = Object.values<AnyStateNode>(node.states).flatMap((child) => faultsOf(child, machine));
  return [...timed, ...invoked, ...acting, ...below];
}

function faultOf(action: unknown, { implementations }: AnyStateMachine): string | undefined {
  const name = nameOf(action);
  const actions = implementations.actions as Readonly<Record<string, unknown>>;
  const found = (name === undefined ? action : actions[name]) as FoundAction | undefined;
  const shown = name === undefined ? "an action without a name" : `action ${name}`;
  if (found === undefined) return `has ${shown}, which is not implemented`;
  const builtIn = found.resolve === undefined ? undefined : String(found.type).replace("xstate.", "");
  if (builtIn === undefined)
    return `has ${shown}, which acts on the world: such actions are not executed yet`;
  return refusalOf(builtIn, found.delay !== undefined, name);
}

/** Undefined for one that stands in the machine itself. */
function nameOf(action: unknown): string | undefined {
  if (typeof action === "string") return action;
  return typeof action === "object" ? String((action as FoundAction).type) : undefined;
}

/** Why an action of XState's own is not taken; `name` is the user's for it. */
function refusalOf(builtIn: string, isDelayed: boolean, name?: string): string | undefined {
  const shown = name === undefined ? builtIn : `${name} (${builtIn})`;
  if (builtIn === "raise" && isDelayed) return `has a delayed ${shown}: timers are not kept yet`;
  if (COMPUTING.includes(builtIn)) return undefined;
  if (builtIn === "sendTo") return `has ${shown}: messages to other actors are not sent yet`;
  return `has ${shown}: children are not started yet`;
}

/** Why an action that a step has asked for cannot be carried out: found at run time, for actions that an action has chosen. */
export function refusalOfPlanned(type: string, params: unknown): string | undefined {
  const builtIn = type.startsWith("xstate.") ? type.slice("xstate.".length) : undefined;
  if (builtIn === undefined)
    return `has action ${type}, which acts on the world: such actions are not executed yet`;
  const { delay } = (params ?? {}) as { readonly delay?: unknown };
  return refusalOf(builtIn, delay !== undefined);
}
