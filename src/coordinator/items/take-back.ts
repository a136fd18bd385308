// Failed items that an operator takes back: the only way in which a final item changes (C9).
import { assert } from "../../base/assert.ts";
import type { Effect as ChartEffect } from "../../runtime/compile.ts";
import { FAILED_PREFIX } from "../../storage/keys.ts";
import type { Turn } from "../turn/turn.ts";
import type { FailedItem, Ledger } from "../ledger/ledger.ts";
import { itemKeyOf } from "../ledger/item-id.ts";
import { budgetsOf, itemChart } from "./transitions.ts";
import { queueReturned } from "./pending-rows.ts";
import { dropRow } from "./segment-rows.ts";

const FAILED = itemChart.indexOf("Failed");

/** To its old place with new budgets; its attempts go on counting. `failed` is as it stands in the store. */
export function takeBackFailed(ledger: Ledger, turn: Turn, failed: FailedItem): void {
  assert(FAILED !== undefined, "the item's chart has a state Failed");
  const { context } = itemChart.initial(ledger.budgets);
  const before = { state: FAILED, context: { ...context, attempt: failed.attempt, isApart: failed.isApart } };
  const asked: ChartEffect[] = [];
  const after = itemChart.step(before, { type: "item.retried" }, asked);
  assert(after !== before && asked.length === 1, "a failed item that is retried is queued");
  ledger.lookups.touch(itemKeyOf(failed.id));
  dropRow(ledger, turn, "failed", { key: `${FAILED_PREFIX}${failed.place}`, checksum: failed.checksum });
  ledger.tally.isTakenBack(failed.class);
  ledger.failureMessages.takenBack(failed);
  queueReturned(ledger, turn, failed.place, budgetsOf(after));
}
