// Numbers that peers send in 64 bits, and that this program counts on from, compares and stores as its own.
//
// Keeps true: what is let in is exact, and stays exact however long the coordinator counts on from it. A number that no record
// could hold would leave a row behind that no leader can read.

/** Far below the last number that is exact, and far above what anybody counts to. */
export const COUNT_MAX = 2 ** 52;

/** The number; undefined when it is over `COUNT_MAX`, or as far below 0. */
export function countFrom(wire: bigint): number | undefined {
  const count = Number(wire);
  return Math.abs(count) <= COUNT_MAX ? count : undefined;
}
