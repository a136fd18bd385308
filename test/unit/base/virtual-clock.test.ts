import { expect } from "chai";
import fc from "fast-check";
import { AssertionFailed } from "../../../src/base/assert.ts";
import { sleep } from "../../../src/base/clock.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the virtual clock", () => {
  it("stands still until it is moved, and then both times move as one", async () => {
    const clock = new VirtualClock({ monotonicMs: 5, wallMs: 1_000 });
    expect([clock.monotonicMs(), clock.wallMs()]).to.deep.equal([5, 1_000]);
    await clock.advance(70);
    expect([clock.monotonicMs(), clock.wallMs()]).to.deep.equal([75, 1_070]);
  });

  it("lets the wall clock jump without anybody else noticing", async () => {
    const clock = new VirtualClock({ monotonicMs: 5, wallMs: 1_000 });
    const fired: number[] = [];
    clock.after(10, () => fired.push(clock.wallMs()));
    clock.jumpWall(-500);
    expect([clock.monotonicMs(), clock.wallMs()]).to.deep.equal([5, 500]);
    await clock.advance(10);
    expect(fired).to.deep.equal([510]);
  });

  it("runs timers at their own moments, in order, those of one moment as they were armed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 0, max: 20 }), { maxLength: 30 }), async (delays) => {
        const clock = new VirtualClock({ monotonicMs: 0 });
        const fired: [number, number][] = [];
        for (const [index, delayMs] of delays.entries())
          clock.after(delayMs, () => fired.push([clock.monotonicMs(), index]));
        await clock.advance(10);
        await clock.advance(10);
        const expected = delays.map((delayMs, index): [number, number] => [delayMs, index]);
        expect(fired).to.deep.equal(expected.sort(([left, i], [right, j]) => left - right || i - j));
        expect(clock.armed).to.equal(0);
      }),
      { numRuns: 50, seed: 3 },
    );
  });

  it("runs what a timer arms within the same time, and leaves the rest", async () => {
    const clock = new VirtualClock({ monotonicMs: 0 });
    const fired: number[] = [];
    const again = (): void => {
      fired.push(clock.monotonicMs());
      clock.after(10, again);
    };
    clock.after(10, again);
    await clock.advance(35);
    expect([fired, clock.armed, clock.nextDueInMs]).to.deep.equal([[10, 20, 30], 1, 5]);
  });

  it("lets every promise settle before it moves on", async () => {
    const clock = new VirtualClock({ monotonicMs: 0 });
    const seen: string[] = [];
    const wait = async (name: string): Promise<void> => {
      for (let turn = 0; turn < 3; turn++) {
        await sleep(clock, 10);
        for (let hop = 0; hop < 50; hop++) await Promise.resolve();
        seen.push(`${name} ${clock.monotonicMs()}`);
      }
    };
    void wait("a");
    void wait("b");
    await clock.advance(100);
    expect(seen).to.deep.equal(["a 10", "b 10", "a 20", "b 20", "a 30", "b 30"]);
  });

  it("does not run a timer that was cancelled, even by one of the same moment", async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    const first = clock.after(5, () => {
      fired.push("first");
      second.cancel();
    });
    const second = clock.after(5, () => fired.push("second"));
    const third = clock.after(5, () => fired.push("third"));
    third.cancel();
    third.cancel();
    await clock.advance(5);
    first.cancel();
    expect([fired, clock.armed, clock.nextDueInMs]).to.deep.equal([["first"], 0, undefined]);
  });

  it("takes turns of the loop before timers, in order, without time passing", async () => {
    const clock = new VirtualClock({ monotonicMs: 0 });
    const seen: string[] = [];
    clock.after(0, () => seen.push("timer"));
    clock.nextTurn(() => {
      seen.push("turn");
      clock.nextTurn(() => seen.push("later turn"));
    });
    expect(seen).to.deep.equal([]);
    await clock.advance();
    expect([seen, clock.monotonicMs()]).to.deep.equal([["turn", "later turn", "timer"], 0]);
  });

  it("rejects with what a callback throws, and goes on after it", async () => {
    const clock = new VirtualClock();
    const fired: string[] = [];
    clock.after(1, () => {
      throw new RangeError("no");
    });
    clock.after(2, () => fired.push("next"));
    const error = await clock.advance(5).catch((reason: unknown) => reason);
    expect(error).to.be.instanceOf(RangeError);
    await clock.advance(5);
    expect(fired).to.deep.equal(["next"]);
  });

  it("refuses to go back, to be moved by two, and to stand still for ever", async () => {
    const clock = new VirtualClock();
    const refused = async (moved: Promise<void>): Promise<void> => {
      expect(await moved.catch((reason: unknown) => reason)).to.be.instanceOf(AssertionFailed);
    };
    await refused(clock.advance(-1));
    const moving = clock.advance(1);
    await refused(clock.advance(1));
    await moving;
    expect(() => clock.after(NaN, () => {})).to.throw(AssertionFailed);
  });
});
