// Whether the head of a key is wanted when its turn comes. A timer that was cancelled, the end of an invocation that was left, mail to an
// actor that was stopped: each may stand in a mailbox for long after it has become pointless, and must not reach a state that waits for
// a later one of the same name.
import type { PendingItem } from "../ledger/ledger.ts";
import { isInside, sequenceOf } from "../ledger/place.ts";
import type { FailureClass } from "../ledger/records.ts";
import type { Key } from "./key.ts";
import type { KeyTable } from "./key-table.ts";
import { invocationOf } from "./lanes.ts";

/** How an item ends that is not given out. */
export interface Refusal {
  readonly class: FailureClass;
  readonly message: string;
}

const STOPPED: Refusal = { class: "cancelled", message: "what it was for was left before it could begin" };

/** Undefined: the item is wanted. */
export function refusalOf(table: KeyTable, key: Key, item: PendingItem): Refusal | undefined {
  if (key.isLane) return isInvoked(table, key.text) ? undefined : STOPPED;
  const { actor } = key;
  if (actor !== undefined && sequenceOf(item.key) < actor.since) return STOPPED;
  if (actor?.isFinal === true) return isNews(item) ? finalOf(key) : STOPPED;
  return isAwaited(key, item) ? undefined : STOPPED;
}

/** Whether anything of the key may be wanted, whichever item it is. */
export function isAlive(table: KeyTable, { text, isLane, actor }: Key): boolean {
  return isLane ? isInvoked(table, text) : actor?.isGone !== true;
}

/** Actions are wanted in any case. */
function isInvoked(table: KeyTable, lane: string): boolean {
  const invocation = invocationOf(lane);
  if (invocation === undefined) return true;
  const live = table.get(invocation.key)?.actor?.live.get(invocation.id);
  return live?.number === invocation.number && !live.hasEnded;
}

function finalOf({ text }: Key): Refusal {
  return { class: "error", message: `actor_done: ${text} is final, and takes no events any more` };
}

/** Somebody counts on its being taken. */
function isNews({ key: place, origin }: PendingItem): boolean {
  return !isInside(place) || (origin?.kind === "mail" && !origin.isOptional);
}

function isAwaited({ actor }: Key, { origin }: PendingItem): boolean {
  switch (origin?.kind) {
    // One that has failed may be retried when its actor is long gone.
    case "start":
      return actor?.parent !== undefined;
    case "timer":
      return actor?.fired.get(origin.id) === origin.number;
    case "outcome":
    case "failure":
      return actor?.live.get(origin.id)?.number === origin.number;
    default:
      return true;
  }
}
