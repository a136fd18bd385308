// The door between the ledger and the room of keys: all that the ledger knows of it (docs/adr/0052). The ledger says what becomes of an
// item that has a key, and asks which one may be given out next; the room decides what follows what within a key. Places are opaque to
// the room: it compares them and stores them.
import type { WorkerId } from "../../base/ids.ts";
import type { Asks } from "./asks.ts";
import type { FailureClass, ItemRecord } from "./records.ts";
import type { Place } from "./place.ts";
import type { Taker } from "./shelf.ts";

/** The state of its key as a success has left it. */
export interface LeftState {
  /** The commit of the state that the attempt began with; 0: there was none. */
  readonly basedOn: number;
  readonly state: Uint8Array | "kept" | "removed";
  /** The session that reported it and is told of its commit; undefined when none is. */
  readonly heardBy?: object | undefined;
  /** The version of the plugin's states; 0, as unless it is said: these have none. */
  readonly stateVersion?: number;
  /** The asks of an actor's result beside it. */
  readonly asks?: Asks | undefined;
}

/** Why a result cannot be recorded, in words, as an error of its attempt. `isBreach`: a worker of ours would not have reported it. */
export interface Fault {
  readonly reason: string;
  readonly isBreach: boolean;
}

/** How an item of a key became final. */
export type KeyedEnd =
  /** `commit`: one more than the number of the record of completions that it stands in. */
  | {
      readonly kind: "done";
      readonly left: LeftState | undefined;
      readonly commit: number;
      readonly output: Uint8Array;
    }
  /** `sparesKey`: nothing behind it stands on it, so its key does not park. */
  | {
      readonly kind: "failed";
      readonly class: FailureClass;
      readonly message: string;
      readonly sparesKey: boolean;
    };

/** A wish of the room for an item: carried out in the same turn, in order, before anything else moves one. */
export type Order<Item> =
  /** One that a result has asked for. */
  | { readonly kind: "add"; readonly item: ItemRecord & { readonly priority: number } }
  /** A pending one is final: nobody wants it any more. */
  | {
      readonly kind: "end";
      readonly item: Item;
      readonly failure: { readonly class: FailureClass; readonly message: string };
    }
  /** The same of one that a worker has. */
  | { readonly kind: "drop"; readonly id: Uint8Array }
  /** One that waits before it may be given out again: it need not, to come to its end. */
  | { readonly kind: "wake"; readonly place: Place };

export interface KeyRoom<Item> {
  /** An item was added, behind all that its key has. */
  arrived(place: Place, item: Pick<ItemRecord, "id" | "payload" | "key" | "origin">): void;
  /** A worker has it. `next` and `take` name no other one of its key before it is back or final. */
  assigned(place: Place): void;
  /** It may be given out again. */
  returned(place: Place): void;
  /** It waits before that. */
  delayed(place: Place): void;
  /** It has waited for long enough, or for nothing, and stands among what was returned. */
  due(place: Place): void;
  /** Why what an attempt says of its key's state, and asks for, cannot be committed; undefined when it can. */
  admits(place: Place, left: LeftState | undefined): Fault | undefined;
  /** Returns the place of the item of its key that has succeeded last before it, if there is one. */
  settled(place: Place, end: KeyedEnd): Place | undefined;
  /** An operator lets a failed item be tried again. */
  takenBack(place: Place, key: string, from: FailureClass): void;
  /** Those since it was asked last. Each may bring about more. */
  takeOrders(): readonly Order<Item>[];

  /** The next item that this worker may have beside others; it stays until it is taken. */
  next(taker: Taker): Item | undefined;
  /** The same for a worker that is tried. */
  nextUntried(taker: Taker): Item | undefined;
  /**
   * Items that any worker may have are for the first one alone that follows their partition on the ring and has a slot free; a slot is
   * lent once. Undefined when nothing is lent. The function takes back what is left, for any worker again: false when all was taken.
   */
  lend(freeSlots: () => Map<WorkerId, number>): (() => boolean) | undefined;
  /** It is about to be assigned. */
  take(place: Place): void;
  /** Items that are pending and neither wait before they may go out nor stand on the shelf of those that run alone. */
  readonly pending: number;
  /** Those of them that may be given out now: at most one of each key. */
  readonly ready: number;
  /** Whether there is, or may be in the store, an item that may be given out. */
  readonly hasOpen: boolean;
}
