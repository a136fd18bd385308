import { expect } from "chai";
import { History } from "../../../../src/coordinator/sight/history.ts";
import type { Point } from "../../../../src/coordinator/sight/history.ts";

const SECOND_MS = 1_000;

describe("the history of a run", () => {
  const pointAt = (nowMs: number): Point => ({
    ...{ atMs: nowMs, pending: 0, delayed: 0, running: 0, done: nowMs, failed: 0, workers: 0 },
  });

  /** Looked at each second for so long. */
  function lookedAtFor(seconds: number): { history: History; thinned: number } {
    const history = new History();
    let thinned = 0;
    for (let nowMs = 0; nowMs < seconds * SECOND_MS; nowMs += SECOND_MS)
      if (history.isDue(nowMs)) thinned += history.add(nowMs, pointAt(nowMs)) ? 1 : 0;
    return { history, thinned };
  }

  it("has a point a second at first", () => {
    const { history, thinned } = lookedAtFor(100);
    expect([history.points.length, history.intervalMs, thinned]).to.deep.equal([100, SECOND_MS, 0]);
  });

  it("stays bounded over a day, and reaches from its beginning to now", () => {
    const { history, thinned } = lookedAtFor(86_400);
    const { points, intervalMs } = history;
    expect(points.length).to.be.within(300, 720);
    expect(thinned).to.be.above(5);
    expect(points[0]?.atMs).to.be.below(2 * intervalMs);
    expect(points.at(-1)?.atMs).to.be.above(86_400_000 - 2 * intervalMs);
  });

  it("keeps its points in order and at equal distances, also where it was thinned out", () => {
    const { history } = lookedAtFor(5_000);
    const times = history.points.map(({ atMs }) => atMs);
    const distances = new Set(times.slice(1).map((atMs, at) => atMs - (times[at] ?? 0)));
    expect([...distances]).to.deep.equal([history.intervalMs]);
  });
});
