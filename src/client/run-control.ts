// An operator's control of a run. Every call may be repeated.
import { createClient } from "@connectrpc/connect";
import type { Transport } from "@connectrpc/connect";
import type { WorkerId } from "../base/ids.ts";
import { ulidToBytes } from "../base/ids.ts";
import { RunService } from "../gen/rollout/v1/run_pb.ts";
import type { Item } from "./items.ts";
import { readRunStatus } from "./run-status.ts";

/** Nothing more is given out until it is resumed; what executes goes on. Throws the transport's rows. */
export async function pauseRun(transport: Transport, reason: string): Promise<void> {
  await createClient(RunService, transport).pause({ reason });
}

/** Throws the transport's rows. */
export async function resumeRun(transport: Transport): Promise<void> {
  await createClient(RunService, transport).resume({});
}

/** For good: what executes is killed and what waits never starts. Throws the transport's rows. */
export async function cancelRun(transport: Transport): Promise<void> {
  await createClient(RunService, transport).cancel({});
}

export interface RetryChoice {
  /** Only failures of this class; without it of every class. */
  readonly failureClass?: string | undefined;
  /** Ids of items; none: all that failed. */
  readonly items: readonly Uint8Array[];
}

export interface Retried {
  readonly retried: number;
  /** Named items that have not failed, or not with that class. */
  readonly skipped: number;
}

/** As many ids as fit a message with room to spare. */
const ITEMS_PER_CALL = 1_000;

/** Takes failed items back, with new budgets. Throws the transport's rows; what was taken back by then stays so. */
export async function retryItems(transport: Transport, choice: RetryChoice): Promise<Retried> {
  const client = createClient(RunService, transport);
  const failureClass = choice.failureClass ?? "";
  let total: Retried = { retried: 0, skipped: 0 };
  for (const itemIds of batchesOf(choice.items)) {
    let after = "";
    do {
      const answer = await client.retry({ failureClass, itemIds, after });
      total = {
        retried: total.retried + Number(answer.retried),
        skipped: total.skipped + Number(answer.skipped),
      };
      after = answer.after;
    } while (after !== "");
  }
  return total;
}

/** Counts what `retryItems` would do now; changes nothing. No items: all that failed. Throws the transport's rows. */
export async function foreseeRetry(
  transport: Transport,
  failureClass: string | undefined,
  items: readonly Item[],
): Promise<Retried> {
  if (items.length === 0) {
    const { failed, failedByClass } = await readRunStatus(transport);
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
function batchesOf(items: readonly Uint8Array[]): Uint8Array[][] {
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

export interface Revocation {
  readonly isWorker: boolean;
  /** Workers that have joined by a bundle of this id. */
  readonly enrolled: number;
  readonly workersRevoked: number;
}

/**
 * Makes a certificate good for nothing: resolves when no call of the bearer is taken any more, now and after a restart.
 * Idempotent. Throws the transport's rows.
 */
export async function revokeBearer(
  transport: Transport,
  { id, withWorkers }: RevocationRequest,
): Promise<Revocation> {
  const client = createClient(RunService, transport);
  const { isWorker, enrolled, workersRevoked } = await client.revoke({
    bearerId: ulidToBytes(id),
    withWorkers,
  });
  return { isWorker, enrolled, workersRevoked };
}
