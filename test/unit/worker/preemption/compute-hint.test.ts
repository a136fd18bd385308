import { expect } from "chai";
import { clampLead, drainDeadlineMs } from "../../../../src/worker/preemption/compute-hint.ts";
import type { Cloud, DrainHint } from "../../../../src/worker/preemption/compute-hint.ts";

const preemption = (cause: Cloud, leadMs: number | undefined): DrainHint => ({
  kind: "preemption",
  cause,
  leadMs,
  noticedAtMs: 1_000,
});

const budget = (hint: DrainHint): number => drainDeadlineMs(hint) - hint.noticedAtMs;

describe("drain deadline", () => {
  const cases: readonly { cause: Cloud; leadMs: number | undefined; budgetMs: number }[] = [
    { cause: "aws", leadMs: 120_000, budgetMs: 60_000 },
    { cause: "aws", leadMs: undefined, budgetMs: 60_000 },
    { cause: "aws", leadMs: 63_000, budgetMs: 60_000 },
    { cause: "aws", leadMs: 62_000, budgetMs: 59_000 },
    { cause: "aws", leadMs: 10_000, budgetMs: 7_000 },
    { cause: "aws", leadMs: 3_000, budgetMs: 0 },
    { cause: "aws", leadMs: 0, budgetMs: 0 },
    { cause: "gcp", leadMs: 30_000, budgetMs: 15_000 },
    { cause: "gcp", leadMs: undefined, budgetMs: 15_000 },
    { cause: "gcp", leadMs: 12_000, budgetMs: 9_000 },
    { cause: "gcp", leadMs: 1, budgetMs: 0 },
  ];
  for (const { cause, leadMs, budgetMs } of cases)
    it(`is ${budgetMs} ms after a notice of ${cause} with a lead of ${leadMs ?? "no known"} ms`, () =>
      expect(budget(preemption(cause, leadMs))).to.equal(budgetMs));

  it("is 15 s after a request that names none, and what it names otherwise", () => {
    for (const cause of ["sigterm", "operator"] as const) {
      const request = { kind: "request", cause, noticedAtMs: 5 } as const;
      expect(drainDeadlineMs({ ...request, targetMs: undefined })).to.equal(15_005);
      expect(drainDeadlineMs({ ...request, targetMs: 90_000 })).to.equal(90_005);
    }
  });
});

describe("a lead", () => {
  it("is neither in the past nor longer than what the cloud promises", () => {
    expect(clampLead("aws", -5_000)).to.equal(0);
    expect(clampLead("aws", 119_000)).to.equal(119_000);
    expect(clampLead("aws", 3_600_000)).to.equal(120_000);
    expect(clampLead("gcp", 120_000)).to.equal(30_000);
  });
});
