import { expect } from "chai";
import { seededRandom } from "../../../src/base/random.ts";
import { PaceMeter } from "../../../src/client/progress.ts";
import type { Pace, RunCounts } from "../../../src/client/progress.ts";

function counts(done: number, total: number, more: Partial<RunCounts> = {}): RunCounts {
  const running = Math.min(4, total - done);
  return { pending: total - done - running, delayed: 0, running, done, failed: 0, ...more };
}

/** The pace after so many seconds of looking every half second at what `doneAt` says. */
function paceAfter(seconds: number, total: number, doneAt: (atMs: number) => number): Pace {
  const meter = new PaceMeter();
  for (let atMs = 0; atMs <= seconds * 1_000; atMs += 500)
    meter.take(atMs, counts(Math.min(total, Math.floor(doneAt(atMs))), total));
  return meter.pace(seconds * 1_000);
}

function left(pace: Pace): { readonly atLeastMs: number; readonly atMostMs: number } {
  if (pace.kind !== "steady") throw new Error(`the pace is ${pace.kind}`);
  return { atLeastMs: pace.left.atLeastMs, atMostMs: pace.left.atMostMs ?? Infinity };
}

describe("the pace of a run", () => {
  it("is unknown before anything was read, and before there is evidence", () => {
    expect(new PaceMeter().pace(0)).to.deep.equal({ kind: "unknown" });
    expect(paceAfter(20, 100, () => 4)).to.deep.equal({ kind: "unknown" });
    expect(
      paceAfter(1, 100, (atMs) => atMs / 10),
      "of one second",
    ).to.deep.equal({ kind: "unknown" });
  });

  it("is the rate of a recent window: what was long ago has no part in it", () => {
    const pace = paceAfter(120, 100_000, (atMs) =>
      atMs < 60_000 ? atMs / 1_000 : 60 + (atMs - 60_000) / 10,
    );
    expect(pace).to.have.property("perSecond").within(99, 101);
  });

  it("reaches back for slow items until enough of them were seen", () => {
    const pace = paceAfter(600, 1_000, (atMs) => atMs / 10_000);
    expect(pace).to.have.property("perSecond").within(0.09, 0.11);
  });

  it("does not count the time before the first worker had anything", () => {
    const meter = new PaceMeter();
    for (let atMs = 0; atMs <= 60_000; atMs += 500)
      meter.take(atMs, { pending: 1_000, delayed: 0, running: 0, done: 0, failed: 0 });
    for (let atMs = 60_500; atMs <= 70_000; atMs += 500)
      meter.take(atMs, counts(Math.floor((atMs - 60_000) / 100), 1_000));
    expect(meter.pace(70_000)).to.have.property("perSecond").within(9, 11);
  });

  it("counts the time that the first items take: a whole generation at once is no flood", () => {
    const meter = new PaceMeter();
    for (let atMs = 0; atMs <= 61_000; atMs += 500) meter.take(atMs, counts(atMs < 60_000 ? 0 : 8, 1_000));
    expect(meter.pace(61_000)).to.have.property("perSecond").below(0.2);
  });

  it("begins with what the coordinator has seen, once", () => {
    const meter = new PaceMeter();
    meter.take(
      100_000,
      counts(500, 1_000),
      Array.from({ length: 20 }, () => 5),
    );
    expect(meter.pace(100_000)).to.have.property("perSecond").equal(5);
  });

  it("gives a range that holds the truth for nine tenths of runs whose items finish at random", () => {
    const random = seededRandom(7);
    let held = 0;
    const runs = 200;
    for (let run = 0; run < runs; run++) {
      const finishes: number[] = [];
      for (let atMs = 0; finishes.length < 400;) {
        atMs += -Math.log(1 - random.unit()) * 200;
        finishes.push(atMs);
      }
      const endMs = finishes.at(-1) ?? 0;
      const range = left(paceAfter(20, 400, (atMs) => finishes.filter((finish) => finish <= atMs).length));
      if (range.atLeastMs <= endMs - 20_000 && endMs - 20_000 <= range.atMostMs) held++;
    }
    expect(held / runs).to.be.above(0.85);
  });

  it("is narrower the more items were seen, and never exact", () => {
    const width = (seconds: number): number => {
      const { atLeastMs, atMostMs } = left(paceAfter(seconds, 10_000, (atMs) => atMs / 100));
      return atMostMs / atLeastMs;
    };
    expect(width(3)).to.be.above(width(30));
    expect(width(300)).to.be.above(1.1);
  });

  it("is wide when items come in bursts", () => {
    const steady = left(paceAfter(60, 10_000, (atMs) => atMs / 100));
    const bursts = left(paceAfter(60, 10_000, (atMs) => 250 * Math.floor(atMs / 25_000)));
    expect(bursts.atMostMs / bursts.atLeastMs).to.be.above((2 * steady.atMostMs) / steady.atLeastMs);
  });

  it("is stalled when nothing has finished for much longer than before, and says since when", () => {
    const doneAt = (atMs: number): number => Math.min(50, atMs / 100);
    expect(paceAfter(15, 100, doneAt).kind).to.equal("steady");
    expect(paceAfter(30, 100, doneAt)).to.deep.equal({ kind: "stalled", forMs: 25_000 });
  });

  it("is not stalled after a minute when items take minutes", () => {
    const doneAt = (atMs: number): number => 2 * Math.floor(atMs / 60_000);
    expect(paceAfter(659, 1_000, doneAt).kind).to.equal("steady");
  });

  it("is stalled when nothing has ever finished in a minute", () => {
    expect(paceAfter(70, 100, () => 0)).to.deep.equal({ kind: "stalled", forMs: 70_000 });
  });

  it("is unknown while the run is paused, and begins anew after that", () => {
    const meter = new PaceMeter();
    meter.take(0, counts(0, 1_000, { state: "paused" }), [9, 9, 9]);
    expect(meter.pace(0), "of before it was looked at").to.deep.equal({ kind: "unknown" });
    for (let atMs = 500; atMs <= 20_000; atMs += 500)
      meter.take(atMs, counts(atMs / 100, 1_000, { state: "sealed" }));
    expect(meter.pace(20_000)).to.have.property("kind", "steady");
    for (let atMs = 20_500; atMs <= 90_000; atMs += 500) {
      meter.take(atMs, counts(200, 1_000, { state: "paused" }));
      expect(meter.pace(atMs)).to.deep.equal({ kind: "unknown" });
    }
    for (let atMs = 90_500; atMs <= 100_000; atMs += 500)
      meter.take(atMs, counts(200 + (atMs - 90_000) / 50, 1_000, { state: "sealed" }));
    expect(meter.pace(100_000)).to.have.property("perSecond").within(19, 21);
  });

  it("is unknown when nothing is left", () => {
    expect(paceAfter(20, 100, (atMs) => atMs / 10)).to.deep.equal({ kind: "unknown" });
  });

  it("counts rightly when failed items are retried", () => {
    const meter = new PaceMeter();
    for (let atMs = 0; atMs <= 10_000; atMs += 500)
      meter.take(atMs, counts(atMs / 100, 1_000, { failed: 50 }));
    meter.take(10_500, counts(105, 1_000));
    const before = left(meter.pace(10_500));
    expect(before.atMostMs).to.be.below(200_000);
  });

  it("is right in a run of days, of which it forgets most", () => {
    const meter = new PaceMeter();
    for (let atMs = 0; atMs < 3 * 86_400_000; atMs += 2_000)
      meter.take(atMs, counts(atMs / 2_000, 1_000_000));
    expect(meter.pace(3 * 86_400_000))
      .to.have.property("perSecond")
      .within(0.45, 0.55);
  });
});
