// References to durable actors, as machines have them: in their context, in events, and as what `sendTo` sends to. XState takes one for
// an actor's reference; behind it there is an address and nothing that runs.
import type { AnyActorRef, EventObject } from "xstate";
import { actorAddress } from "../../../base/actor-address.ts";
import { withReplaced } from "../../../runtime/exact-copy.ts";

/** The same in each copy of this package: a user's file may have one of its own. */
const KEY: unique symbol = Symbol.for("rollout.actor.key") as never;
/** As XState writes a reference, by which it is known in a context and in an event. */
const REFERENCE_TYPE = 1;

export interface ReferenceOptions {
  readonly key: string;
  readonly id: string;
  readonly src?: string;
  /** False for one that has ended: events to it are passed over. */
  readonly isLive?: boolean;
  /** It is of a child whose place another one may have taken by now. */
  readonly isGone?: boolean;
  /** Carries out what a machine sends by the reference itself. */
  readonly onSend?: (to: Reference, event: EventObject) => void;
}

/** As JSON has it. */
export interface WrittenReference {
  readonly xstate$$type: typeof REFERENCE_TYPE;
  readonly key: string;
  readonly gone?: true;
}

/** Has the members by which XState, and machines, know a reference. */
export class Reference {
  readonly id: string;
  readonly sessionId: string;
  readonly src: string | undefined;
  readonly systemId = undefined;
  readonly isGone: boolean;
  /** Another one once the actor has ended. */
  isLive: boolean;
  readonly [KEY]: string;
  readonly #onSend: ReferenceOptions["onSend"];

  constructor({ key, id, src, isLive = true, isGone = false, onSend }: ReferenceOptions) {
    this[KEY] = key;
    this.id = id;
    this.sessionId = key;
    this.src = src;
    this.isLive = isLive && !isGone;
    this.isGone = isGone;
    this.#onSend = onSend;
  }

  get ref(): this {
    return this;
  }

  send(event: EventObject): void {
    if (this.#onSend === undefined)
      throw new TypeError(`${this[KEY]} is sent to by sendTo(reference, event), within a machine alone`);
    this.#onSend(this, event);
  }

  /** No more than whether it has ended: its own state is elsewhere. */
  getSnapshot(): { readonly status: string } {
    return { status: this.isLive ? "active" : "done" };
  }

  toJSON(): WrittenReference {
    return writtenReference(this[KEY], this.isGone);
  }
}

/**
 * A durable actor of the run, whether it is there yet or not: `sendTo(actor("stock", "tea"), { type: "take" })`. It may stand in a
 * context. Throws a TypeError for a name that no actor has.
 */
export function actor(type: string, id: string): AnyActorRef {
  const key = `${type}/${id}`;
  if (actorAddress(key) === undefined)
    throw new TypeError(
      `${JSON.stringify(key)} is no key of an actor: neither a type nor an id is empty or has a /`,
    );
  const reference: unknown = new Reference({ key, id });
  return reference as AnyActorRef;
}

/** The key of an actor that a reference of this package is to; undefined for anything else. */
export function keyOfReference(value: object): string | undefined {
  return (value as Partial<Reference>)[KEY];
}

/** Whether XState would take it for a reference to an actor. */
export function looksLikeReference(value: object): boolean {
  return "sessionId" in value && "send" in value && "ref" in value;
}

export function writtenReference(key: string, isGone = false): WrittenReference {
  return { xstate$$type: REFERENCE_TYPE, key, ...(isGone && { gone: true }) };
}

/** Undefined for what is none. */
export function readReference(value: object): WrittenReference | undefined {
  const { xstate$$type: mark, key } = value as Partial<WrittenReference>;
  return mark === REFERENCE_TYPE && typeof key === "string" ? (value as WrittenReference) : undefined;
}

/** A value of JSON with references in place of what was written for them: such as can be sent elsewhere, but not be sent to. */
export function withReferences(value: unknown): unknown {
  return withReplaced(value, (object) => {
    const read = readReference(object);
    return read && new Reference({ key: read.key, id: lastOf(read.key), isGone: read.gone === true });
  });
}

/** The id of the last actor that a key names. */
export function lastOf(key: string): string {
  return key.slice(key.lastIndexOf("/") + 1);
}
