import { expect } from "chai";
import fc from "fast-check";
import { BacklogPace } from "../../../../src/worker/work/backlog-pace.ts";

const TIME_MS = 250;
const MOST = 4_096;

describe("the pace of a backlog", () => {
  let nowMs: number;

  beforeEach(() => {
    nowMs = 5_000;
  });

  function paceOf(slots: number): BacklogPace {
    const pace = new BacklogPace({ timeMs: TIME_MS, slots, least: 1, most: MOST });
    pace.resume(nowMs);
    return pace;
  }

  /** `count` attempts, one after the other. */
  function endEach(pace: BacklogPace, everyMs: number, count: number): void {
    for (let at = 0; at < count; at++) pace.end((nowMs += everyMs));
  }

  it("wants one while nothing has ended, and of slow items one", () => {
    const pace = paceOf(1);
    expect(pace.wanted).to.equal(1);
    endEach(pace, 600_000, 5);
    expect(pace.wanted).to.equal(1);
  });

  it("wants as many as end in its time, whatever ends them", () => {
    const [one, many] = [paceOf(1), paceOf(64)];
    endEach(one, 5, 1_000);
    expect(one.wanted).to.be.within(48, 52);
    for (let second = 0; second < 20; second++) {
      nowMs += 1_000;
      for (let at = 0; at < 64; at++) many.end(nowMs);
    }
    expect(many.wanted, "64 that end together each second are 16 in a quarter of one").to.be.within(8, 26);
  });

  it("believes the first item no more than two others, and doubles and more with each trip to the coordinator", () => {
    const pace = paceOf(1);
    endEach(pace, 0.05, 1);
    expect(pace.wanted).to.equal(2);
    for (let trip = 0; trip < 5; trip++) {
      // All that wait are ended at once, and then nothing executes until others come.
      const waiting = pace.wanted;
      pace.resume((nowMs += 20));
      endEach(pace, 0.05, waiting);
    }
    expect(pace.wanted).to.be.within(200, 1_000);
  });

  it("does not count the time in which nothing executes", () => {
    const pace = paceOf(1);
    endEach(pace, 1, 4_000);
    const { wanted } = pace;
    pace.resume((nowMs += 3_600_000));
    expect(pace.wanted).to.equal(wanted);
    expect(pace.surplus(nowMs, wanted, true)).to.equal(0);
  });

  it("finds too much in what has become slow, though nothing ends that would tell, and at the second look only", () => {
    const pace = paceOf(1);
    endEach(pace, 1, 4_000);
    const waiting = pace.wanted;
    expect(pace.surplus((nowMs += TIME_MS), waiting, true), "it may only have stood still").to.equal(0);
    expect(pace.surplus((nowMs += TIME_MS), waiting, true)).to.equal(waiting - 1);
    expect(pace.wanted).to.equal(1);
  });

  it("finds nothing too much in a process that stood still, once it has read what has ended", () => {
    const pace = paceOf(1);
    endEach(pace, 1, 4_000);
    const waiting = pace.wanted;
    expect(pace.surplus((nowMs += 2_000), waiting, true)).to.equal(0);
    endEach(pace, 0.5, 500);
    expect(pace.surplus(nowMs, waiting - 100, true)).to.equal(0);
  });

  it("lets a few more wait than are wanted: a rate is never quite even", () => {
    const pace = paceOf(1);
    for (let look = 0; look < 5; look++) expect(pace.surplus((nowMs += TIME_MS), 2, true)).to.equal(0);
    expect(pace.surplus((nowMs += TIME_MS), 3, true)).to.equal(0);
    expect(pace.surplus((nowMs += TIME_MS), 3, true)).to.equal(2);
  });

  it("stays between its least and its most items", () => {
    const step = fc.record({
      kind: fc.constantFrom("end", "look", "resume" as const),
      afterMs: fc.oneof(fc.constant(0), fc.double({ min: 0, max: 1e7, noNaN: true })),
      times: fc.integer({ min: 1, max: 2_000 }),
    });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const pace = new BacklogPace({ timeMs: TIME_MS, slots: 2, least: 3, most: 40 });
        for (const { kind, afterMs, times } of steps) {
          nowMs += afterMs;
          if (kind === "resume") pace.resume(nowMs);
          if (kind === "end") endEach(pace, 0, times);
          if (kind === "look")
            expect(pace.surplus(nowMs, times, true)).to.be.within(0, Math.max(0, times - 3));
          expect(pace.wanted).to.be.within(3, 40);
        }
      }),
    );
  });
});
