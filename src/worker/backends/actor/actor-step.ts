// One event of a durable actor: the state before it and the event in, the state after it out. The machine's interpreter runs in a scope
// that does nothing, so an event that fails, in the middle of whatever it does, has changed nothing.
//
// Keeps true: a state that this machine does not have whole is refused, never begun anew and never bent.
import { isDeepStrictEqual } from "node:util";
import type { AnyMachineSnapshot, AnyStateMachine, EventObject } from "xstate";
import { describeError } from "../../../base/errors.ts";
import { inexactness } from "../../../runtime/actor-state.ts";
import type { ActorSnapshot, ActorState } from "../../../runtime/actor-state.ts";
import { inertScope } from "../../../runtime/transition.ts";
import type { CreateActor, InertScope, PlannedAction } from "../../../runtime/transition.ts";
import { demandActorMachine, refusalOfPlanned } from "./actor-machine.ts";
import type { ActorInput, ActorType } from "./define-actor.ts";

/** The event cannot be taken; that says nothing of the code, nor does another attempt help. */
export class RefusedEvent extends Error {
  readonly why: "state_refused" | "actor_done";

  constructor(why: RefusedEvent["why"], message: string) {
    super(`${why}: ${message}`);
    this.why = why;
  }
}

/** Transitions that one event may cause, unless the machine says otherwise. */
const MICROSTEPS_MAX = 10_000;

export class ActorSteps {
  readonly #type: string;
  readonly #version: number;
  readonly #machine: AnyStateMachine;
  readonly #migrations: NonNullable<ActorType["migrations"]>;
  readonly #scope: InertScope;
  #planned: PlannedAction[] = [];

  /** Throws when its machine can be no actor. `create`: of the copy of XState that has made it. */
  constructor(type: string, definition: ActorType, version: number, create: CreateActor) {
    const { machine, migrations = {} } = definition;
    demandActorMachine(type, machine);
    // Eventless transitions in a circle are an error of the event, and not a process that never answers.
    const { options } = machine;
    if (options.maxIterations === Infinity) options.maxIterations = MICROSTEPS_MAX;
    this.#type = type;
    this.#version = version;
    this.#machine = machine;
    this.#migrations = migrations;
    const input: ActorInput = { key: `${type}/`, type, id: "" };
    this.#scope = inertScope(
      machine,
      ({ type: action, params }) => void this.#planned.push({ type: action, params }),
      () => {},
      (made) => create(made, { input }),
    );
  }

  /** Throws RefusedEvent, and what the machine throws. `before` is undefined for an actor that is not there yet. */
  step(before: ActorState | undefined, event: EventObject, input: ActorInput): ActorState {
    this.#planned = [];
    const from = before === undefined ? this.#begin(input) : this.#restore(before, input.key);
    if (from.status !== "active")
      throw new RefusedEvent("actor_done", `${input.key} is final, and takes no events any more`);
    const after: AnyMachineSnapshot = this.#machine.transition(from, event, this.#scope);
    if (after.status === "error") throw after.error;
    this.#refusePlanned();
    const events = (before?.events ?? 0) + 1;
    const tags = [...(after.tags as ReadonlySet<string>)].sort();
    return { type: this.#type, version: this.#version, events, tags, snapshot: this.#kept(after) };
  }

  /** Whether the state can be gone on with. Throws RefusedEvent when not. */
  check(before: ActorState, key: string): void {
    this.#restore(before, key);
  }

  #begin(input: ActorInput): AnyMachineSnapshot {
    const snapshot: AnyMachineSnapshot = this.#machine.getInitialSnapshot(this.#scope, input);
    if (snapshot.status === "error") throw snapshot.error;
    return snapshot;
  }

  #restore(before: ActorState, key: string): AnyMachineSnapshot {
    const refuse = (reason: string): never => {
      throw new RefusedEvent("state_refused", `the state of ${key} does not fit this code: ${reason}`);
    };
    if (before.type !== this.#type) return refuse(`it is of an actor ${before.type}`);
    const snapshot = this.#migrated(before, refuse);
    const machine = this.#machine;
    try {
      const { value } = snapshot;
      // XState would take a state that has become compound for its first child.
      const resolved: unknown = machine.resolveState({ value, context: {} }).value;
      if (!isDeepStrictEqual(resolved, value))
        return refuse(`${JSON.stringify(value)} is not a whole state of the machine`);
      const { historyValue = {} } = snapshot;
      for (const { id } of Object.values(historyValue).flat()) machine.getStateNodeById(id);
      const restored = { ...snapshot, historyValue, children: {} };
      return machine.restoreSnapshot(restored as never, this.#scope as never);
    } catch (error) {
      return error instanceof RefusedEvent ? refuse(error.message) : refuse(describeError(error));
    }
  }

  #migrated({ version, snapshot }: ActorState, refuse: (reason: string) => never): ActorSnapshot {
    if (version > this.#version)
      return refuse(`it has state_version ${version}, and this code ${this.#version}`);
    let migrated = snapshot;
    for (let at = version; at < this.#version; at++) {
      const migrate = this.#migrations[at];
      if (migrate === undefined) return refuse(`there is no migration of state_version ${at}`);
      try {
        migrated = migrate(migrated);
      } catch (error) {
        return refuse(`the migration of state_version ${at} throws ${describeError(error)}`);
      }
    }
    return migrated;
  }

  #refusePlanned(): void {
    for (const { type, params } of this.#planned) {
      const refusal = refusalOfPlanned(type, params);
      if (refusal !== undefined) throw new TypeError(`actor ${this.#type} ${refusal}`);
    }
  }

  /** Throws when JSON would not hold it as it is. */
  #kept(after: AnyMachineSnapshot): ActorSnapshot {
    if (Object.keys(after.children as object).length > 0)
      throw new TypeError(`actor ${this.#type} spawns children, which are not started yet`);
    const inexact = inexactness(after.context, "context") ?? inexactOutput(after.output);
    if (inexact !== undefined)
      throw new TypeError(`the state cannot be kept: ${inexact}, which JSON has not`);
    const persisted: unknown = this.#machine.getPersistedSnapshot(after);
    const { status, value, context, output, historyValue } = persisted as Required<ActorSnapshot>;
    return { status, value, context, output, historyValue };
  }
}

function inexactOutput(output: unknown): string | undefined {
  return output === undefined ? undefined : inexactness(output, "output");
}
