// A ledger that is damaged ends its coordinator: nobody may lead by what is not so.
import type { Damage } from "../storage/codec.ts";
import type { Turn } from "./turn/turn.ts";

/**
 * Whoever was followed by another leader and has not noticed yet takes that one's rows for damage. So the turn writes something:
 * its batch then fails by the epoch (C1), and nothing is said.
 */
export function foundDamage(turn: Turn, damage: Damage): void {
  turn.ledgerTouched = true;
  turn.effects.push({ kind: "damaged", damage });
}
