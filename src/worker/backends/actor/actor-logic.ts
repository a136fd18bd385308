// The logic that an actor's machine starts: machines, which become actors of their own, and promises, which become items. In a step neither of
// them runs: the interpreter is given logic that does nothing in their place.
import type { AnyActorLogic, AnyStateMachine } from "xstate";
import { isMachine } from "../../../charts/read-machine.ts";
import type { KeptChild } from "../../../runtime/actor-state.ts";

/** The name that XState gives to logic that stands in an `invoke` itself: its index there, and the id of the state. */
const STANDING_IN = /^xstate\.invoke\.(\d+)\.(.*)$/s;

/** Undefined when the machine has none of that name. */
export function logicOf(machine: AnyStateMachine, src: string): unknown {
  const [, index, id = ""] = STANDING_IN.exec(src) ?? [];
  if (index === undefined) {
    const { actors } = machine.implementations;
    return Object.hasOwn(actors, src) ? actors[src] : undefined;
  }
  try {
    const { invoke } = machine.getStateNodeById(id).config as { readonly invoke?: unknown };
    const all: readonly unknown[] = Array.isArray(invoke) ? invoke : [invoke];
    return (all[Number(index)] as { readonly src?: unknown } | undefined)?.src;
  } catch {
    return undefined;
  }
}

/** The machine that one starts under a name as a state's `source` has it; undefined when there is none. */
export function machineBelow(machine: AnyStateMachine, name: string): AnyStateMachine | undefined {
  const logic = logicOf(machine, decodeURIComponent(name));
  return isMachine(logic) ? logic : undefined;
}

/** The machine at the end of the names of a `source`, from that of the type; undefined when there is none. */
export function machineWithin(type: AnyStateMachine, source: string): AnyStateMachine | undefined {
  const names = source === "" ? [] : source.split("/");
  return names.reduce<AnyStateMachine | undefined>(
    (machine, name) => machine && machineBelow(machine, name),
    type,
  );
}

/** Undefined for logic that a durable actor cannot have. */
export function kindOfLogic(logic: unknown): KeptChild["kind"] | undefined {
  if (isMachine(logic)) return "machine";
  return isPromise(logic) ? "promise" : undefined;
}

const PROBE = Symbol("probe");

/** XState marks them by nothing. A promise's logic alone ends with what it is told that the promise has come to. */
function isPromise(logic: unknown): logic is AnyActorLogic {
  if (typeof logic !== "object" || logic === null || !("transition" in logic)) return false;
  const { transition } = logic as { readonly transition: (...args: readonly unknown[]) => unknown };
  try {
    const resolved = { type: "xstate.promise.resolve", data: PROBE };
    const after = transition({ status: "active" }, resolved, { self: {} });
    const { status, output } = after as { readonly status?: unknown; readonly output?: unknown };
    return status === "done" && output === PROBE;
  } catch {
    return false;
  }
}

const INERT = {
  transition: (snapshot: unknown) => snapshot,
  getInitialSnapshot: () => ({ status: "active", output: undefined, error: undefined }),
  getPersistedSnapshot: (snapshot: unknown) => snapshot,
  restoreSnapshot: (snapshot: unknown) => snapshot,
};

/** The same machine with logic that does nothing under each name of logic. */
export function withInertActors(machine: AnyStateMachine): AnyStateMachine {
  const names = Object.keys(machine.implementations.actors);
  return machine.provide({ actors: Object.fromEntries(names.map((name) => [name, INERT])) as never });
}
