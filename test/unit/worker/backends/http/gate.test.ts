import { expect } from "chai";
import { Gate } from "../../../../../src/worker/backends/http/gate.ts";
import type { Passage } from "../../../../../src/worker/backends/http/gate.ts";
import { VirtualClock } from "../../../../support/virtual-clock.ts";

describe("the gate of all requests", () => {
  const random = { unit: () => 0.5, bytes: () => new Uint8Array() };
  const never = new AbortController().signal;
  let clock: VirtualClock;
  let gate: Gate;
  let passed: { name: number; passage: Passage | undefined }[];

  function open(concurrency: number): void {
    clock = new VirtualClock();
    gate = new Gate({ concurrency, clock, random });
    passed = [];
  }

  function enter(count: number, signal = never): void {
    for (let name = 1; name <= count; name++)
      void gate.enter(signal).then((passage) => passed.push({ name, passage }));
  }

  async function names(): Promise<number[]> {
    await clock.advance();
    return passed.map(({ name }) => name);
  }

  async function one(): Promise<Passage> {
    const passage = await gate.enter(never);
    if (passage === undefined) throw new Error("it did not pass");
    return passage;
  }

  it("lets so many pass, and the next in the order in which they came", async () => {
    open(2);
    enter(4);
    expect(await names()).to.deep.equal([1, 2]);
    gate.leave();
    expect(await names()).to.deep.equal([1, 2, 3]);
  });

  it("forgets who is not wanted any more", async () => {
    open(1);
    const controller = new AbortController();
    await one();
    enter(1, controller.signal);
    enter(1);
    controller.abort();
    gate.leave();
    await clock.advance();
    expect(passed.map(({ passage }) => passage !== undefined)).to.deep.equal([false, true]);
    expect(await gate.enter(controller.signal)).to.equal(undefined);
  });

  it("lets nobody pass during a pause, which everybody waits for", async () => {
    open(4);
    gate.pause(await one(), "throttled", 10_000);
    gate.leave();
    enter(2);
    await clock.advance(9_999);
    const during = await names();
    // Half of the tenth by which a pause is spread.
    await clock.advance(501);
    expect([during, await names(), clock.armed]).to.deep.equal([[], [1, 2], 0]);
  });

  it("takes refusals of requests that were under way together for one, and the longest pause of them", async () => {
    open(8);
    const together = await Promise.all([one(), one(), one(), one()]);
    for (const [at, passage] of together.entries())
      gate.pause(passage, "throttled", [3_000, 1_000, 9_000, 2_000][at]);
    expect(gate.pausedForMs).to.equal(9_450);
    together.forEach(() => gate.leave());
    await clock.advance(9_450);
    enter(8);
    // Halved once: by four it would be none.
    expect(await names()).to.deep.equal([1, 2, 3, 4]);
  });

  it("halves its width at a refusal and finds back by one in the time of a request", async () => {
    open(8);
    gate.pause(await one(), "throttled", 0);
    gate.leave();
    enter(20);
    const widths = [(await names()).length];
    for (let round = 0; round < 5; round++) {
      for (let answers = 0; answers < 5 + round; answers++) gate.succeeded();
      widths.push((await names()).length);
    }
    expect(widths).to.deep.equal([4, 5, 6, 7, 8, 8]);
  });

  it("forgets earlier setbacks at an answer", async () => {
    open(8);
    for (let failures = 0; failures < 3; failures++) {
      gate.pause(await one(), "throttled");
      gate.leave();
      await clock.advance(gate.pausedForMs);
    }
    const passage = await one();
    gate.succeeded();
    gate.pause(passage, "throttled");
    expect(gate.pausedForMs).to.equal(525);
  });

  it("sends a single one ahead as soon as nobody was there once", async () => {
    open(8);
    gate.pause(await one(), "absent", 0);
    gate.leave();
    await clock.advance(1);
    enter(8);
    expect(await names()).to.deep.equal([1]);
  });

  it("sends one ahead after nobody was there, waits longer each time, and is wide again soon after", async () => {
    open(8);
    const pauses: number[] = [];
    for (let failures = 0; failures < 7; failures++) {
      const passage = await one();
      gate.pause(passage, "absent");
      gate.leave();
      pauses.push(gate.pausedForMs);
      await clock.advance(gate.pausedForMs);
    }
    // Half of 1, 2, 4, … 30 s, and half of a tenth of that.
    expect(pauses).to.deep.equal([525, 1_050, 2_100, 4_200, 8_400, 15_750, 15_750]);
    enter(8);
    expect(await names()).to.deep.equal([1]);
    gate.succeeded();
    gate.leave();
    expect(await names()).to.deep.equal([1, 2, 3]);
    for (let at = 0; at < 6; at++) gate.succeeded();
    expect(await names()).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
