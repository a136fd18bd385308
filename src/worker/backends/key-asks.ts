// The origins of items that nobody submitted, and the asks that a success may have beside its key's new state: how actors send to each
// other, wait, and have promises executed. Nothing of it happens before the coordinator has committed all of it.

/** Undefined for an item that was submitted. Keys are those of actors. */
export type KeyOrigin = ComingOrigin | WorkOrigin;

/** That of an item for an actor. */
export type ComingOrigin =
  /** The payload is an event of that actor's. */
  | { readonly kind: "mail"; readonly key: string }
  /** The payload is the event of a timer of its own. */
  | { readonly kind: "timer"; readonly id: string }
  /** The payload is the output of an invocation or a child. */
  | { readonly kind: "outcome"; readonly id: string }
  /** The payload is the message of its failure. */
  | { readonly kind: "failure"; readonly id: string }
  /** The payload is the input of a child, whose key this is. */
  | { readonly kind: "start"; readonly source: string; readonly parent: string };

/** That of an item which an actor has given away: its own key is none of an actor, and has no state. */
export type WorkOrigin =
  /** The payload is the input of the invocation. */
  | { readonly kind: "invocation"; readonly key: string; readonly id: string; readonly source: string }
  /** The payload is what the action is given. */
  | { readonly kind: "action"; readonly key: string; readonly type: string };

export function isWork(origin: KeyOrigin | undefined): origin is WorkOrigin {
  return origin?.kind === "invocation" || origin?.kind === "action";
}

/** Inputs, events and parameters are JSON; an input is empty when there is none. Ids are the actor's own. */
export type Ask =
  /** An invocation or a child is left. */
  | { readonly kind: "stop"; readonly id: string }
  | { readonly kind: "cancel"; readonly id: string }
  /** `to`: the actor that the event is sent to when it is due; the one that asks when undefined. */
  | {
      readonly kind: "timer";
      readonly id: string;
      readonly delayMs: number;
      readonly event: string;
      readonly to: string | undefined;
      readonly onlyIfThere: boolean;
    }
  /** `source`: the names of logic that lead to its own, from that of the type. */
  | ({ readonly kind: "invocation" } & Start)
  | ({ readonly kind: "child" } & Start)
  /** `onlyIfThere`: it is passed over when there is no such actor, or it is final; it begins no actor. */
  | {
      readonly kind: "send";
      readonly to: string;
      readonly event: string;
      readonly onlyIfThere: boolean;
    }
  | { readonly kind: "action"; readonly type: string; readonly params: string };

interface Start {
  readonly id: string;
  readonly source: string;
  readonly input: string;
}

export type AskOf<Kind extends Ask["kind"]> = Extract<Ask, { readonly kind: Kind }>;

/** The key takes nothing more from here on. */
export interface KeyEnd {
  /** JSON, or empty for none: what the actor gets that has started this one. */
  readonly output: string;
  /** It has failed with this, in place of its output. */
  readonly error: string | undefined;
  /** It is forgotten after so long; stays when undefined. */
  readonly idleTtlMs: number | undefined;
}
