// The replay, tried by a coordinator that follows: one that could not read the ledger is known before it is needed. Nothing of it is
// kept, and nothing is written.
import type { Clock } from "../base/clock.ts";
import type { Epoch } from "../base/ids.ts";
import type { Store } from "../storage/store.ts";
import { checkLedgerCharts } from "./ledger-charts.ts";
import { replay } from "./replay.ts";
import type { ReplayOptions } from "./replay.ts";

export interface RehearsalOptions extends Omit<ReplayOptions, "epoch" | "nowMs"> {
  readonly clock: Clock;
}

/** The epoch of the state that is replayed, which nobody uses. */
const NO_EPOCH = 0 as Epoch;

/** Undefined where the store cannot be read as it is at one moment: while others write, its rows do not fit each other. */
export function rehearse(store: Store, options: RehearsalOptions): Promise<void> | undefined {
  return store.freeze === undefined ? undefined : replayFrozen(store.freeze(), options);
}

async function replayFrozen(
  freezing: Promise<Store>,
  { clock, ...options }: RehearsalOptions,
): Promise<void> {
  const frozen = await freezing;
  try {
    // Rows of other charts are read when they are rewritten, which is for a leader.
    if ((await checkLedgerCharts(frozen)) === "to be adopted") return;
    await replay(frozen, { ...options, epoch: NO_EPOCH, nowMs: clock.monotonicMs() });
  } finally {
    await frozen.close();
  }
}
