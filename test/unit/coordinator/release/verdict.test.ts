// The verdict on made counts: each demand alone keeps a stage from being promoted, and is named.
import { expect } from "chai";
import { addEnd, badnessOf, emptyStage } from "../../../../src/coordinator/release/counts.ts";
import type { StageCounts } from "../../../../src/coordinator/release/counts.ts";
import type { Ended } from "../../../../src/coordinator/release/ports.ts";
import type { Terms } from "../../../../src/coordinator/release/release.ts";
import { armAlpha, judge } from "../../../../src/coordinator/release/verdict.ts";
import type { Judged, Verdict } from "../../../../src/coordinator/release/verdict.ts";
import { ALL, share } from "./release-run.ts";

const terms: Terms = {
  ...{ alpha: 0.05, onBreach: "rollback" },
  stages: [share(0.5, { minItems: 100, minTimeMs: 10_000, maxItems: 400 }), share(0.8), ALL],
  metrics: [
    { kind: "errors", maxWorse: 0.1 },
    { kind: "slower", thanMs: 1_000, maxWorse: 0.2 },
    {
      ...{
        kind: "number",
        name: "score",
        pointer: "/score",
        low: 0,
        high: 10,
        better: "higher",
      },
      maxWorse: 2,
    },
  ],
};

const SUCCESS: Ended = {
  class: "success",
  isCounted: false,
  durationMs: 500,
  measures: [7],
};

/** So many of each arm end like this. */
function add(
  counts: StageCounts,
  arm: "stable" | "candidate",
  many: number,
  parts: Partial<Ended> = {},
): StageCounts {
  const ended = { ...SUCCESS, ...parts };
  for (let at = 0; at < many; at++) {
    counts[arm].given++;
    addEnd(counts[arm], terms.metrics, { ...ended, isBad: badnessOf(ended) === true }, armAlpha(terms));
  }
  counts.givenAtEnough = counts.candidate.judged >= 100 ? counts.candidate.given : null;
  return counts;
}

function fair(many = 200): StageCounts {
  return add(add(emptyStage(terms.metrics), "stable", many), "candidate", many);
}

function verdict(counts: StageCounts, parts: Partial<Judged> = {}): Verdict {
  const crew = (): ReturnType<Judged["crew"]> => ({
    withCandidate: 2,
    ready: 2,
  });
  return judge({ terms, stage: 1, counts, openForMs: 10_000, crew, ...parts });
}

describe("the verdict on a stage", () => {
  it("promotes what has all that is asked for", () => {
    expect(verdict(fair()).kind).to.equal("promote");
  });

  it("holds until enough items are judged, and for long enough", () => {
    expect(verdict(fair(99))).to.deep.equal({
      kind: "hold",
      reason: "99 of 100 items of the candidate are judged",
    });
    expect(verdict(fair(), { openForMs: 9_999 })).to.deep.equal({
      kind: "hold",
      reason: "the stage is open for 9 s, and is to be for 10 s",
    });
  });

  it("holds while too many of the first attempts have not ended: slow ones hide", () => {
    const counts = fair();
    counts.early = 10;
    expect(verdict(counts).kind).to.equal("promote");
    counts.early = 11;
    expect(verdict(counts)).to.deep.equal({
      kind: "hold",
      reason: "11 of the first 200 attempts of the candidate have not ended",
    });
  });

  it("holds where attempts do not fit the share", () => {
    const counts = add(fair(), "stable", 200);
    expect(verdict(counts).reason).to.equal(
      "200 of 600 attempts went to the candidate, which does not fit its share",
    );
  });

  for (const arm of ["stable", "candidate"] as const)
    it(`holds while more than 5 % of the successes of ${arm} have no number`, () => {
      for (const missing of ["missing", "not a number", NaN] as const) {
        const counts = add(fair(), arm, 12, { measures: [missing] });
        expect(verdict(counts)).to.deep.equal({
          kind: "hold",
          reason: `12 of 212 successes of ${arm} have no number for score`,
        });
      }
    });

  it("clips a number that is out of its range, and says so", () => {
    const counts = add(fair(), "candidate", 1, { measures: [1e9] });
    const metric = counts.candidate.metrics[2];
    expect([metric?.clipped, metric?.missing, metric?.counts.n]).to.deep.equal([1, 0, 201]);
  });

  it("breaches by each metric, and waits for no number of items", () => {
    const harms: readonly Partial<Ended>[] = [
      { class: "error" },
      { durationMs: 5_000 },
      { class: "timeout" },
      { measures: [0] },
    ];
    const names = harms.map((harm) => {
      const { kind, reason } = verdict(
        add(add(emptyStage(terms.metrics), "stable", 90), "candidate", 90, harm),
      );
      expect(kind).to.equal("breach");
      return reason.slice(0, reason.indexOf(":"));
    });
    expect(names).to.deep.equal(["errors", "slower", "errors", "score"]);
  });

  it("gives up after so many items without a verdict", () => {
    const counts = add(fair(200), "stable", 400);
    expect(verdict(counts).kind).to.equal("hold");
    expect(verdict(add(counts, "candidate", 200)).kind).to.equal("limit");
  });

  it("gives all items to a candidate that is proven by every metric and on every ready worker", () => {
    const last = { stage: 2 };
    const few = add(add(emptyStage(terms.metrics), "stable", 10), "candidate", 40);
    expect(verdict(few, last).reason).to.match(
      /^it is not proven for all by errors: the candidate may be worse by /,
    );
    const many = add(add(emptyStage(terms.metrics), "stable", 600), "candidate", 2_400);
    expect(verdict(many, last).kind).to.equal("promote");
    const crew = () => ({ withCandidate: 1, ready: 2 });
    expect(verdict(many, { ...last, crew }).reason).to.equal(
      "1 of 2 ready workers have the candidate, and all have to",
    );
  });

  it("counts a success, a failure and a counted loss, and nothing else", () => {
    const says = (how: Ended["class"], isCounted = true): boolean | undefined =>
      badnessOf({ class: how, isCounted });
    expect(says("success")).to.equal(false);
    for (const bad of ["error", "timeout", "crash", "crash_shared", "too_large", "lost"] as const)
      expect(says(bad), bad).to.equal(true);
    for (const none of ["preempted", "stolen", "fenced", "cancelled"] as const)
      expect(says(none), none).to.equal(undefined);
    expect(says("lost", false), "lost with many").to.equal(undefined);
  });
});
