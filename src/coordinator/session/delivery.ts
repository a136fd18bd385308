// Results on their way into the ledger. A batch is acknowledged when each of its results is decided and on stable storage (C10):
// most are at once, a late one when its item has been looked up. Acknowledgements are cumulative, so a batch waits for those
// before it; and what is not decided is counted against its sender's budget at the edge, also when its stream has ended (C8).
import type { Delivery, SessionInput } from "../turn/session-frame.ts";
import type { Turn } from "../turn/turn.ts";

export function openDelivery(
  line: Delivery[],
  { port, settled }: Pick<SessionInput, "port" | "settled">,
  number: number,
): Delivery {
  const delivery = { port, number, line, undecided: 0, settled };
  line.push(delivery);
  return delivery;
}

/** Tells the edge, once this turn is committed, that the input is not in memory any more. */
export function settle({ settled }: { readonly settled?: (() => void) | undefined }, turn: Turn): void {
  if (settled !== undefined) turn.answer(settled, undefined);
}

/** Acknowledges what is decided by now, up to the first that is not. */
export function acknowledge(turn: Turn, line: Delivery[]): void {
  let last: Delivery | undefined;
  while (line[0]?.undecided === 0) last = line.shift();
  if (last === undefined) return;
  turn.requireSync();
  turn.send(last.port, { kind: "resultsAcknowledged", number: last.number });
}
