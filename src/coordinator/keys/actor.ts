// The part of a key that only an actor has: the invocations and children that it waits for, the timers that it has set, its parent. It
// stands in the key's own row, but for timers, which have rows of theirs.
//
// Keeps true: what is under an id here is what the actor's state of now waits for. An item that says otherwise comes too late (K10).
import type { Fields, Tuple } from "../../storage/fields.ts";
import type { Timer } from "./timers.ts";

/** An invocation or a child that has not been heard of by its actor since it began. */
export interface Live {
  readonly id: string;
  /** Grows with each invocation, child and timer of the actor. */
  readonly number: number;
  readonly isChild: boolean;
  readonly source: string;
  /** Its end stands in the actor's mail. */
  hasEnded: boolean;
}

export interface Parent {
  readonly key: string;
  /** The child, as its parent names it. */
  readonly id: string;
  readonly number: number;
}

export class Actor {
  parent: Parent | undefined = undefined;
  /** The first sequence of an item that is its own: what was submitted before is of an actor that was stopped. */
  since = 0;
  nextNumber = 1;
  isFinal = false;
  /** It was stopped, or has ended as a child: the key goes as soon as nothing is left of it. */
  isGone = false;
  readonly live = new Map<string, Live>();
  /** Timers whose events stand in the mail, by id: their numbers. */
  readonly fired = new Map<string, number>();
  /** Armed, by id. */
  readonly timers = new Map<string, Timer>();
  /** When it is forgotten; undefined while it is not final, or for good. */
  retirement: Timer | undefined = undefined;
}

const IS_FINAL = 1;
const IS_GONE = 2;
const IS_CHILD = 1;
const HAS_ENDED = 2;

/** Timers have rows of their own. */
export function actorTuple({ since, nextNumber, isFinal, isGone, parent, live, fired }: Actor): Tuple {
  return [
    since,
    nextNumber,
    Number(isFinal) * IS_FINAL + Number(isGone) * IS_GONE,
    parent === undefined ? null : [parent.key, parent.id, parent.number],
    [...live.values()].map(({ id, number, isChild, source, hasEnded }) => [
      id,
      number,
      Number(isChild) * IS_CHILD + Number(hasEnded) * HAS_ENDED,
      source,
    ]),
    [...fired].map(([id, number]) => [id, number]),
  ];
}

export function actorFrom(fields: Fields): Actor {
  const actor = new Actor();
  actor.since = fields.integer(0);
  actor.nextNumber = fields.integer(1);
  const flags = fields.integer(2);
  actor.isFinal = (flags & IS_FINAL) !== 0;
  actor.isGone = (flags & IS_GONE) !== 0;
  if (!fields.isNull(3)) {
    const parent = fields.tuple(3);
    actor.parent = { key: parent.text(0), id: parent.text(1), number: parent.integer(2) };
  }
  for (const one of fields.tuples(4)) {
    const [id, as] = [one.text(0), one.integer(2)];
    const [isChild, hasEnded] = [(as & IS_CHILD) !== 0, (as & HAS_ENDED) !== 0];
    actor.live.set(id, { id, number: one.integer(1), isChild, source: one.text(3), hasEnded });
  }
  for (const one of fields.tuples(5)) actor.fired.set(one.text(0), one.integer(1));
  return actor;
}
