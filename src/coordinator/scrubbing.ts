// The scrub of the ledger, paced: a page for each scan for failures, so that it costs less than a percent of a core whatever there is
// to read, and ends with the loop that asks.
import type { Input } from "./turn/input.ts";
import { foundDamage } from "./ledger-damage.ts";
import type { CoordinatorState } from "./turn/state.ts";
import type { Turn } from "./turn/turn.ts";

export function goOnScrubbing({ ledger }: CoordinatorState, turn: Turn): void {
  const request = ledger.scrub.wants();
  if (request !== undefined) turn.effects.push({ kind: "scrubLedger", request });
}

export function onScrubbed(
  { ledger }: CoordinatorState,
  turn: Turn,
  { page }: Extract<Input, { kind: "scrubbed" }>,
): void {
  const damage = ledger.scrub.take(page, ledger.tally);
  if (damage !== undefined) foundDamage(turn, damage);
}
