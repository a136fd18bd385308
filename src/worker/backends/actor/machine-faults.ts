// Whether a user's machine can be a durable actor: found when the file is loaded, and told by the name of the type and the state. Nothing
// is let in that lives in the memory of a process, or that could not be named when another process goes on with it.
import type { AnyStateMachine, AnyStateNode } from "xstate";
import { isMachine, isRecentMachine } from "../../../charts/read-machine.ts";
import { kindOfLogic, logicOf } from "./actor-logic.ts";

/** An action as a machine has it: XState's own are functions with members. */
interface FoundAction {
  readonly type?: unknown;
  readonly resolve?: unknown;
  readonly src?: unknown;
  readonly systemId?: unknown;
  readonly syncSnapshot?: unknown;
}

const FAULTS_SHOWN = 5;

/** Throws a TypeError with all that is in the way, each with its state; machines that it starts within itself included. */
export function demandActorMachine(type: string, machine: unknown): asserts machine is AnyStateMachine {
  if (!isMachine(machine) || !isRecentMachine(machine))
    throw new TypeError(`the machine of actor ${type} is no machine of XState 5`);
  const faults = faultsBelow("", machine, new Set());
  if (faults.length === 0) return;
  throw new TypeError(`${type} cannot be an actor: ${faults.slice(0, FAULTS_SHOWN).join("; ")}`);
}

/** A machine may start itself. */
function faultsBelow(source: string, machine: AnyStateMachine, seen: Set<unknown>): string[] {
  if (seen.has(machine)) return [];
  seen.add(machine);
  const own = faultsOf(machine).map((fault) => (source === "" ? fault : `in ${source}: ${fault}`));
  const below = machinesOf(machine).flatMap(([src, child]) => faultsBelow(src, child, seen));
  return [...own, ...below];
}

function machinesOf(machine: AnyStateMachine): [src: string, machine: AnyStateMachine][] {
  const invoked = nodesOf(machine.root).flatMap(({ invoke }) => invoke.map(({ src }) => src as string));
  const names = new Set([...Object.keys(machine.implementations.actors), ...invoked]);
  return [...names].flatMap((src): [string, AnyStateMachine][] => {
    const logic = logicOf(machine, src);
    return isMachine(logic) && isRecentMachine(logic) ? [[src, logic]] : [];
  });
}

function nodesOf(node: AnyStateNode): AnyStateNode[] {
  return [node, ...Object.values<AnyStateNode>(node.states).flatMap(nodesOf)];
}

function faultsOf(machine: AnyStateMachine): string[] {
  const stated = faultsOfNode(machine.root, machine);
  const named = Object.entries(machine.implementations.actors).flatMap(([name, logic]) => {
    const isStated = stated.some((fault) => fault.includes(` invokes ${name}`));
    if (isStated || kindOfLogic(logic) !== undefined) return [];
    return [`its actor ${name} ${UNFIT_LOGIC}`];
  });
  return [...stated, ...named];
}

const UNFIT_LOGIC =
  "is neither a promise nor a machine: callbacks, observables and reducers live in the memory of one process";

function faultsOfNode(node: AnyStateNode, machine: AnyStateMachine): string[] {
  const where = node === machine.root ? "its root state" : `state ${node.path.join(".")}`;
  const { delays } = machine.implementations;
  const timed = Object.keys((node.config.after ?? {}) as object).flatMap((delay) => {
    const isKnown = !Number.isNaN(Number(delay)) || Object.hasOwn(delays, delay);
    return isKnown ? [] : [`${where} waits for ${delay}, which is no delay of the machine`];
  });
  const invoked = node.invoke.flatMap((invocation) => {
    const fault = faultOfStart(invocation, machine);
    return fault === undefined ? [] : [`${where} invokes ${fault}`];
  });
  const transitions = [...node.transitions.values()].flat();
  const taken = [...transitions, ...(node.always ?? [])].flatMap(({ actions }) => actions);
  // Only a compound state has a first child.
  const first = node.type === "compound" ? node.initial.actions : [];
  const acting = [...node.entry, ...node.exit, ...first, ...taken].flatMap((action) => {
    const fault = faultOfAction(action, machine);
    return fault === undefined ? [] : [`${where} ${fault}`];
  });
  const below = Object.values<AnyStateNode>(node.states).flatMap((child) => faultsOfNode(child, machine));
  return [...timed, ...invoked, ...acting, ...below];
}

/** Why a child of that logic cannot be started, after the word for how it is. */
function faultOfStart(
  { src, systemId, syncSnapshot, onSnapshot }: FoundAction & { readonly onSnapshot?: unknown },
  machine: AnyStateMachine,
): string | undefined {
  if (typeof src !== "string") return "an actor without a name: name it among the actors of setup()";
  const logic = logicOf(machine, src);
  if (logic === undefined) return `${src}, which is not implemented`;
  const shown = src.startsWith("xstate.invoke.") ? "an actor of its own" : src;
  if (kindOfLogic(logic) === undefined) return `${shown}, which ${UNFIT_LOGIC}`;
  if (systemId !== undefined) return `${shown} with systemId: ${NOT_SHARED}`;
  if (onSnapshot !== undefined || syncSnapshot === true)
    return `${shown} with onSnapshot or syncSnapshot: ${NOT_SHARED}`;
  return undefined;
}

const NOT_SHARED = "actors share nothing; give it references, and send events";

function faultOfAction(action: unknown, machine: AnyStateMachine): string | undefined {
  const name = nameOf(action);
  const actions = machine.implementations.actions as Readonly<Record<string, unknown>>;
  const found = (name === undefined ? action : actions[name]) as FoundAction | undefined;
  if (found === undefined) return `has action ${name}, which is not implemented`;
  if (found.resolve === undefined)
    return name === undefined
      ? "has an action without a name: name it among the actions of setup()"
      : undefined;
  if (found.type !== "xstate.spawnChild") return undefined;
  const fault = faultOfStart(found, machine);
  return fault === undefined ? undefined : `spawns ${fault}`;
}

/** Undefined for one that stands in the machine itself. */
function nameOf(action: unknown): string | undefined {
  if (typeof action === "string") return action;
  return typeof action === "object" ? String((action as FoundAction).type) : undefined;
}
