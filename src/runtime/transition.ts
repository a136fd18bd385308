// One step of a cold chart, computed and not carried out: the interpreter runs in a scope that does nothing, and what the
// step wants done comes back as data.
import { createActor } from "xstate";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import type { ChartSnapshot } from "../../machines/migration.ts";

export interface PlannedAction {
  readonly type: string;
  readonly params: unknown;
}

export type Planned =
  | { readonly kind: "moved"; readonly snapshot: ChartSnapshot; readonly actions: readonly PlannedAction[] }
  | { readonly kind: "ignored" };

/** Plans steps of one chart; made once per chart because the scope is the expensive part. */
export class TransitionPlanner {
  readonly #machine: AnyStateMachine;
  readonly #scope: InertScope;
  /** The interpreter's record of the step under way. */
  #seen: { readonly actions: PlannedAction[]; isTaken: boolean };

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
    this.#seen = { actions: [], isTaken: false };
    this.#scope = inertScope(machine, {
      onAction: ({ type, params }) => void this.#seen.actions.push({ type, params }),
      onTaken: () => (this.#seen.isTaken = true),
    });
  }

  /** The initial snapshot and what entering it asks for. Throws what the chart throws. */
  begin(input: unknown): Extract<Planned, { kind: "moved" }> {
    this.#seen = { actions: [], isTaken: false };
    const snapshot: AnyMachineSnapshot = this.#machine.getInitialSnapshot(this.#scope, input);
    if (snapshot.status === "error") throw snapshot.error;
    return this.#moved(snapshot);
  }

  /** Throws what a guard or an assign of the chart throws. A chart in a final state ignores everything. */
  plan(from: ChartSnapshot, event: EventObject): Planned {
    this.#seen = { actions: [], isTaken: false };
    const before = this.#machine.resolveState({ value: from.value, context: from.context });
    if (before.status !== "active") return { kind: "ignored" };
    const after = this.#machine.transition(before, event, this.#scope);
    return this.#seen.isTaken ? this.#moved(after) : { kind: "ignored" };
  }

  #moved({ value, context }: ChartSnapshot): Extract<Planned, { kind: "moved" }> {
    return { kind: "moved", snapshot: { value, context }, actions: this.#seen.actions };
  }
}

// The interpreter without an actor: XState's own transition function wants a scope to act in, and this one acts on
// nothing. It is made once per chart and reused, which makes a transition several times cheaper than `transition()`.

/** XState's own, of the copy that has made the machine. */
export type CreateActor = (
  machine: AnyStateMachine,
  options: { readonly input: unknown },
) => InertScope["self"] & { readonly system: InertScope["system"] };
export type InertScope = Parameters<AnyStateMachine["transition"]>[2];

/** An action that a step wants carried out, with what it was of. */
export interface ScopeAction extends PlannedAction {
  readonly info: { readonly context: unknown; readonly event: EventObject };
  readonly exec: unknown;
}

/** An actor that the interpreter has made, with members of XState's own that its types keep to themselves. */
export interface CreatedActor {
  readonly id: string;
  readonly src: unknown;
  readonly options: { readonly input?: unknown; readonly systemId?: string };
  readonly _parent?: object;
  readonly _syncSnapshot?: boolean;
  send: (event: EventObject) => void;
}

export interface ScopeHearing {
  /** Hears every named action of a transition in order; assigns are already applied by then. */
  readonly onAction: (action: ScopeAction) => void;
  /** Hears that the event, or an eventless transition behind it, was taken; an event that the chart ignores is not heard of. */
  readonly onTaken?: () => void;
  /** Hears of each actor that is made, a child's own children included, before anything is done with it. */
  readonly onCreated?: (actor: CreatedActor) => void;
}

export function inertScope(
  machine: AnyStateMachine,
  { onAction, onTaken, onCreated }: ScopeHearing,
  create: CreateActor = createActor,
): InertScope {
  const self = create(machine, { input: {} });
  self.system.inspect((inspected) => {
    if (inspected.type === "@xstate.actor") onCreated?.(inspected.actorRef as unknown as CreatedActor);
    if (inspected.type === "@xstate.microstep" && inspected._transitions.length > 0) onTaken?.();
  });
  return {
    self,
    id: self.id,
    sessionId: self.sessionId,
    system: self.system,
    logger: () => {},
    defer: () => {},
    emit: () => {},
    stopChild: () => {},
    actionExecutor: onAction,
  };
}
