import { expect } from "chai";
import { AwaitedValue } from "../../../src/base/awaited-value.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("a value that is awaited", () => {
  const clock = new VirtualClock();
  const atLeast = (least: number) => (value: number) => value >= least;
  const patience = (waitMs = 1_000, signal = new AbortController().signal) => ({ clock, waitMs, signal });

  it("is there at once when it was told before the wait began", async () => {
    const value = new AwaitedValue<number>();
    value.tell(3);
    expect(await value.until(atLeast(3), patience(0))).to.equal(true);
  });

  it("wakes those for whom it is enough, and nobody else", async () => {
    const value = new AwaitedValue<number>();
    const ends: string[] = [];
    const few = value.until(atLeast(1), patience()).then((isThere) => ends.push(`few ${isThere}`));
    const many = value.until(atLeast(2), patience()).then((isThere) => ends.push(`many ${isThere}`));
    value.tell(1);
    await few;
    expect(ends).to.deep.equal(["few true"]);
    value.tell(2);
    await many;
    expect(ends).to.deep.equal(["few true", "many true"]);
  });

  it("is not waited for beyond the time, nor for a caller who has gone, and leaves no timer", async () => {
    const value = new AwaitedValue<number>();
    const gone = new AbortController();
    const ends = Promise.all([
      value.until(atLeast(1), patience(100)),
      value.until(atLeast(1), patience(1_000, gone.signal)),
    ]);
    expect(clock.armed).to.equal(2);
    gone.abort();
    await clock.advance(100);
    expect(await ends).to.deep.equal([false, false]);
    expect(clock.armed).to.equal(0);
    expect(await value.until(atLeast(1), patience(1_000, gone.signal))).to.equal(false);
  });

  it("is waited for by 1,024 callers at most, and by others when they have gone", async () => {
    const value = new AwaitedValue<number>();
    const waiting = Array.from({ length: 1_024 }, () => value.until(atLeast(1), patience()));
    expect(await value.until(atLeast(1), patience())).to.equal(false);
    value.tell(1);
    expect(new Set(await Promise.all(waiting))).to.deep.equal(new Set([true]));
    expect(await value.until(atLeast(0), patience())).to.equal(true);
  });
});
