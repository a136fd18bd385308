// Figures of the page: workers in order, scales of plots, numbers as words, and the feed as lines.
import { expect } from "chai";
import { FeedLines, waitBefore } from "../../../../src/inspector/page/known/feed-lines.ts";
import {
  durationText,
  metricText,
  percentText,
  rateText,
  roughDuration,
} from "../../../../src/inspector/page/known/phrases.ts";
import {
  areaPath,
  countMarks,
  nearest,
  ratesOf,
  stackedUpTo,
  timeMarks,
  valueMarks,
} from "../../../../src/inspector/page/known/scale.ts";
import { answer, workerWord } from "../../../../src/inspector/page/known/worker-order.ts";
import type { WorkerQuestion } from "../../../../src/inspector/page/known/worker-order.ts";
import { course, workerId, workerRow, workerRows } from "../../../support/made-cluster.ts";

const ALL: WorkerQuestion = { text: "", word: "", sort: "attention", isDescending: false, page: 0 };

describe("workers in the order that is asked for", () => {
  it("begin with those that need a look, a page at a time", () => {
    const rows = workerRows(120);
    const first = answer(rows, ALL);
    expect([first.matching, first.pages, first.rows.length]).to.deep.equal([120, 3, 50]);
    expect(first.rows.slice(0, 6).map(workerWord)).to.deep.equal([
      "failed",
      "failed",
      "failed",
      "suspected",
      "suspected",
      "suspected",
    ]);
    const last = answer(rows, { ...ALL, page: 99 });
    expect([last.page, last.rows.length]).to.deep.equal([2, 20]);
    const pages = [0, 1, 2].flatMap((page) => answer(rows, { ...ALL, page }).rows);
    expect(new Set(pages).size).to.equal(120);
  });

  it("are those of a state, or with a word in them, by a figure", () => {
    const rows = [
      workerRow(0, { held: 3 }),
      workerRow(1, { held: 9, trouble: "Model loads" }),
      workerRow(2, { held: 5, revoked: true }),
    ];
    const held = answer(rows, { ...ALL, sort: "held", isDescending: true }).rows.map((row) => row.held);
    expect(held).to.deep.equal([9, 5, 3]);
    expect(answer(rows, { ...ALL, text: "model" }).rows.map((row) => row.held)).to.deep.equal([9]);
    expect(answer(rows, { ...ALL, text: workerId(0).slice(3, 20).toLowerCase() }).matching).to.equal(1);
    expect(answer(rows, { ...ALL, word: "revoked" }).rows.map((row) => row.held)).to.deep.equal([5]);
  });
});

describe("a plot", () => {
  it("has round numbers on its axes", () => {
    expect(countMarks(0, 4)).to.deep.equal([0, 1]);
    expect(countMarks(47, 4)).to.deep.equal([0, 20, 40, 60]);
    expect(countMarks(250_000, 4)).to.deep.equal([0, 100_000, 200_000, 300_000]);
    expect(valueMarks(0.004, 0.083, 4)).to.deep.equal([0, 0.02, 0.04, 0.06, 0.08, 0.1]);
    expect(valueMarks(6.6, 7.9, 4)).to.deep.equal([6.5, 7, 7.5, 8]);
    expect(valueMarks(-0.3, -0.1, 4)).to.deep.equal([-0.3, -0.25, -0.2, -0.15, -0.1]);
    expect(valueMarks(2, 2, 4)).to.have.length(2);
    const hour = 3_600_000;
    expect(timeMarks(hour + 61_000, 2 * hour, 5)).to.deep.equal(
      [1, 2, 3, 4].map((at) => hour + at * 900_000),
    );
    // Midnight of a reader who is half an hour off.
    expect(timeMarks(0, 4 * hour, 4, hour / 2).map((mark) => mark % hour)).to.deep.equal([
      hour / 2,
      hour / 2,
      hour / 2,
      hour / 2,
    ]);
    expect(timeMarks(5, 5, 4)).to.deep.equal([]);
  });

  it("has a rate that is never below 0, and areas that stand on each other", () => {
    const points = course();
    expect(ratesOf(points).every(({ perSecond }) => perSecond >= 0 && perSecond < 60)).to.equal(true);
    const [first, second] = points;
    if (first === undefined || second === undefined) throw new Error("a course has points");
    expect(ratesOf([second, { ...first, at_ms: second.at_ms + 1_000 }])[0]?.perSecond).to.equal(0);
    const { pending, delayed, running, done, failed } = first;
    expect(stackedUpTo([first], "pending")).to.deep.equal([pending + delayed + running + done + failed]);
    expect(
      areaPath(
        [
          { x: 0, y: 1 },
          { x: 2, y: 1 },
        ],
        [
          { x: 0, y: 3 },
          { x: 2, y: 3 },
        ],
      ),
    ).to.equal("M0 1L2 1L2 3L0 3Z");
    expect([
      nearest([], 1),
      nearest([1, 5, 9], 6),
      nearest([1, 5, 9], 8),
      nearest([1, 5, 9], 99),
    ]).to.deep.equal([-1, 1, 2, 2]);
  });
});

describe("numbers for a person", () => {
  it("are short, and never say more than is true", () => {
    expect([250, 9_940, 61_000, 3_600_000, 90_061_000].map(durationText)).to.deep.equal([
      ...["0.25 s", "9.9 s", "1 min 1 s", "1 h", "1 d 1 h"],
    ]);
    expect([61_000, 2_273_000].map(roughDuration)).to.deep.equal(["1 min 1 s", "37 min"]);
    expect([
      percentText(0, 0),
      percentText(99_999, 100_000),
      percentText(1, 100_000),
      percentText(64, 100),
    ]).to.deep.equal([...["0 %", "99.9 %", "under 0.1 %", "64 %"]]);
    expect([
      metricText("errors", 0.02314),
      metricText("score", 7.1234),
      metricText("slower", 0),
    ]).to.deep.equal([...["2.31 %", "7.12", "0 %"]]);
    expect([rateText(0.44), rateText(1_204.4)]).to.deep.equal(["0.4", "1,204"]);
  });
});

describe("the feed as lines", () => {
  it("is the same however its bytes were cut", () => {
    const news = [
      { kind: "link", connected: false, since_ms: 1, reason: "ø 世界" },
      { kind: "events", events: [] },
    ];
    const bytes = new TextEncoder().encode(`\n${news.map((one) => JSON.stringify(one)).join("\n")}\n\n`);
    for (let size = 1; size < bytes.length; size += 3) {
      const lines = new FeedLines();
      const heard: object[] = [];
      for (let at = 0; at < bytes.length; at += size)
        heard.push(...lines.take(bytes.subarray(at, at + size)));
      expect(heard, `pieces of ${size}`).to.deep.equal(news);
    }
    expect(() => new FeedLines().take(new TextEncoder().encode("{\n"))).to.throw(SyntaxError);
  });

  it("is waited for longer and longer, up to a limit", () => {
    expect([0, 1, 2, 9].map((attempt) => waitBefore(attempt, 1))).to.deep.equal([500, 1_000, 2_000, 15_000]);
    expect(waitBefore(3, 0)).to.equal(2_000);
  });
});
