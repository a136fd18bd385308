// One (state, event) pair of a chart as a tree of its guards, found by running the real interpreter once for every outcome
// of every guard it asks. Hierarchy, parallel regions, entry and exit order come out right because XState computes them.
import { isDeepStrictEqual } from "node:util";
import type { AnyMachineSnapshot, AnyStateMachine, StateValue } from "xstate";
import { assert } from "../base/assert.ts";
import { inertScope } from "./transition.ts";
import type { InertScope } from "./transition.ts";

export type Params = Readonly<Record<string, unknown>> | undefined;
type Call<Result> = (args: { context: unknown; event: unknown }, params: Params) => Result;
export type Guard = Call<boolean>;
export type Assignment = Call<object> | Readonly<Record<string, unknown>>;

export type Operation =
  | { readonly kind: "assign"; readonly assignment: Assignment; readonly params: Params }
  | { readonly kind: "effect"; readonly type: string; readonly params: Params };

export type Decision =
  | { readonly kind: "leaf"; readonly operations: readonly Operation[]; readonly value: StateValue | null }
  | {
      readonly kind: "ask";
      readonly operations: readonly Operation[];
      readonly guard: Guard;
      readonly params: Params;
      readonly yes: Decision;
      readonly no: Decision;
    };

type Step =
  | { readonly kind: "guard"; readonly name: string; readonly params: Params; readonly answer: boolean }
  | { readonly kind: "action"; readonly name: string; readonly params: Params };

/** A tree doubles with each guard that one event asks, so a chart which asks more is not for the hot path. */
const GUARDS_PER_EVENT_MAX = 8;

/** Builds trees for one chart. The chart has been found compilable before (`refuseUncompilable`). */
export class DecisionTrees {
  readonly #machine: AnyStateMachine;
  readonly #recorder: AnyStateMachine;
  readonly #scope: InertScope;
  readonly #guards: Readonly<Record<string, Guard>>;
  #answers: readonly boolean[] = [];
  /** The interpreter's record of the step under way. */
  #seen: { readonly trace: Step[]; isTaken: boolean } = { trace: [], isTaken: false };

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
    const { guards, actions } = machine.implementations;
    // XState keeps implementations untyped; a compilable chart names plain functions only.
    this.#guards = guards as unknown as Record<string, Guard>;
    this.#recorder = machine.provide({
      guards: mapValues(guards, (_, name) => (_args: unknown, params: Params) => this.#answer(name, params)),
      actions: mapValues(actions, () => () => {}),
    });
    this.#scope = inertScope(this.#recorder, {
      onAction: ({ type, params }) =>
        void this.#seen.trace.push({ kind: "action", name: type, params: params as Params }),
      onTaken: () => (this.#seen.isTaken = true),
    });
  }

  build(value: StateValue, eventType: string): Decision {
    return this.#explore(value, eventType, [], 0);
  }

  /** Answers guards with `answers` and then false, and returns what the rest of the trace still decides. */
  #explore(value: StateValue, type: string, answers: readonly boolean[], traceFrom: number): Decision {
    assert(answers.length <= GUARDS_PER_EVENT_MAX, `${this.#machine.id}: ${type} asks too many guards`);
    this.#answers = answers;
    this.#seen = { trace: [], isTaken: false };
    const before = this.#recorder.resolveState({ value, context: {} });
    const after: AnyMachineSnapshot = this.#recorder.transition(before, { type }, this.#scope);
    const { trace, isTaken } = this.#seen;
    const operations: Operation[] = [];
    for (let at = traceFrom; at < trace.length; at++) {
      const step = trace[at];
      assert(step !== undefined, "the trace has no holes");
      if (step.kind === "action") {
        operations.push(this.#operation(step));
        continue;
      }
      const guard = this.#guards[step.name];
      assert(guard !== undefined, `guard ${step.name} exists`);
      const known = answers.slice(0, trace.slice(0, at).filter(({ kind }) => kind === "guard").length);
      return {
        kind: "ask",
        operations,
        guard,
        params: step.params,
        yes: this.#explore(value, type, [...known, true], at + 1),
        no: this.#explore(value, type, [...known, false], at + 1),
      };
    }
    return { kind: "leaf", operations, value: isTaken ? (after.value as StateValue) : null };
  }

  /**
   * A guard is a function of context, event and parameters. Asked again before an assign changed the context, by another
   * parallel region say, it answers as before, and the tree does not ask it twice.
   */
  #answer(name: string, params: Params): boolean {
    const sinceAssign = this.#seen.trace.findLastIndex(
      (step) => step.kind === "action" && this.#operation(step).kind === "assign",
    );
    for (const step of this.#seen.trace.slice(sinceAssign + 1))
      if (step.kind === "guard" && step.name === name && isDeepStrictEqual(step.params, params))
        return step.answer;
    const asked = this.#seen.trace.filter(({ kind }) => kind === "guard").length;
    const answer = this.#answers[asked] ?? false;
    this.#seen.trace.push({ kind: "guard", name, params, answer });
    return answer;
  }

  #operation({ name, params }: Step): Operation {
    const action: unknown = this.#machine.implementations.actions[name];
    if (typeof action === "function" && "assignment" in action)
      return { kind: "assign", assignment: action.assignment as Assignment, params };
    return { kind: "effect", type: name, params };
  }
}

function mapValues<In, Out>(
  record: Readonly<Record<string, In>>,
  change: (value: In, key: string) => Out,
): Record<string, Out> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value, key)]));
}
