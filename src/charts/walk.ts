// A walk through a machine, event by event, as somebody tries out what it does. The interpreter is XState's own, and so are guards
// and assigns; actions are named and never executed, actors never started, and delays pass when the walker says so.
import { createActor } from "xstate";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject, StateValue } from "xstate";
import { describeError } from "../base/errors.ts";
import { inertScope } from "../runtime/transition.ts";
import type { CreateActor, InertScope } from "../runtime/transition.ts";
import { childrenOf, rootOf, triggerLabel } from "./model.ts";
import type { ChartModel, ChartState, ChartTransition } from "./model.ts";

/** How far one can go back. */
const MAX_STEPS_BACK = 1_000;
/** Eventless transitions behind one event: more are a circle. */
const MAX_ITERATIONS = 10_000;

/** Actions by which XState starts and stops delays and actors. */
const BUILT_IN: ReadonlySet<string> = new Set([
  "xstate.raise",
  "xstate.cancel",
  "xstate.spawnChild",
  "xstate.stopChild",
]);

/** An event that some state takes now, if a guard of it lets it. */
export interface OfferedEvent {
  /** As XState knows it. */
  readonly event: string;
  /** As it is called for people. */
  readonly label: string;
  /** The transitions that it may set off, in the order in which they are tried. */
  readonly transitions: readonly ChartTransition[];
}

export interface Standing {
  readonly value: StateValue;
  /** Each state that it is in, without those around others. */
  readonly leaves: readonly ChartState[];
  readonly status: "active" | "done" | "error" | "stopped";
  /** Why it has failed. */
  readonly problem: string | null;
  readonly offered: readonly OfferedEvent[];
}

export type Step =
  /** `actions` are named in their order; nobody has executed them. */
  | { readonly kind: "taken"; readonly actions: readonly string[] }
  /** A state takes such events, and every guard said no. */
  | { readonly kind: "refused"; readonly guards: readonly string[] }
  | { readonly kind: "ignored" }
  /** A guard or an assign threw. */
  | { readonly kind: "failed"; readonly problem: string };

export interface WalkedMachine {
  readonly machine: AnyStateMachine;
  readonly model: ChartModel;
  readonly input: unknown;
  /** From the copy of XState that made the machine. */
  readonly createActor?: CreateActor;
}

export class Walk {
  readonly #walked: WalkedMachine;
  readonly #children: ReturnType<typeof childrenOf>;
  readonly #own: ReadonlyMap<string, readonly ChartTransition[]>;
  readonly #scope: InertScope;
  readonly #earlier: AnyMachineSnapshot[] = [];
  #snapshot: AnyMachineSnapshot;
  #seen: { actions: string[]; isTaken: boolean } = { actions: [], isTaken: false };

  /** Throws what the machine throws when it begins. */
  constructor(walked: WalkedMachine) {
    this.#walked = walked;
    const { machine, model, input } = walked;
    const create = walked.createActor ?? createActor;
    this.#children = childrenOf(model);
    this.#own = Map.groupBy(model.transitions, ({ source }) => source);
    // Versions that know this bound have none of their own.
    const { options } = machine as { readonly options?: { maxIterations?: number } };
    if (options?.maxIterations === Infinity) options.maxIterations = MAX_ITERATIONS;
    this.#scope = inertScope(
      machine,
      {
        onAction: ({ type }) => {
          if (!BUILT_IN.has(type)) this.#seen.actions.push(type.replace(/^xstate\./, ""));
        },
        onTaken: () => (this.#seen.isTaken = true),
      },
      (one) => create(one, { input }),
    );
    this.#snapshot = this.#begin();
  }

  get standing(): Standing {
    const { value, status, error } = this.#snapshot as Pick<Standing, "value" | "status"> & {
      readonly error: unknown;
    };
    const active = this.#active(rootOf(this.#walked.model), value);
    const leaves = active.filter(({ id }) => !active.some(({ parent }) => parent === id));
    return {
      ...{ value: value, leaves, status },
      problem: status === "error" ? describeError(error) : null,
      offered: status === "active" ? this.#offered(active) : [],
    };
  }

  take(event: EventObject): Step {
    const { offered, status } = this.standing;
    if (status !== "active") return { kind: "ignored" };
    const before = this.#snapshot;
    this.#seen = { actions: [], isTaken: false };
    let after: AnyMachineSnapshot;
    try {
      after = this.#walked.machine.transition(before, event, this.#scope) as AnyMachineSnapshot;
    } catch (error) {
      return { kind: "failed", problem: describeError(error) };
    }
    if (after.status === "error") return { kind: "failed", problem: describeError(after.error) };
    // Early versions of 5 do not say what they have taken.
    if (!this.#seen.isTaken && after === before) {
      const guards = offered
        .find((one) => one.event === event.type)
        ?.transitions.flatMap(({ guard }) => guard ?? []);
      return guards === undefined || guards.length === 0 ? { kind: "ignored" } : { kind: "refused", guards };
    }
    this.#earlier.push(before);
    if (this.#earlier.length > MAX_STEPS_BACK) this.#earlier.shift();
    this.#snapshot = after;
    return { kind: "taken", actions: this.#seen.actions };
  }

  /** Whether there was a step to go back. */
  back(): boolean {
    const earlier = this.#earlier.pop();
    if (earlier !== undefined) this.#snapshot = earlier;
    return earlier !== undefined;
  }

  restart(): void {
    this.#earlier.length = 0;
    this.#snapshot = this.#begin();
  }

  #begin(): AnyMachineSnapshot {
    const snapshot = this.#walked.machine.getInitialSnapshot(
      this.#scope,
      this.#walked.input,
    ) as AnyMachineSnapshot;
    if (snapshot.status === "error") throw snapshot.error;
    return snapshot;
  }

  /** From the outside to the inside. */
  #active(state: ChartState, value: StateValue): ChartState[] {
    const inner = (this.#children.get(state.id) ?? []).flatMap((child) => {
      if (typeof value === "string") return child.key === value ? this.#active(child, {}) : [];
      const within = value[child.key];
      return within === undefined ? [] : this.#active(child, within);
    });
    return [state, ...inner];
  }

  /** Events of the innermost states come first, as they are tried first. */
  #offered(active: readonly ChartState[]): OfferedEvent[] {
    const transitions = active
      .toReversed()
      .flatMap(({ id }) => this.#own.get(id) ?? [])
      // An event that is listed without anything to do is forbidden, and what needs no event is taken by itself.
      .filter(
        ({ trigger, actions, targets }) => trigger.kind !== "always" && actions.length + targets.length > 0,
      );
    return [...Map.groupBy(transitions, ({ event }) => event)].map(([event, group]) => ({
      event,
      label: group[0] === undefined ? event : triggerLabel(group[0].trigger),
      transitions: group,
    }));
  }
}
