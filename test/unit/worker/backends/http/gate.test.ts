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

  it("lets nobody pass during a pause, which everybody waits for, and one behind it", async () => {
    open(4);
    gate.pause(await one(), 10_000);
    gate.leave();
    enter(2);
    await clock.advance(9_999);
    const during = await names();
    // Half of the tenth by which a pause is spread.
    await clock.advance(501);
    expect([during, await names(), clock.armed]).to.deep.equal([[], [1], 0]);
  });

  it("takes setbacks of requests that were under way together for one, and the longest pause of them", async () => {
    open(8);
    const together = await Promise.all([one(), one(), one(), one()]);
    for (const [at, passage] of together.entries()) gate.pause(passage, [3_000, 1_000, 9_000, 2_000][at]);
    expect(gate.pausedForMs).to.equal(9_450);
  });

  it("lets half as many pass after a refusal, however many of those that were under way are refused, and all others go on", async () => {
    open(8);
    const together = await Promise.all(Array.from({ length: 8 }, () => one()));
    await clock.advance(100);
    for (const passage of together) {
      gate.refused(passage, 30_000);
      gate.leave();
    }
    enter(8);
    await clock.advance(29_000);
    expect(await names()).to.deep.equal([1, 2, 3, 4]);
  });

  it("keeps requests apart, so that a rate is met of which one connection would be too much", async () => {
    open(8);
    const passage = await one();
    await clock.advance(10);
    gate.refused(passage, 1_000);
    gate.leave();
    const atMs: number[] = [];
    for (let count = 0; count < 3; count++) {
      const entering = gate.enter(never);
      while (gate.pausedForMs > 0) await clock.advance(1);
      await entering;
      gate.leave();
      atMs.push(clock.monotonicMs());
    }
    // Half of a request of 10 ms.
    expect(atMs.map((at) => at - (atMs[0] ?? 0))).to.deep.equal([0, 20, 40]);
  });

  it("finds back to its width when nothing is refused any more, and forgets that something was", async () => {
    open(8);
    const passage = await one();
    await clock.advance(100);
    gate.refused(passage, 1_000);
    gate.leave();
    expect(gate.isThrottled).to.equal(true);
    for (let answers = 0; gate.isThrottled && answers < 1_000; answers++) {
      const entering = gate.enter(never);
      await clock.advance(1_000);
      const next = await entering;
      if (next !== undefined) gate.succeeded(next);
      gate.leave();
    }
    enter(8);
    expect(await names()).to.have.length(8);
  });

  it("forgets earlier setbacks at an answer", async () => {
    open(8);
    for (let failures = 0; failures < 3; failures++) {
      gate.pause(await one());
      gate.leave();
      await clock.advance(gate.pausedForMs);
    }
    const passage = await one();
    gate.succeeded(passage);
    gate.pause(passage);
    expect(gate.pausedForMs).to.equal(525);
  });

  it("sends a single one ahead as soon as nobody was there once", async () => {
    open(8);
    gate.pause(await one(), 0);
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
      gate.pause(passage);
      gate.leave();
      pauses.push(gate.pausedForMs);
      await clock.advance(gate.pausedForMs);
    }
    // Half of 1, 2, 4, … 30 s, and half of a tenth of that.
    expect(pauses).to.deep.equal([525, 1_050, 2_100, 4_200, 8_400, 15_750, 15_750]);
    const first = await one();
    enter(8);
    expect(await names()).to.deep.equal([]);
    gate.succeeded(first);
    gate.leave();
    expect(await names()).to.deep.equal([1, 2]);
    for (let at = 0; at < 6; at++) gate.succeeded(first);
    expect(await names()).to.deep.equal([1, 2, 3, 4, 5, 6, 7, 8]);
  });
});
