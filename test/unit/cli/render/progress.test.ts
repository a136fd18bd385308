import { expect } from "chai";
import { durationText } from "../../../../src/cli/render/quantities.ts";
import { progressBlock, progressLine } from "../../../../src/cli/render/progress.ts";
import type { ProgressView } from "../../../../src/cli/render/progress.ts";

const PLAIN = { colour: false, unicode: true };

function view(change: Partial<ProgressView> = {}): ProgressView {
  return {
    counts: { pending: 66, delayed: 2, running: 8, done: 123, failed: 3 },
    failures: { timeout: 1, error: 2, crash: 0 },
    failureMessages: [],
    reassigned: 0,
    total: 200,
    submitted: undefined,
    pace: { kind: "steady", perSecond: 12.4, left: { atLeastMs: 5_300, atMostMs: 8_100 } },
    elapsedMs: 72_000,
    workers: { ready: 3, draining: 1, suspected: 0, failed: 0, cordoned: 0, executing: 7, slots: 8 },
    ...{ release: undefined, situation: undefined },
    ...change,
  };
}

function lines(columns: number, change: Partial<ProgressView> = {}): string[] {
  return progressBlock(view(change), columns, PLAIN).split("\n");
}

describe("progress in a block", () => {
  it("says what there is, what has failed and of what, how fast it goes, how long it takes, and who works", () => {
    const [bar, ...rest] = lines(80);
    expect(bar).to.match(/^▕█+[▏▎▍▌▋▊▉]? +▏ {2}63% {2}126 of 200 finished {2}1m 12s$/);
    expect(rest).to.deep.equal([
      "  123 done · 3 failed (2 error, 1 timeout) · 8 with workers · 66 waiting (2 after a failure)".slice(
        0,
        79,
      ) + "…",
      "  12/s, 5s to 9s left",
      "  4 workers (1 draining) · 7 of 8 slots busy",
    ]);
  });

  it("says how a release stands, in a line of the block and in the one-line form", () => {
    const release = "release of version 2: held, stage 1 of 3 (10%)";
    expect(lines(80, { release }).slice(-2)).to.deep.equal([
      `  ${release}`,
      "  4 workers (1 draining) · 7 of 8 slots busy",
    ]);
    expect(progressLine(view({ release }))).to.match(/; release of version 2: held, stage 1 of 3 \(10%\)$/);
  });

  it("says why items fail, the most frequent first, with an item that a narrow terminal shows too", () => {
    const item = "0123456789abcdef".repeat(4);
    const failureMessages = ["a\u001b[2Jb", "no such file", "disk full", "rare"].map((message, at) => ({
      ...{ failureClass: "error", message, items: 4_000 - at, attempts: 9, item },
    }));
    const [, , ...rest] = lines(60, { failureMessages });
    expect(rest.slice(0, -2)).to.deep.equal([
      "  4,000 error, such as item 0123456789ab: a\\u001b[2Jb",
      "  3,999 error, such as item 0123456789ab: no such file",
      "  3,998 error, such as item 0123456789ab: disk full",
    ]);
    expect(lines(45, { failureMessages })[2]).to.equal("  4,000 error, such as item 0123456789ab: a\\…");
  });

  it("says how attempts ended while no item is final", () => {
    const failureMessages = [
      { failureClass: "error", message: "no GPU", items: 0, attempts: 12, item: "ab".repeat(32) },
    ];
    const none = { pending: 60, delayed: 12, running: 0, done: 0, failed: 0 };
    expect(lines(80, { failureMessages, counts: none })[2]).to.equal(
      "  12 attempts ended as error, such as of item abababababab: no GPU",
    );
    expect(lines(80, { failureMessages }), "items are done").to.have.length(4);
  });

  for (const columns of [20, 39, 40, 60, 79, 120, 300]) {
    it(`has no line longer than ${columns} columns, in colours or not`, () => {
      for (const colour of [true, false]) {
        const text = progressBlock(view(), columns, { colour, unicode: true });
        const widths = text.split("\n").map((line) => Array.from(line.replace(/\u001b\[\d+m/g, "")).length);
        expect(Math.max(...widths)).to.be.most(columns);
        expect(widths).to.have.length(4);
      }
    });
  }

  it("ends every colour that it begins, also in a line that is cut", () => {
    const text = progressBlock(view(), 30, { colour: true, unicode: true });
    for (const line of text.split("\n")) {
      const begun = line.match(/\u001b\[[1-9]\d*m/g) ?? [];
      const ended = line.match(/\u001b\[0m/g) ?? [];
      expect(ended.length, JSON.stringify(line)).to.equal(begun.length);
    }
  });

  it("has ASCII only where the terminal has no more", () => {
    expect(progressBlock(view(), 60, { colour: false, unicode: false })).to.match(/^[\x20-\x7e\n]+$/);
  });

  it("is at 100% when everything is final, and not a moment before", () => {
    const almost = { pending: 0, delayed: 0, running: 1, done: 199_999, failed: 0 };
    expect(lines(80, { counts: almost, total: 200_000 })[0]).to.contain(" 99%");
    const all = { ...almost, running: 0, done: 200_000 };
    expect(lines(80, { counts: all, total: 200_000 })[0]).to.contain("100%");
  });

  it("is never above 100%, even when more is there than was expected", () => {
    const [bar] = lines(80, { total: 100 });
    expect(bar).to.contain("100%");
  });

  it("says how many items were submitted while more are to come", () => {
    expect(lines(80, { submitted: 2_000, total: 200_000 })[0]).to.contain(
      "126 of 200,000 finished, 2,000 submitted so far",
    );
  });

  for (const [name, pace, text] of [
    ["nothing is known", { kind: "unknown" }, "no estimate yet"],
    ["it is stalled", { kind: "stalled", forMs: 130_000 }, "nothing has finished for 2m 10s"],
    [
      "there is no bound",
      { kind: "steady", perSecond: 0.5, left: { atLeastMs: 90_000, atMostMs: undefined } },
      "30/min, more than 1m 30s left",
    ],
    [
      "both ends are the same",
      { kind: "steady", perSecond: 900, left: { atLeastMs: 500, atMostMs: 600 } },
      "900/s, about 1s left",
    ],
    [
      "it takes days",
      { kind: "steady", perSecond: 0.01, left: { atLeastMs: 90_000_000, atMostMs: 200_000_000 } },
      "36/h, 1d 1h to 2d 8h left",
    ],
    [
      "it takes hours",
      { kind: "steady", perSecond: 4.26, left: { atLeastMs: 3_600_000, atMostMs: 7_900_000 } },
      "4.3/s, 1h to 2h 15m left",
    ],
  ] as const) {
    it(`when ${name}: "${text}"`, () => {
      expect(lines(80, { pace })[2]).to.equal(`  ${text}`);
    });
  }

  it("says what it is doing where it does not show a pace", () => {
    expect(lines(80, { situation: "leaving" })[2]).to.equal("  leaving");
  });

  it("says that there are no workers, and which are late, lost or cordoned", () => {
    const workers = { ready: 0, draining: 0, suspected: 0, failed: 0, cordoned: 0, executing: 0, slots: 0 };
    expect(lines(80, { workers })[3]).to.equal("  no workers yet");
    expect(lines(80, { workers: { ...workers, hadSome: true } })[3]).to.equal("  no workers now");
    const many = { ...workers, ready: 2, suspected: 1, failed: 1, cordoned: 1, executing: 1, slots: 4 };
    expect(lines(120, { workers: many, reassigned: 1_234 })[3]).to.equal(
      "  4 workers (1 suspected, 1 failed, 1 cordoned) · 1 of 4 slots busy · 1,234 attempts repeated",
    );
    const one = { ...workers, ready: 1, slots: 1 };
    expect(lines(120, { workers: one })[3]).to.equal("  1 worker · 0 of 1 slot busy");
  });

  it("shows what others wrote as text", () => {
    expect(lines(80, { failures: { "\u001b[2J": 3 } })[1]).to.contain("\\u001b[2J");
  });
});

describe("progress in a line", () => {
  it("has the same figures as the block", () => {
    expect(progressLine(view())).to.equal(
      "1m 12s: 126 of 200 finished (63%); 3 failed (2 error, 1 timeout); 12/s, 5s to 9s left",
    );
  });
});

describe("a duration", () => {
  for (const [ms, text] of [
    [-5, "0s"],
    [999, "0s"],
    [59_999, "59s"],
    [60_000, "1m 00s"],
    [3_599_999, "59m 59s"],
    [7_800_000, "2h 10m"],
    [273_600_000, "3d 4h"],
  ] as const) {
    it(`of ${ms} ms is "${text}"`, () => expect(durationText(ms)).to.equal(text));
  }
});
