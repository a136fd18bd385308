import { expect } from "chai";
import { releaseOfFlags } from "../../../src/config/release-file.ts";
import type { ReleaseSpec } from "../../../src/config/release.ts";
import { prospectOf } from "../../../src/config/release-prospect.ts";
import type { ReleaseFacts } from "../../../src/config/release-prospect.ts";

function specOf(stages?: string, maxWorse?: string): ReleaseSpec {
  return releaseOfFlags({ plugin: "v2.toml", stages, maxWorse }, "/").spec;
}

function facts(itemsLeft: number, more: Partial<ReleaseFacts> = {}): ReleaseFacts {
  return { itemsLeft, readyWorkers: 4, attempts: 0, failed: 0, ...more };
}

const SCORE = {
  kind: "number",
  name: "score",
  pointer: "/score",
  low: 0,
  high: 10,
  better: "higher",
  maxWorse: 0.5,
} as const;

describe("the prospect of a release", () => {
  it("says how many items each stage tries of those that are left", () => {
    expect(prospectOf(specOf(), facts(20_000)).stages).to.deep.equal([
      { tries: 100, isEnough: true },
      { tries: 100, isEnough: true },
      { tries: 4_500, isEnough: true },
    ]);
    expect(prospectOf(specOf(), facts(2_000)).stages).to.deep.equal([
      { tries: 20, isEnough: false },
      { tries: 0, isEnough: false },
      { tries: 0, isEnough: false },
    ]);
  });

  it("takes workers for their part of the ready ones", () => {
    const spec = specOf("50%");
    const [, all] = spec.stages;
    const one = { kind: "workers", workers: 1, minItems: 100, minTimeMs: 0, maxItems: undefined } as const;
    const stages = all === undefined ? [] : [one, { ...one, workers: 3 }, all];
    expect(prospectOf({ ...spec, stages }, facts(4_400)).stages).to.deep.equal([
      { tries: 100, isEnough: true },
      { tries: 3_000, isEnough: true },
    ]);
  });

  it("knows that whole releases need as many items as simulated ones have needed", () => {
    const needed = (maxWorse: string): number | undefined =>
      prospectOf(specOf(undefined, maxWorse), facts(0)).metrics[0]?.proofItems;
    expect(needed("1%")).to.be.within(25_000, 28_000);
    expect(needed("2%")).to.be.within(13_500, 15_500);
    expect(needed("5%")).to.be.within(11_000, 12_500);
    expect(needed("0%")).to.equal(undefined);
  });

  it("says whether that many are left, and which difference shows", () => {
    const [few, many] = [prospectOf(specOf(), facts(20_000)), prospectOf(specOf(), facts(100_000))];
    expect([few.isProvable, many.isProvable]).to.deep.equal([false, true]);
    expect(few.metrics[0]?.shows).to.be.within(0.02, 0.04);
    expect(many.metrics[0]?.shows).to.be.within(0.01, 0.02);
    expect(prospectOf(specOf(), facts(99)).metrics[0]?.shows).to.equal(undefined);
    // Stages before the last one show what is worse by far.
    expect(prospectOf(specOf(), facts(10_000)).metrics[0]?.shows).to.be.within(0.05, 0.3);
  });

  it("goes by the errors that are known, once there are enough of them", () => {
    const assumed = (attempts: number, failed: number): number | undefined =>
      prospectOf(specOf(), facts(1_000, { attempts, failed })).metrics[0]?.assumed;
    expect(assumed(99, 50)).to.equal(0.01);
    expect(assumed(1_000, 200)).to.equal(0.2);
    expect(assumed(1_000, 0)).to.equal(0);
  });

  it("is in the unit of a number", () => {
    const spec = { ...specOf("50%"), metrics: [SCORE] };
    const [metric] = prospectOf(spec, facts(10_000)).metrics;
    expect(metric?.assumed).to.equal(1.5);
    expect(metric?.shows).to.be.within(0.5, 1.2);
    expect(metric?.proofItems).to.be.within(900, 1_500);
  });
});
