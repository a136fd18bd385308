// Orders of the room of keys, carried out: items that results have asked for are added, and those that nobody wants any more end, wherever
// they are. In the turn that has brought them about, before anything else moves an item of a key.
import { assert, unreachable } from "../../base/assert.ts";
import type { WorkerId } from "../../base/ids.ts";
import { itemKeyOf } from "../ledger/place.ts";
import { UNTOLD } from "../ledger/records.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";
import { wakeEarly } from "./rows.ts";
import { addItem, endPending, named, settleItem } from "./transitions.ts";

export function carryOut(state: CoordinatorState, turn: Turn): void {
  const { keys, ledger } = state;
  for (let orders = keys.takeOrders(); orders.length > 0; orders = keys.takeOrders()) {
    // A comparison that is under way may find other rows.
    if (state.verification !== undefined) state.verification.isStale = true;
    for (const order of orders)
      switch (order.kind) {
        case "add":
          addItem(ledger, turn, { ...order.item, counts: [] });
          break;
        case "end":
          endPending(ledger, turn, order.item, order.failure);
          break;
        case "drop":
          drop(state, turn, order.id);
          break;
        case "wake":
          wakeEarly(ledger, turn, order.place);
          break;
        default:
          unreachable(order, "order");
      }
  }
}

const NOTHING = new Uint8Array();
const LEFT = "what it was for was left while it ran";

/** Its worker is told; a report that is on its way is of no attempt that is current. */
function drop({ ledger, workers }: CoordinatorState, turn: Turn, id: Uint8Array): void {
  const item = ledger.running.get(itemKeyOf(id));
  assert(item !== undefined, "the head of a key that runs is with a worker");
  const row = workers.get(item.row.context.worker as WorkerId);
  row?.held.delete(item.itemKey);
  const result = { class: "cancelled", message: LEFT, sparesKey: true } as const;
  const untold = { execution: UNTOLD, log: NOTHING, checkpoint: NOTHING };
  settleItem(
    ledger,
    turn,
    item,
    { type: "item.cancelled" },
    { class: "cancelled", message: LEFT, result, ...untold },
  );
  if (row?.session?.isReconciled === true)
    turn.send(row.session.port, { kind: "drop", attempts: [named(item)] });
}
