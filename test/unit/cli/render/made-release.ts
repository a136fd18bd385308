// A release, as who looks at a run sees it.
import type { ReleaseSummary } from "../../../../src/client/releases.ts";

export function madeRelease(change: Partial<ReleaseSummary> = {}): ReleaseSummary {
  return {
    release: "01R00000000000000000000001",
    ...{ plugin: "words", stableVersion: "1", candidateVersion: "2" },
    ...{ state: "rolling", reason: "too few items", stage: 1, stages: 3, share: "10%" },
    ...{ createdAtMs: 1, endedAtMs: undefined },
    ...change,
  };
}
