// The actors that one step knows: the actor itself, its parent and its children, as the interpreter has them, and by their addresses.
//
// Keeps true: children are told apart by their references and never by their ids, for a state that is left and entered again stops one
// and starts another of the same id.
import type { AnyMachineSnapshot, EventObject } from "xstate";
import type { ActorPlace } from "../../../base/actor-address.ts";
import type { KeptChild } from "../../../runtime/actor-state.ts";
import { exactCopy, InexactValue, withReplaced } from "../../../runtime/exact-copy.ts";
import { keyOfReference, looksLikeReference, readReference } from "./actor-reference.ts";
import { lastOf, Reference, writtenReference } from "./actor-reference.ts";

export interface StepChild {
  readonly id: string;
  readonly src: string;
  readonly kind: KeptChild["kind"];
  readonly ref: object;
  /** Undefined when it was there before the step. */
  readonly input?: { readonly value: unknown };
  hasEnded: boolean;
  isLeft: boolean;
}

/** Carries out what a machine sends by a reference itself. */
export type Sending = (to: object, event: EventObject) => void;

export class StepActors {
  readonly place: ActorPlace;
  readonly self: object;
  /** Children by the names under which XState has them. */
  readonly stubs: Readonly<Record<string, Reference>>;
  readonly parent: Reference | undefined;
  readonly #children = new Map<object, StepChild>();

  /** `self`: what the interpreter has for the actor itself. */
  constructor(place: ActorPlace, self: object, kept: Readonly<Record<string, KeptChild>>, onSend: Sending) {
    this.place = place;
    this.self = self;
    const { parent: key } = place;
    if (key !== undefined) this.parent = new Reference({ key, id: lastOf(key), onSend });
    const stubs: Record<string, Reference> = {};
    for (const [id, { src, kind, hasEnded = false, as = id }] of Object.entries(kept)) {
      const ref = new Reference({ key: this.#keyOf(id), id, src, isLive: !hasEnded, onSend });
      this.#children.set(ref, { id, src, kind, ref, hasEnded, isLeft: false });
      if (as !== null) stubs[as] = ref;
    }
    this.stubs = stubs;
  }

  childOf(ref: unknown): StepChild | undefined {
    return this.#children.get(ref as object);
  }

  /** The live child or invocation of that id. */
  live(id: string): StepChild | undefined {
    return this.allLive().find((child) => child.id === id);
  }

  allLive(): StepChild[] {
    return [...this.#children.values()].filter(({ isLeft, hasEnded }) => !isLeft && !hasEnded);
  }

  add(child: StepChild): void {
    this.#children.set(child.ref, child);
  }

  /** Whether there was a live one of that id, which has ended by this. */
  end(id: string): boolean {
    const child = this.live(id);
    if (child === undefined) return false;
    child.hasEnded = true;
    if (child.ref instanceof Reference) child.ref.isLive = false;
    return true;
  }

  /** Undefined for what is no reference to an actor of the run. */
  addressOf(target: unknown): string | undefined {
    if (typeof target !== "object" || target === null) return undefined;
    if (target === this.self) return this.place.key;
    const child = this.#children.get(target);
    return child === undefined ? keyOfReference(target) : this.#keyOf(child.id);
  }

  /** A value of the context, an input or an event as JSON has it, with references by their addresses. Throws InexactValue. */
  written(value: unknown, path: string): unknown {
    return exactCopy(value, path, (object, at) => this.#writtenReference(object, at));
  }

  /** The same read again: references are those that the interpreter knows. */
  revived(value: unknown): unknown {
    return withReplaced(value, (object) => {
      const read = readReference(object);
      return read && this.#referenceTo(read.key, read.gone === true);
    });
  }

  /** The children that are there after the step; undefined while there are none. */
  kept({ children, status }: AnyMachineSnapshot): Readonly<Record<string, KeptChild>> | undefined {
    const staying = [...this.#children.values()].filter(({ isLeft }) => !isLeft);
    if (staying.length === 0 || status !== "active") return undefined;
    const names = new Map(Object.entries(children as object).map(([name, ref]) => [ref as object, name]));
    return Object.fromEntries(
      staying.map(({ id, src, kind, hasEnded, ref }): [string, KeptChild] => {
        const as = names.get(ref) ?? null;
        return [id, { src, kind, ...(hasEnded && { hasEnded }), ...(as !== id && { as }) }];
      }),
    );
  }

  #keyOf(id: string): string {
    return `${this.place.key}/${id}`;
  }

  #writtenReference(object: object, path: string): unknown {
    const key = this.addressOf(object);
    if (key !== undefined) {
      const isGone = this.#children.get(object)?.isLeft ?? (object instanceof Reference && object.isGone);
      return writtenReference(key, isGone);
    }
    if (!looksLikeReference(object)) return undefined;
    throw new InexactValue(`${path} has a reference to an actor that is none of the run`);
  }

  #referenceTo(key: string, isGone: boolean): object {
    if (key === this.place.key) return this.self;
    if (key === this.place.parent && this.parent !== undefined) return this.parent;
    const child = [...this.#children.values()].find(({ id }) => this.#keyOf(id) === key);
    return child === undefined || isGone ? new Reference({ key, id: lastOf(key), isGone }) : child.ref;
  }
}
