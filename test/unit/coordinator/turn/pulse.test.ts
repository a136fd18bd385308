import { expect } from "chai";
import { Pulse } from "../../../../src/coordinator/turn/run-terms.ts";
import fc from "fast-check";

describe("what became final in each second", () => {
  it("is counted by whole seconds, latest last, without the one that is not over", () => {
    const pulse = new Pulse();
    expect(pulse.read(10_500)).to.deep.equal([]);
    pulse.count(10_500, 0, true);
    pulse.count(10_600, 2, true);
    pulse.count(11_499, 1, true);
    pulse.count(11_500, 4, true);
    expect(pulse.read(11_600)).to.deep.equal([3]);
    expect(pulse.read(14_600)).to.deep.equal([3, 4, 0, 0]);
  });

  it("begins when the first worker gets an item, and counts every second after that", () => {
    const pulse = new Pulse();
    for (const nowMs of [1_000, 30_000]) pulse.count(nowMs, 0, false);
    expect(pulse.read(40_000)).to.deep.equal([]);
    pulse.count(40_000, 0, true);
    pulse.count(42_500, 3, false);
    expect(pulse.read(44_000)).to.deep.equal([0, 0, 3, 0]);
    const first = new Pulse();
    first.count(7_000, 1, false);
    expect(first.read(8_000)).to.deep.equal([1]);
  });

  it("goes back a minute, and is what a list of all would say", () => {
    const steps = fc.array(fc.tuple(fc.nat(20_000), fc.nat(5)), { maxLength: 100 });
    fc.assert(
      fc.property(steps, (all) => {
        const pulse = new Pulse();
        pulse.count(0, 0, true);
        const counts: number[] = [];
        let nowMs = 0;
        for (const [byMs, finished] of all) {
          nowMs += byMs;
          pulse.count(nowMs, finished, true);
          const second = Math.floor(nowMs / 1_000);
          counts[second] = (counts[second] ?? 0) + finished;
          const whole = Array.from({ length: second }, (_, at) => counts[at] ?? 0);
          expect(pulse.read(nowMs)).to.deep.equal(whole.slice(-60));
        }
      }),
    );
  });
});
