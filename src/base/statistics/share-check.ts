// Whether attempts went to the two versions as often as the share of a stage says: if not, something else than chance chose them, and
// a comparison would compare that.
import { rateBounds } from "./rate-sequence.ts";

/** So seldom is a share that is right called wrong, however often one looks. */
const ALPHA = 0.001;

/** Judged attempts that were given out to each version; `share` is the candidate's, between 0 and 1. */
export function fitsShare(
  given: { readonly stable: number; readonly candidate: number },
  share: number,
): boolean {
  const { lower, upper } = rateBounds(
    { kind: "rate", n: given.stable + given.candidate, k: given.candidate },
    ALPHA,
  );
  return share >= lower && share <= upper;
}
