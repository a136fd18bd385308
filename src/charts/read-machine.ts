// From an XState machine to the model. The machine may be a user's, and made by a copy of XState that is not ours, so nothing of
// it is believed: it is known by what it has, names may be anything, and what it keeps (contexts, parameters, metadata) is never
// looked into.
import type { AnyStateMachine, AnyStateNode, AnyTransitionDefinition } from "xstate";
import type { ChartModel, ChartState, ChartTransition, StateKind, Trigger } from "./model.ts";

/** More than anybody draws: what is larger was generated, and is refused before it costs memory. */
export const MAX_STATES = 10_000;
const MAX_TRANSITIONS = 50_000;
export const MAX_DEPTH = 100;

/** The name of a guard, an action or an actor that has none. */
const INLINE = "inline";
const KINDS: readonly StateKind[] = ["atomic", "compound", "parallel", "final", "history"];

/** The machine is none, or none that can be read; the message says why. */
export class UnreadableMachine extends Error {}

/** Whether it is an XState machine of any version. */
export function isMachine(value: unknown): value is AnyStateMachine {
  return isObject(value) && "definition" in value && typeof value["transition"] === "function";
}

/** Whether it is one as XState makes them since version 5. */
export function isRecentMachine({ root, getInitialSnapshot }: Partial<AnyStateMachine>): boolean {
  return typeof getInitialSnapshot === "function" && root?.transitions instanceof Map;
}

/** Throws UnreadableMachine. The machine is a recent one. */
export function readMachine(machine: AnyStateMachine): ChartModel {
  try {
    return new MachineReader(machine).model();
  } catch (error) {
    if (error instanceof UnreadableMachine) throw error;
    throw new UnreadableMachine(
      `it cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    );
  }
}

class MachineReader {
  readonly #machine: AnyStateMachine;
  readonly #ids = new Map<AnyStateNode, string>();
  readonly #states: ChartState[] = [];
  readonly #transitions: ChartTransition[] = [];

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
  }

  model(): ChartModel {
    const { root, version } = this.#machine;
    this.#nameAll(root);
    for (const [node, id] of this.#ids) {
      this.#states.push(this.#state(node, id));
      this.#readTransitions(node, id);
    }
    return {
      id: this.#machine.id,
      version: textOf(version),
      description: textOf(root.description),
      states: this.#states,
      transitions: this.#transitions,
    };
  }

  /** Depth first and without recursion: a chart may be nested deeper than the stack. */
  #nameAll(root: AnyStateNode): void {
    const waiting: AnyStateNode[] = [root];
    for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
      if (this.#ids.size === MAX_STATES) throw new UnreadableMachine(`it has more than ${MAX_STATES} states`);
      if (node.path.length > MAX_DEPTH)
        throw new UnreadableMachine(`its states are nested more than ${MAX_DEPTH} deep`);
      this.#ids.set(node, [this.#machine.id, ...node.path.map(escapeKey)].join("."));
      for (const child of Object.values<AnyStateNode>(node.states).reverse()) waiting.push(child);
    }
  }

  #state(node: AnyStateNode, id: string): ChartState {
    const kind = KINDS.find((known) => known === node.type);
    if (kind === undefined) throw new UnreadableMachine(`${id} is a state of an unknown kind`);
    return {
      id,
      path: node.path.map(escapeKey).join("."),
      key: node.key,
      parent: node.parent === undefined ? null : this.#idOf(node.parent),
      kind,
      initial: this.#initialOf(node, kind),
      history: node.history === "shallow" || node.history === "deep" ? node.history : null,
      entry: written(node.entry, node.config.entry).map(referenceName),
      exit: written(node.exit, node.config.exit).map(referenceName),
      invokes: node.invoke.map(({ id: actor, src }) => ({ id: actor, source: sourceName(src) })),
      tags: node.tags.map(String),
      description: textOf(node.description),
    };
  }

  #initialOf(node: AnyStateNode, kind: StateKind): string | null {
    if (kind === "compound") return this.#first(node.initial.target);
    const { parent } = node;
    if (kind !== "history" || parent === undefined) return null;
    const config: { readonly target?: unknown } = node.config;
    const named = typeof config.target === "string" ? parent.states[config.target] : undefined;
    if (named !== undefined) return this.#idOf(named);
    return parent.type === "compound" ? this.#first(parent.initial.target) : this.#idOf(parent);
  }

  #first(targets: readonly AnyStateNode[] | undefined): string | null {
    return targets?.[0] === undefined ? null : this.#idOf(targets[0]);
  }

  #readTransitions(node: AnyStateNode, source: string): void {
    const groups = [...node.transitions, ...(node.always === undefined ? [] : [["", node.always] as const])];
    for (const [event, transitions] of groups) {
      for (const [at, transition] of transitions.entries()) {
        if (this.#transitions.length === MAX_TRANSITIONS)
          throw new UnreadableMachine(`it has more than ${MAX_TRANSITIONS} transitions`);
        const targets = (transition.target ?? []).map((target: AnyStateNode) => this.#idOf(target));
        this.#transitions.push({
          id: `${source}:${event}:${at}`,
          source,
          trigger: triggerOf(event, node),
          event,
          guard: transition.guard === undefined ? null : referenceName(transition.guard),
          actions: transition.actions.map(referenceName),
          targets,
          isInternal: isInternal(transition, node),
          description: textOf(transition.description),
        });
      }
    }
  }

  #idOf(node: AnyStateNode): string {
    const id = this.#ids.get(node);
    if (id === undefined) throw new UnreadableMachine(`${node.id} is no state of it`);
    return id;
  }
}

/** Without those that XState has added, which start and cancel delays. */
function written(all: readonly unknown[], configured: unknown): readonly unknown[] {
  if (configured === undefined) return [];
  return all.slice(0, Array.isArray(configured) ? configured.length : 1);
}

/** The rule of XState: a transition that stays within its source leaves it only when it says so. */
function isInternal(transition: AnyTransitionDefinition, source: AnyStateNode): boolean {
  const { target = [], reenter } = transition;
  if (target.length === 0) return true;
  return !reenter && target.every((node) => source.path.every((key, at) => node.path[at] === key));
}

function triggerOf(event: string, node: AnyStateNode): Trigger {
  if (event === "") return { kind: "always" };
  if (event === `xstate.done.state.${node.id}`) return { kind: "state-done" };
  const end = `.${node.id}`;
  if (event.startsWith("xstate.after.") && event.endsWith(end))
    return { kind: "delay", after: event.slice("xstate.after.".length, -end.length) };
  for (const [at, { id, src }] of node.invoke.entries()) {
    // XState numbers actors that were given no id.
    const source = sourceName(src);
    const actor = id === `${at}.${node.id}` && source !== INLINE ? source : id;
    if (event === `xstate.done.actor.${id}`) return { kind: "actor-done", actor };
    if (event === `xstate.error.actor.${id}`) return { kind: "actor-error", actor };
    if (event === `xstate.snapshot.${id}`) return { kind: "actor-snapshot", actor };
  }
  return { kind: "event", name: event };
}

/** A guard or an action by its name; one that has none is written as what it is. */
function referenceName(reference: unknown): string {
  if (typeof reference === "string") return reference;
  if (!isObject(reference) && typeof reference !== "function") return INLINE;
  const { type, name, guards } = reference as { readonly [field in "type" | "name" | "guards"]?: unknown };
  const own = textOf(type) ?? textOf(name) ?? INLINE;
  // XState calls its own `xstate.assign`, `xstate.raise` and so on; `and`, `or` and `not` hold other guards.
  const short = own.replace(/^xstate\./, "");
  return Array.isArray(guards) ? `${short}(${guards.map(referenceName).join(", ")})` : short;
}

function sourceName(source: unknown): string {
  const name = typeof source === "string" ? source : referenceName(source);
  return name.startsWith("xstate.invoke.") ? INLINE : name;
}

/** The dot between keys says where one ends, so one within a key gets a backslash: as XState reads such targets. */
function escapeKey(key: string): string {
  return key.replace(/[.\\]/g, "\\$&");
}

function textOf(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
