// How attempts end, in the words of their items' history: what a worker reported, or what its silence, its leaving or its handing
// back says.
import type { AttemptEnd } from "../ledger/ledger.ts";
import type { AttemptClass } from "../ledger/attempt-records.ts";
import { UNTOLD } from "../ledger/records.ts";
import type { Report } from "../turn/session-frame.ts";

const NOTHING: Uint8Array = new Uint8Array();

export function endOf({
  outcome,
  execution = UNTOLD,
  log = NOTHING,
  checkpoint = NOTHING,
}: Report): AttemptEnd {
  const message = "message" in outcome ? outcome.message : "";
  return { class: outcome.kind, message, execution, log, checkpoint };
}

/** An end that no worker has reported. */
function untoldEnd(as: AttemptClass, message: string): AttemptEnd {
  return { class: as, message, execution: UNTOLD, log: NOTHING, checkpoint: NOTHING };
}

export const ENDS = {
  stolen: untoldEnd("stolen", "handed back before it started: another worker had nothing to do"),
  handedBack: untoldEnd("preempted", "handed back before it started"),
  overdue: untoldEnd("stolen", "its worker was asked to hand it back, and did not answer"),
  left: untoldEnd("preempted", "its worker left, or never received it"),
  preempted: untoldEnd("preempted", "its worker was leaving, and was not heard of again"),
  lost: untoldEnd("lost", "its worker fell silent while running it"),
  lostUnstarted: untoldEnd("lost", "its worker fell silent before it started"),
  cancelled: untoldEnd("cancelled", "the run was cancelled"),
} as const;
