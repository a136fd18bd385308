// The version that an attempt is of, and the attempts of a release's candidate, which cost their items nothing.
import type { AttemptKey, ItemEvent } from "../../../machines/work-item.ts";
import type { AttemptEnd, Ledger, RunningItem } from "../ledger/ledger.ts";
import { UNTOLD } from "../ledger/records.ts";

/** The version that an assignment names, empty for the worker's own; and the release whose candidate it is, empty when it is none's. */
export interface Stamp {
  readonly version: string;
  readonly trial: string;
}

/** Assignments of a run without releases. */
export const OWN_VERSION: Stamp = { version: "", trial: "" };

/** An event that tells a running item what became of its attempt. */
export type SettlingEvent = Exclude<ItemEvent, { type: "item.assigned" | "item.retried" }>;

/** An end of an attempt that costs its item something, or would. */
function isCharged(event: SettlingEvent): event is SettlingEvent & AttemptKey {
  switch (event.type) {
    case "item.erred":
    case "item.tooLarge":
    case "item.crashedTogether":
      return true;
    case "item.lost":
      return event.counted;
    default:
      return false;
  }
}

/** The end of a trial costs its item nothing: any that would is this one. */
export function uncharged({ row }: RunningItem, event: SettlingEvent): SettlingEvent {
  if (row.context.trial === "" || !isCharged(event)) return event;
  const { worker, incarnation, attempt, epoch } = event;
  return { type: "item.erredOnTrial", worker, incarnation, attempt, epoch };
}

/** The room of releases hears how an attempt has ended that it has marked, or that was of a candidate. */
export function tellTrials(
  { trials }: Pick<Ledger, "trials">,
  { ticket, row }: RunningItem,
  told: SettlingEvent,
  { class: how, execution, measures = [] }: AttemptEnd,
): void {
  const { trial, worker } = row.context;
  const isCounted = told.type === "item.lost" && told.counted;
  const durationMs = execution === UNTOLD ? undefined : execution.durationMs;
  trials.ended({ ticket, trial, worker }, { class: how, isCounted, durationMs, measures });
}
