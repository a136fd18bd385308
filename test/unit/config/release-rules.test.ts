import { expect } from "chai";
import type { ReleaseSpec, StageSpec } from "../../../src/config/release.ts";
import { refusalOfRelease } from "../../../src/config/release-rules.ts";

function stage(share: number): StageSpec {
  return { kind: "items", share, minItems: 1, minTimeMs: 0, maxItems: undefined };
}

const SPEC: ReleaseSpec = {
  alpha: 0.05,
  onBreach: "rollback",
  stages: [stage(0.5), stage(1)],
  metrics: [{ kind: "errors", maxWorse: 0.01 }],
};
const NUMBER = {
  kind: "number",
  name: "score",
  pointer: "/score",
  low: 0,
  high: 1,
  better: "higher",
  maxWorse: 0.1,
} as const;

function keyRefused(changed: Partial<ReleaseSpec>): string | undefined {
  return refusalOfRelease({ ...SPEC, ...changed })?.key;
}

/** A message says such things too, where no file was read. */
describe("the rules of a release", () => {
  it("take what has stages that grow and metrics that can be judged", () => {
    expect(refusalOfRelease(SPEC)).to.equal(undefined);
    expect(keyRefused({ metrics: [] })).to.equal(undefined);
    expect(keyRefused({ metrics: [NUMBER] })).to.equal(undefined);
  });

  it("refuse NaN and an empty range", () => {
    expect(keyRefused({ alpha: NaN })).to.equal("release.alpha");
    expect(keyRefused({ stages: [stage(NaN), stage(1)] })).to.equal("stage[1].items");
    expect(keyRefused({ metrics: [{ kind: "slower", thanMs: 1, maxWorse: NaN }] })).to.equal(
      "metric[1].max_worse",
    );
    expect(keyRefused({ metrics: [{ ...NUMBER, maxWorse: NaN }] })).to.equal("metric[1].max_worse");
    expect(keyRefused({ metrics: [{ ...NUMBER, low: NaN }] })).to.equal("metric[1].range");
    expect(keyRefused({ metrics: [{ ...NUMBER, low: 2 }] })).to.equal("metric[1].range");
  });

  it("refuse no stage, and a last one that is not all items", () => {
    expect(keyRefused({ stages: [] })).to.equal("stage[1].items");
    expect(keyRefused({ stages: [stage(0.1), stage(0.5)] })).to.equal("stage[2].items");
  });

  it("refuse more stages and metrics than have their rows", () => {
    const shares = Array.from({ length: 17 }, (_, at) => stage((at + 1) / 17));
    expect(keyRefused({ stages: shares })).to.equal("stage[17]");
    expect(keyRefused({ stages: shares.slice(1) })).to.equal(undefined);
    const metrics = Array.from({ length: 17 }, (_, at) => ({ ...NUMBER, name: `score${at}` }));
    expect(keyRefused({ metrics })).to.equal("metric[17]");
    expect(keyRefused({ metrics: metrics.slice(1) })).to.equal(undefined);
  });

  it("refuse names that metrics of other kinds have", () => {
    for (const name of ["errors", "slower", "", "a b"])
      expect(keyRefused({ metrics: [{ ...NUMBER, name }] }), name).to.equal("metric[1].name");
  });
});
