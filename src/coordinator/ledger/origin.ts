// The origin of an item that nobody submitted: the result of another one has asked for it, or a timer was due. It stands in the item's
// row, goes along to the worker, and says whether the item is still wanted when its turn comes.
import type { Fields, Tuple } from "../../storage/fields.ts";

export type Origin =
  /** A message of the actor `from`. `isOptional`: it is passed over where nobody takes it. */
  | { readonly kind: "mail"; readonly from: string; readonly isOptional: boolean }
  /** `number`, here and below, tells it from an earlier one of the same id. */
  | { readonly kind: "timer"; readonly id: string; readonly number: number }
  /** The end of an invocation or a child, as its actor is told of it. */
  | {
      readonly kind: "outcome" | "failure";
      readonly id: string;
      readonly number: number;
      readonly isChild: boolean;
    }
  /** The first item of a child. */
  | { readonly kind: "start"; readonly id: string; readonly source: string; readonly parent: string }
  | { readonly kind: "invocation"; readonly id: string; readonly source: string; readonly key: string }
  | { readonly kind: "action"; readonly type: string; readonly key: string };

/** Numbers of kinds in rows: never given again. */
const KINDS = { mail: 1, timer: 2, outcome: 3, failure: 4, start: 5, invocation: 6, action: 7 } as const;

export function originTuple(origin: Origin): Tuple {
  const kind = KINDS[origin.kind];
  switch (origin.kind) {
    case "mail":
      return [kind, origin.from, origin.isOptional];
    case "timer":
      return [kind, origin.id, origin.number];
    case "outcome":
    case "failure":
      return [kind, origin.id, origin.number, origin.isChild];
    case "start":
      return [kind, origin.id, origin.source, origin.parent];
    case "invocation":
      return [kind, origin.id, origin.source, origin.key];
    case "action":
      return [kind, origin.type, origin.key];
  }
}

export function originFrom(fields: Fields): Origin {
  const text = fields.text(1);
  switch (fields.integer(0)) {
    case KINDS.mail:
      return { kind: "mail", from: text, isOptional: fields.boolean(2) };
    case KINDS.timer:
      return { kind: "timer", id: text, number: fields.integer(2) };
    case KINDS.outcome:
      return { kind: "outcome", id: text, number: fields.integer(2), isChild: fields.boolean(3) };
    case KINDS.failure:
      return { kind: "failure", id: text, number: fields.integer(2), isChild: fields.boolean(3) };
    case KINDS.start:
      return { kind: "start", id: text, source: fields.text(2), parent: fields.text(3) };
    case KINDS.invocation:
      return { kind: "invocation", id: text, source: fields.text(2), key: fields.text(3) };
    case KINDS.action:
      return { kind: "action", type: text, key: fields.text(2) };
    default:
      return fields.refuse(0, "is no origin of an item");
  }
}
