// One step of a cold chart, computed and not carried out: the interpreter runs in a scope that does nothing, and what the
// step wants done comes back as data.
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import { inertScope } from "./inert-scope.ts";
import type { InertScope } from "./inert-scope.ts";
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
    this.#scope = inertScope(
      machine,
      ({ type, params }) => void this.#seen.actions.push({ type, params }),
      () => (this.#seen.isTaken = true),
    );
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
