// A chart as XState's own actor runs it, with nothing of the product between: the expectations of tests of charts. Every outcome
// of a chart, whatever its guards say: tables and paths are held against it to be found complete.
import { isDeepStrictEqual } from "node:util";
import { createActor } from "xstate";
import type { AnyActor, AnyMachineSnapshot, AnyStateMachine, AnyStateNode, StateValue } from "xstate";
import type { ChartSnapshot } from "../../machines/migration.ts";
import { stateName } from "../../src/runtime/chart-structure.ts";

export interface Outcome {
  readonly state: string;
  /** In order; assigns are no effects. */
  readonly effects: readonly { readonly type: string; readonly params: unknown }[];
  readonly context: object;
}

export class LiveActor {
  readonly #actor: AnyActor;
  #effects: { readonly type: string; readonly params: unknown }[] = [];
  #isTaken = false;

  private constructor(machine: AnyStateMachine, from: { input: unknown } | { snapshot: AnyMachineSnapshot }) {
    this.#actor = createActor(machine, {
      ...from,
      inspect: (inspected) => {
        if (inspected.type === "@xstate.action") this.#effects.push({ ...inspected.action });
        if (inspected.type === "@xstate.microstep") this.#isTaken ||= inspected._transitions.length > 0;
      },
    });
    this.#actor.start();
  }

  /** A new one. */
  static begin(machine: AnyStateMachine, input: unknown): LiveActor {
    return new LiveActor(machine, { input });
  }

  /** One that has come to this place. */
  static at(machine: AnyStateMachine, { value, context }: ChartSnapshot): LiveActor {
    return new LiveActor(machine, { snapshot: machine.resolveState({ value, context }) });
  }

  get #snapshot(): AnyMachineSnapshot {
    return this.#actor.getSnapshot() as AnyMachineSnapshot;
  }

  get value(): StateValue {
    return this.#snapshot.value as StateValue;
  }

  /** Where it is, and the effects since the last event, or since its beginning. */
  get outcome(): Outcome {
    const { context } = this.#snapshot as { context: object };
    return { state: stateName(this.value), effects: this.#effects, context };
  }

  /** Undefined when it ignores the event, as it does everything in a final state. */
  send(event: { readonly type: string }): Outcome | undefined {
    this.#forget();
    if (this.#snapshot.status === "active") this.#actor.send(event);
    return this.#isTaken ? this.outcome : undefined;
  }

  #forget(): void {
    [this.#effects, this.#isTaken] = [[], false];
  }
}

/** One way through the guards of an event in a state. */
export interface GuardOutcome {
  /** The answers in the order of asking: `1.no 2.yes`; empty where nothing is asked. */
  readonly guards: string;
  /** Null when the event is then ignored. */
  readonly next: StateValue | null;
  /** Whether the guards fall this way for a context and an event; for charts that ask before they assign. */
  holds(context: object, event: { type: string }): boolean;
}

/** The events that any state mentions, in order. */
export function chartEvents(machine: AnyStateMachine): string[] {
  const types = new Set<string>();
  const collect = (node: AnyStateNode): void => {
    for (const type of node.transitions.keys()) types.add(type);
    Object.values(node.states).forEach(collect);
  };
  collect(machine.root);
  return [...types].sort();
}

/** Every state that some answers of the guards lead to, by name. */
export function reachableStates(machine: AnyStateMachine): ReadonlyMap<string, StateValue> {
  const guards = new ScriptedGuards(machine);
  const { value } = LiveActor.begin(machine, {});
  const found = new Map([[stateName(value), value]]);
  for (const from of found.values())
    for (const type of chartEvents(machine))
      for (const { next } of guards.outcomesOf(from, type))
        if (next !== null) found.set(stateName(next), found.get(stateName(next)) ?? next);
  return found;
}

interface Asked {
  readonly name: string;
  readonly params: unknown;
  readonly answer: boolean;
}

type Guard = (args: { context: object; event: { type: string } }, params: unknown) => boolean;

/** A chart whose guards answer as they are told, so that an actor can be sent all ways that they can fall. */
export class ScriptedGuards {
  readonly #machine: AnyStateMachine;
  readonly #scripted: AnyStateMachine;
  #script: readonly boolean[] = [];
  #asked: Asked[] = [];
  /** How many had been asked when the context changed last. */
  #askedBefore = 0;

  constructor(machine: AnyStateMachine) {
    this.#machine = machine;
    const { guards, actions } = machine.implementations;
    const names = (implementations: object): string[] => Object.keys(implementations);
    const isAssign = (name: string): boolean =>
      (actions[name] as { readonly type?: string } | undefined)?.type === "xstate.assign";
    const assigned = (): void => void (this.#askedBefore = this.#asked.length);
    this.#scripted = machine.provide({
      guards: Object.fromEntries(
        names(guards).map((name) => [name, (_: unknown, params: unknown) => this.#answer(name, params)]),
      ),
      actions: Object.fromEntries(names(actions).map((name) => [name, isAssign(name) ? assigned : () => {}])),
    });
  }

  outcomesOf(value: StateValue, type: string): readonly GuardOutcome[] {
    const found: GuardOutcome[] = [];
    const scripts: (readonly boolean[])[] = [[]];
    for (let script = scripts.pop(); script !== undefined; script = scripts.pop()) {
      [this.#script, this.#asked, this.#askedBefore] = [script, [], 0];
      const actor = LiveActor.at(this.#scripted, { value, context: {} });
      const isTaken = actor.send({ type }) !== undefined;
      const asked = this.#asked;
      const answers = asked.map(({ answer }) => answer);
      for (let at = script.length; at < answers.length; at++) scripts.push([...answers.slice(0, at), true]);
      found.push({
        guards: answers.map((answer, at) => `${at + 1}.${answer ? "yes" : "no"}`).join(" "),
        next: isTaken ? actor.value : null,
        holds: (context, event) =>
          asked.every(({ name, params, answer }) => this.#ask(name, { context, event }, params) === answer),
      });
    }
    return found;
  }

  /** As the chart itself answers. */
  #ask(name: string, args: Parameters<Guard>[0], params: unknown): boolean {
    // XState keeps implementations untyped.
    return (this.#machine.implementations.guards[name] as unknown as Guard)(args, params);
  }

  /** By the script, and then no. Asked again before the context has changed, by another region say, it answers as before. */
  #answer(name: string, params: unknown): boolean {
    const isIt = (one: Asked): boolean => one.name === name && isDeepStrictEqual(one.params, params);
    const known = this.#asked.slice(this.#askedBefore).find(isIt);
    if (known !== undefined) return known.answer;
    const answer = this.#script[this.#asked.length] ?? false;
    this.#asked.push({ name, params, answer });
    return answer;
  }
}
