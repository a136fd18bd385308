// Results of items with keys, before anything of them is recorded: a success whose state or whose asks cannot be committed is an error of
// its attempt. One that no worker of ours would have reported leaves a line for the audit, and costs its own item and nothing else.
import type { WorkerId } from "../../base/ids.ts";
import type { RunningItem } from "../ledger/ledger.ts";
import { isKeyed, itemDigits } from "../ledger/place.ts";
import type { Report, ReportedOutcome } from "../turn/session-frame.ts";
import type { CoordinatorState } from "../turn/state.ts";
import type { Turn } from "../turn/turn.ts";

/** The end of an attempt that began. */
type EndOutcome = Exclude<ReportedOutcome, { readonly kind: "state_missing" }>;
export type EndReport = Report & { readonly outcome: EndOutcome };

/** Nothing of what is refused is recorded, and another attempt begins with the right state. `item`: the one that the worker has. */
export function admitted(
  { ledger }: Pick<CoordinatorState, "ledger">,
  turn: Turn,
  item: RunningItem | undefined,
  { worker, ...report }: EndReport & { readonly worker: WorkerId },
): EndReport {
  const { outcome } = report;
  if (item === undefined) return report;
  if (outcome.kind === "too_large" && outcome.isBreach === true) audit(turn, worker, item, outcome.message);
  if (outcome.kind !== "success" || !isKeyed(item.place)) return report;
  const fault = ledger.keys.admits(item.place, outcome.keyed);
  if (fault === undefined) return report;
  const { reason: message, isBreach } = fault;
  if (isBreach) audit(turn, worker, item, message);
  return { ...report, outcome: { kind: "error", message } };
}

/** As the transport tells of what it refuses. An attempt leaves one at most, and is charged. */
function audit(turn: Turn, worker: WorkerId, { id }: RunningItem, detail: string): void {
  const who = { role: "worker", id: worker, item: itemDigits(id) };
  turn.warn("refused", { audit: true, reason: "result_not_its_own", ...who, detail });
}
