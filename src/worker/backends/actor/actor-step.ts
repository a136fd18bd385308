// One event of a durable actor: the state before it and the event in, the state after it and what it asks for out. The interpreter runs in
// a scope that does nothing, so an event that fails, in the middle of whatever it does, has changed nothing.
//
// Keeps true: a state that this machine does not have whole is refused, never begun anew and never bent.
import type { AnyMachineSnapshot, EventObject } from "xstate";
import type { ActorPlace } from "../../../base/actor-address.ts";
import { describeError } from "../../../base/errors.ts";
import type { ActorSnapshot, ActorState, KeptChild } from "../../../runtime/actor-state.ts";
import type { CreateActor } from "../../../runtime/transition.ts";
import type { Ask } from "../key-asks.ts";
import { ActorMachine } from "./actor-machine.ts";
import { machineOfType } from "./define-actor.ts";
import type { ActorInput, ActorType } from "./define-actor.ts";
import { demandActorMachine } from "./machine-faults.ts";
import { StepActors } from "./step-actors.ts";
import { StepRecord } from "./step-record.ts";

/** The event cannot be taken; that says nothing of the code, nor does another attempt help. */
export class RefusedEvent extends Error {
  readonly why: "state_refused" | "actor_done";

  constructor(why: RefusedEvent["why"], message: string) {
    super(`${why}: ${message}`);
    this.why = why;
  }
}

/** Something that comes to an actor. */
export type Incoming =
  /** From outside it, or a timer of its own. `hasReferences`: it may have references to actors, because an actor has sent it. */
  | { readonly kind: "event"; readonly event: EventObject; readonly hasReferences: boolean }
  /** An invocation or a child has ended. */
  | { readonly kind: "outcome"; readonly id: string; readonly output: unknown }
  | { readonly kind: "failure"; readonly id: string; readonly message: string }
  /** The actor is a child, and this is the first that it hears of. */
  | { readonly kind: "start"; readonly source: string; readonly input: unknown };

export interface Step {
  readonly state: ActorState;
  readonly asks: readonly Ask[];
  /** The error of a child that has ended by it. */
  readonly error?: string;
}

interface Before {
  readonly machine: ActorMachine;
  readonly actors: StepActors;
  readonly record: StepRecord;
  /** Undefined for an actor that is not there yet. */
  readonly state: ActorState | undefined;
  readonly source: string;
  readonly from: AnyMachineSnapshot;
}

export class ActorSteps {
  readonly #type: string;
  readonly #version: number;
  readonly #machine: ActorMachine;
  readonly #migrations: NonNullable<ActorType["migrations"]>;

  /** Throws a TypeError when its machine can be no actor. `create`: of the copy of XState that has made it. */
  constructor(
    type: string,
    definition: ActorType,
    version: number,
    create: CreateActor,
    hasType: (type: string) => boolean = (other) => other === type,
  ) {
    const { machine: written, migrations = {} } = definition;
    demandActorMachine(type, written);
    const machine = machineOfType(definition);
    if (machine !== written) demandActorMachine(type, machine);
    this.#type = type;
    this.#version = version;
    this.#machine = new ActorMachine({ machine, source: "", hasType, create });
    this.#migrations = migrations;
  }

  /** That of the type. */
  get machine(): ActorMachine {
    return this.#machine;
  }

  /**
   * Throws RefusedEvent, and whatever the machine throws; what the machine of a child throws ends the child, as it does in XState. `before` is
   * undefined for an actor that is not there yet.
   */
  step(before: ActorState | undefined, incoming: Incoming, place: ActorPlace): Step {
    const under = this.#before(before, incoming, place);
    const { record, actors, state } = under;
    const { kind } = incoming;
    // Its invocation or child was left.
    const isStale = (kind === "outcome" || kind === "failure") && !actors.end(incoming.id);
    if (state !== undefined && (isStale || kind === "start")) return { state, asks: [] };
    const after = this.#taken(under, incoming);
    if (after.status === "error") return this.#broken(under, after);
    const asks = record.asks(after.status !== "active");
    return { state: this.#written(under, after, kind === "start" ? 0 : 1), asks };
  }

  /** Whether the state can be gone on with. Throws RefusedEvent when not. */
  check(before: ActorState, place: ActorPlace): void {
    this.#restored(before, place);
  }

  #before(state: ActorState | undefined, incoming: Incoming, place: ActorPlace): Before {
    if (state !== undefined) {
      const before = this.#restored(state, place);
      if (before.from.status === "active") return before;
      throw new RefusedEvent("actor_done", `${place.key} is final, and takes no events any more`);
    }
    const isStart = incoming.kind === "start";
    if (
      isStart !== (place.parent !== undefined) ||
      incoming.kind === "outcome" ||
      incoming.kind === "failure"
    )
      throw new RefusedEvent("actor_done", `there is no ${place.key}, and this does not begin it`);
    const source = isStart ? incoming.source : "";
    const machine = this.#machine.at(source);
    if (machine === undefined)
      throw new RefusedEvent(
        "state_refused",
        `${place.key} is to be ${source}, and this code has no such machine`,
      );
    machine.reset();
    const { actors, record } = this.#opened(machine, place, {}, 0);
    const input: ActorInput = { key: place.key, type: place.type, id: place.id };
    const from = machine.begin(actors, record, isStart ? actors.revived(incoming.input) : input);
    return { machine, actors, record, state, source, from };
  }

  #opened(
    machine: ActorMachine,
    place: ActorPlace,
    kept: Readonly<Record<string, KeptChild>>,
    events: number,
  ): Pick<Before, "actors" | "record"> {
    const actors: StepActors = new StepActors(place, machine.self, kept, (to, event) =>
      record.sent({ to, event }),
    );
    const record = new StepRecord(actors, machine, `${events + 1}.`);
    return { actors, record };
  }

  #restored(state: ActorState, place: ActorPlace): Before {
    const refuse = (reason: string): never => {
      throw new RefusedEvent("state_refused", `the state of ${place.key} does not fit this code: ${reason}`);
    };
    const { source = "", children = {}, named = 0, events } = state;
    if (state.type !== this.#type) return refuse(`it is of an actor ${state.type}`);
    const snapshot = this.#migrated(state, refuse);
    const machine = this.#machine.at(source);
    if (machine === undefined) return refuse(`it is of ${source}, and there is no such machine`);
    try {
      for (const [id, { src, kind }] of Object.entries(children))
        if (machine.kindOf(src) !== kind)
          return refuse(`its ${id} is of ${src}, which is no ${kind} any more`);
      const { actors, record } = this.#opened(machine, place, children, events);
      return { machine, actors, record, state, source, from: machine.restore(actors, snapshot, named) };
    } catch (error) {
      return error instanceof RefusedEvent ? refuse(error.message) : refuse(describeError(error));
    }
  }

  #migrated(
    { version, snapshot, source = "" }: ActorState,
    refuse: (reason: string) => never,
  ): ActorSnapshot {
    if (version > this.#version)
      return refuse(`it has state_version ${version}, and this code ${this.#version}`);
    let migrated = snapshot;
    for (let at = version; at < this.#version; at++) {
      const migrate = this.#migrations[at];
      if (migrate === undefined) return refuse(`there is no migration of state_version ${at}`);
      try {
        migrated = migrate(migrated, { source });
      } catch (error) {
        return refuse(`the migration of state_version ${at} throws ${describeError(error)}`);
      }
    }
    return migrated;
  }

  /** The snapshot after it; one of an error where a child's machine throws. */
  #taken({ machine, actors, record, from }: Before, incoming: Incoming): AnyMachineSnapshot {
    if (from.status !== "active" || incoming.kind === "start") return from;
    try {
      return machine.next(actors, record, from, eventOf(incoming, actors));
    } catch (error) {
      if (actors.parent === undefined) throw error;
      return { ...from, status: "error", error } as AnyMachineSnapshot;
    }
  }

  #broken(under: Before, after: AnyMachineSnapshot): Step {
    const { error } = after as { readonly error: unknown };
    if (under.actors.parent === undefined) throw error;
    const { context } = under.state?.snapshot ?? { context: {} };
    const snapshot = { ...after, context, output: undefined } as AnyMachineSnapshot;
    return { state: this.#written(under, snapshot, 1), asks: [], error: messageOf(error) };
  }

  /** Throws InexactValue when JSON would not hold it as it is. */
  #written({ actors, machine, state, source }: Before, after: AnyMachineSnapshot, more: number): ActorState {
    const children = actors.kept(after);
    return {
      type: this.#type,
      ...(source !== "" && { source }),
      version: this.#version,
      events: (state?.events ?? 0) + more,
      tags: [...(after.tags as ReadonlySet<string>)].sort(),
      snapshot: snapshotOf(after, actors),
      ...(children !== undefined && { children }),
      ...(machine.named > 0 && { named: machine.named }),
    };
  }
}

function snapshotOf(after: AnyMachineSnapshot, actors: StepActors): ActorSnapshot {
  const { status, value, context, output, historyValue } = after as unknown as ActorSnapshot;
  const history = Object.entries(historyValue ?? {}).map(
    ([name, states]): [string, { readonly id: string }[]] => [name, states.map(({ id }) => ({ id }))],
  );
  return {
    status,
    value,
    context: actors.written(context, "context"),
    output: output === undefined ? undefined : actors.written(output, "output"),
    historyValue: Object.fromEntries(history),
  };
}

function eventOf(incoming: Exclude<Incoming, { readonly kind: "start" }>, actors: StepActors): EventObject {
  switch (incoming.kind) {
    case "event": {
      const { event, hasReferences } = incoming;
      return hasReferences ? (actors.revived(event) as EventObject) : event;
    }
    case "outcome": {
      const { id, output } = incoming;
      return { type: `xstate.done.actor.${id}`, output: actors.revived(output), actorId: id } as EventObject;
    }
    case "failure": {
      const { id, message } = incoming;
      // A plain object: machines keep it in their context.
      return { type: `xstate.error.actor.${id}`, error: { message }, actorId: id } as EventObject;
    }
  }
}

function messageOf(error: unknown): string {
  const { message } = (error ?? {}) as { readonly message?: unknown };
  return typeof message === "string" ? message : describeError(error);
}
