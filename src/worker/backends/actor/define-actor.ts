// For authors of actors: the mark by which a worker knows what a file exports as one.
import type { AnyActorLogic, AnyStateMachine } from "xstate";
import { parseDurationMs } from "../../../config/duration.ts";
import type { ActorSnapshot } from "../../../runtime/actor-state.ts";

/** The input with which an actor's machine begins, at the first event that is sent to it. */
export interface ActorInput {
  /** `TYPE/ID`. */
  readonly key: string;
  readonly type: string;
  readonly id: string;
}

/** The actor that a snapshot is of. */
export interface MigratedActor {
  /** Empty for an actor of the type; else the names of logic that lead to a child's machine, as `checkout/payment`. */
  readonly source: string;
}

/** Makes a snapshot of the next version of its shape, of a child too; it must not change the one that it is given. */
export type ActorMigration = (snapshot: ActorSnapshot, actor: MigratedActor) => ActorSnapshot;

export interface ActorDefinition<Machine extends AnyStateMachine = AnyStateMachine> {
  /** Its input is an `ActorInput`. */
  readonly machine: Machine;
  /** Promises and machines for names that the machine invokes or spawns, in place of those of its `setup`. */
  readonly actors?: Readonly<Record<string, AnyActorLogic>>;
  /** By the `state_version` that a snapshot has: each makes one of the version after it. */
  readonly migrations?: Readonly<Record<number, ActorMigration>>;
  /** A final actor is forgotten after so long ("30d", "500ms"), and its id is free; it stays when nothing is said. */
  readonly idleTtl?: string;
}

/** A type of actors, to be exported by the name that the manifest's `types` gives. */
export interface ActorType<
  Machine extends AnyStateMachine = AnyStateMachine,
> extends ActorDefinition<Machine> {
  readonly [ACTOR_TYPE]: true;
}

/** The same in each copy of this package: a user's file may have one of its own. */
const ACTOR_TYPE: unique symbol = Symbol.for("rollout.actor") as never;

const MEMBERS = ["machine", "actors", "migrations", "idleTtl"];

/**
 * A type of durable actors, for a file that a manifest names (`backend = "actor"`): each actor of it is a machine, whose state is kept from
 * event to event. Throws a TypeError for an option that it does not know.
 */
export function defineActor<Machine extends AnyStateMachine>(
  definition: ActorDefinition<Machine>,
): ActorType<Machine> {
  const unknown = Object.keys(definition).filter((name) => !MEMBERS.includes(name));
  if (unknown.length > 0)
    throw new TypeError(`defineActor knows no ${unknown.join(", ")}: it takes ${MEMBERS.join(", ")}`);
  const { idleTtl } = definition;
  if (idleTtl !== undefined && !isDuration(idleTtl))
    throw new TypeError(
      `the idleTtl of an actor is ${JSON.stringify(idleTtl)}: it takes a duration, as "30d"`,
    );
  return Object.freeze({ ...definition, [ACTOR_TYPE]: true as const });
}

export function isActorType(exported: unknown): exported is ActorType {
  return typeof exported === "object" && exported !== null && ACTOR_TYPE in exported;
}

/** The machine of a type with all the logic that the type gives it. */
export function machineOfType({ machine, actors }: ActorType): AnyStateMachine {
  return actors === undefined ? machine : machine.provide({ actors: actors as never });
}

function isDuration(text: unknown): boolean {
  return typeof text === "string" && parseDurationMs(text) !== undefined;
}
