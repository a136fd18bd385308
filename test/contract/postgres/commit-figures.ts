// The figures of a campaign of cut commits.
import type { TakeOutcome } from "../../../src/coordinator/lead/lease.ts";
import type { CommitOutcome } from "../../../src/storage/store.ts";
import type { CutPoint } from "./relay.ts";

export interface CommitFigures {
  leaders: number;
  readonly cuts: Record<CutPoint, number>;
  /** Statements that the server was made to fail. */
  failures: number;
  readonly outcomes: Record<CommitOutcome["kind"], number>;
  /** Batches whose outcome was unknown and that are there. */
  unknownThere: number;
  /** Claims whose commit was cut, by what became of them. */
  readonly cutClaims: Record<TakeOutcome["kind"], number>;
  readonly violations: string[];
}

export function noFigures(): CommitFigures {
  return {
    leaders: 0,
    cuts: { before: 0, request: 0, late: 0, during: 0, answer: 0, after: 0 },
    failures: 0,
    outcomes: { committed: 0, conflict: 0, unknown: 0 },
    unknownThere: 0,
    cutClaims: { taken: 0, beaten: 0, unclear: 0 },
    violations: [],
  };
}

export function sumOf(one: CommitFigures, other: CommitFigures): CommitFigures {
  return {
    leaders: one.leaders + other.leaders,
    cuts: added(one.cuts, other.cuts),
    failures: one.failures + other.failures,
    outcomes: added(one.outcomes, other.outcomes),
    unknownThere: one.unknownThere + other.unknownThere,
    cutClaims: added(one.cutClaims, other.cutClaims),
    violations: [...one.violations, ...other.violations],
  };
}

function added<Key extends string>(
  one: Record<Key, number>,
  other: Record<Key, number>,
): Record<Key, number> {
  const sums = { ...one };
  for (const key in other) sums[key] += other[key];
  return sums;
}
