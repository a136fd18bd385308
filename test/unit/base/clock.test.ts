import { expect } from "chai";
import { isoTime, sleep, systemClock } from "../../../src/base/clock.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

/** Lets `done` be called by the clock under test. */
const called = (arm: (done: () => void) => void): Promise<void> => new Promise((resolve) => arm(resolve));

describe("the system's clock", () => {
  it("never goes back in monotonic time", () => {
    let last = systemClock.monotonicMs();
    for (let reading = 0; reading < 10_000; reading++) {
      const now = systemClock.monotonicMs();
      expect(now).to.be.at.least(last);
      last = now;
    }
  });

  it("runs a timer once, not before its time", async () => {
    const from = systemClock.monotonicMs();
    let times = 0;
    await called((done) =>
      systemClock.after(15, () => {
        times++;
        done();
      }),
    );
    // Node counts in whole milliseconds and may round half a one down.
    expect(systemClock.monotonicMs() - from).to.be.at.least(14);
    await called((done) => systemClock.after(5, done));
    expect(times).to.equal(1);
  });

  it("does not run a timer that was cancelled, however often", async () => {
    let ran = false;
    const timer = systemClock.after(1, () => (ran = true));
    timer.cancel();
    timer.cancel();
    await called((done) => systemClock.after(10, done));
    expect(ran).to.equal(false);
  });

  it("runs a timer with a negative delay at once", async () => {
    for (const delayMs of [0, -5]) await called((done) => systemClock.after(delayMs, done));
  });

  it("waits for a delay that is too long for Node's timers", async () => {
    let ran = false;
    const timers = [2 ** 31, 2 ** 33, Number.MAX_SAFE_INTEGER].map((delayMs) =>
      systemClock.after(delayMs, () => (ran = true), { background: true }),
    );
    await called((done) => systemClock.after(20, done));
    for (const timer of timers) timer.cancel();
    expect(ran).to.equal(false);
  });

  it("takes the next turn of the loop after all promises of this one", async () => {
    const seen: string[] = [];
    const turn = called((done) =>
      systemClock.nextTurn(() => {
        seen.push("turn");
        done();
      }),
    );
    await Promise.resolve();
    seen.push("promise");
    await turn;
    expect(seen).to.deep.equal(["promise", "turn"]);
  });
});

describe("sleeping", () => {
  it("ends when the time has passed", async () => {
    const clock = new VirtualClock();
    let isAwake = false;
    void sleep(clock, 100).then(() => (isAwake = true));
    await clock.advance(99);
    expect(isAwake).to.equal(false);
    await clock.advance(1);
    expect(isAwake).to.equal(true);
  });

  it("ends at once when it is cut short, and leaves no timer behind", async () => {
    const clock = new VirtualClock();
    const controller = new AbortController();
    const slept = sleep(clock, 100, controller.signal);
    expect(clock.armed).to.equal(1);
    controller.abort();
    await slept;
    expect(clock.armed).to.equal(0);
  });

  it("ends at once when its signal was aborted before", async () => {
    const clock = new VirtualClock();
    await sleep(clock, 100, AbortSignal.abort());
    expect(clock.armed).to.equal(0);
  });

  it("leaves no listener on the signal", async () => {
    const clock = new VirtualClock();
    const { signal } = new AbortController();
    let listeners = 0;
    const add = signal.addEventListener.bind(signal);
    const remove = signal.removeEventListener.bind(signal);
    signal.addEventListener = (...args: Parameters<typeof add>) => {
      listeners++;
      add(...args);
    };
    signal.removeEventListener = (...args: Parameters<typeof remove>) => {
      listeners--;
      remove(...args);
    };
    const slept = sleep(clock, 10, signal);
    expect(listeners).to.equal(1);
    await clock.advance(10);
    await slept;
    expect(listeners).to.equal(0);
  });
});

describe("a time for people", () => {
  it("is ISO 8601 in UTC", () => {
    expect(isoTime(Date.UTC(2026, 10, 18, 14, 5, 6, 7))).to.equal("2026-11-18T14:05:06.007Z");
  });

  it("writes times in any order as the calendar has them", () => {
    for (const [ms, time] of [
      [0, "1970-01-01T00:00:00.000Z"],
      [-1, "1969-12-31T23:59:59.999Z"],
      [-0.5, "1970-01-01T00:00:00.000Z"],
      [999.9, "1970-01-01T00:00:00.999Z"],
      [1_000, "1970-01-01T00:00:01.000Z"],
      [1_795_169_272_641.75, "2026-11-20T10:07:52.641Z"],
      [1_795_169_272_009, "2026-11-20T10:07:52.009Z"],
      [1_795_169_273_000, "2026-11-20T10:07:53.000Z"],
      [-1, "1969-12-31T23:59:59.999Z"],
      [253_402_300_800_000, "+010000-01-01T00:00:00.000Z"],
    ] as const)
      expect(isoTime(ms)).to.equal(time);
  });
});
