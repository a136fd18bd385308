// An operator's control of failed items and of certificates. Every call may be repeated.
import type { Client } from "@connectrpc/connect";
import type { WorkerId } from "../base/ids.ts";
import type { OperatorService, RevokeResponse } from "../gen/rollout/v1/run_pb.ts";
import type { Item } from "./items.ts";
import type { Plain } from "./operator-message.ts";
import { statusOf } from "./run-status.ts";

export interface RetryChoice {
  /** Only failures of this class; without it of every class. */
  readonly failureClass?: string | undefined;
  /** Items by their 64 digits; none: all that failed. */
  readonly items: readonly string[];
}

export interface Retried {
  readonly retried: number;
  /** Named items that have not failed, or not with that class. */
  readonly skipped: number;
}

/** As many ids as fit a message with room to spare. */
const ITEMS_PER_CALL = 900;

/** Retries failed items, with new budgets. Throws the transport's rows; what was retried by then stays so. */
export async function retryItems(
  calls: Client<typeof OperatorService>,
  { failureClass = "", items }: RetryChoice,
): Promise<Retried> {
  let total: Retried = { retried: 0, skipped: 0 };
  for (const batch of batchesOf(items)) {
    let after = "";
    do {
      const answer = await calls.retry({ failureClass, items: batch, after });
      total = { retried: total.retried + answer.retried, skipped: total.skipped + answer.skipped };
      after = answer.after;
    } while (after !== "");
  }
  return total;
}

/** Counts what `retryItems` would do now; changes nothing. No items: all that failed. Throws the transport's rows. */
export async function foreseeRetry(
  calls: Client<typeof OperatorService>,
  failureClass: string | undefined,
  items: readonly Item[],
): Promise<Retried> {
  if (items.length === 0) {
    const { failed, failedByClass } = statusOf(await calls.getRun({}));
    return { retried: failureClass === undefined ? failed : (failedByClass[failureClass] ?? 0), skipped: 0 };
  }
  const distinct = new Map(items.map((item) => [item.item, item]));
  const retried = [...distinct.values()].filter(
    ({ state, result }) =>
      state === "failed" && (failureClass === undefined || result?.error?.class === failureClass),
  ).length;
  return { retried, skipped: items.length - retried };
}

/** One empty batch stands for everything that failed. */
function batchesOf(items: readonly string[]): string[][] {
  const count = Math.max(1, Math.ceil(items.length / ITEMS_PER_CALL));
  return Array.from({ length: count }, (_, at) =>
    items.slice(at * ITEMS_PER_CALL, (at + 1) * ITEMS_PER_CALL),
  );
}

export interface RevocationRequest {
  /** The id of a worker, a bundle or an operator. */
  readonly id: WorkerId;
  /** Also the workers that have joined by it, if it is a bundle's. */
  readonly withWorkers: boolean;
}

/** An answer to `Revoke`: no call of the bearer is taken any more, now and after a restart. */
export type Revocation = Plain<RevokeResponse>;
