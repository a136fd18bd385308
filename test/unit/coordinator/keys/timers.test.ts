// Timers of actors: rows with the time at which they are due, by the clock that outlives leaders.
import { expect } from "chai";
import { LIMITS } from "../../../../src/config/limits.ts";
import type { SetTimer } from "../../../../src/coordinator/ledger/asks.ts";
import { TIMERS_PREFIX } from "../../../../src/storage/keys.ts";
import { Timer, Timers } from "../../../../src/coordinator/keys/timers.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { ActorRig, bytes } from "./actor-rig.ts";

const timer = (id: string, delayMs: number, to = ""): SetTimer => ({
  ...{ id, delayMs, to },
  event: bytes(`after ${id}`),
  isOptional: false,
});
const MONTH_MS = 31 * 86_400_000;

async function armed(...timers: SetTimer[]): Promise<ActorRig> {
  const rig = await ActorRig.start();
  await rig.send("a go");
  await rig.done("a", { timers });
  return rig;
}

describe("timers of actors", () => {
  it("are never early, by the leader's clock, and wake the leader when they are due", async () => {
    const rig = await armed(timer("t", 1_000));
    const { world } = rig;
    expect(world.state.keys.wakesAtMs).to.equal(world.nowMs + 1_000);
    await rig.pass(999);
    expect(rig.held).to.deep.equal([]);
    await rig.pass(1);
    expect(rig.held).to.deep.equal(["a: after t (timer t)"]);
    expect(await world.countUnder(TIMERS_PREFIX)).to.equal(0);
  });

  it("fire once, over a takeover in the middle of a month", async () => {
    const rig = await armed(timer("t", MONTH_MS));
    rig.world.pass(MONTH_MS - 10);
    await rig.takeOver();
    expect(rig.held).to.deep.equal([]);
    await rig.pass(10);
    await rig.takeOver();
    expect(rig.held).to.deep.equal(["a: after t (timer t)"]);
    await rig.done("a");
    await rig.pass(MONTH_MS);
    expect(rig.held).to.deep.equal([]);
  });

  it("do not move when the wall clock is set, and move by the jump with a new leader", async () => {
    const rig = await armed(timer("t", 1_000));
    rig.world.wallMs += 900_000;
    await rig.pass(999);
    expect(rig.held).to.deep.equal([]);
    await rig.takeOver();
    await rig.pass(0);
    expect(rig.held).to.deep.equal(["a: after t (timer t)"]);
  });

  it("end with the commit that leaves their state, also when their event waits already", async () => {
    const rig = await armed(timer("t", 1_000), timer("u", 500));
    await rig.send("a leave");
    await rig.pass(500);
    // The event of u waits behind `leave`, and u is set anew by it.
    await rig.done("a", { cancelled: ["t", "u"], timers: [timer("u", 2_000)] });
    expect(rig.held).to.deep.equal([]);
    await rig.pass(1_999);
    expect(rig.held).to.deep.equal([]);
    await rig.pass(1);
    expect(rig.held).to.deep.equal(["a: after u (timer u)"]);
    expect(rig.world.state.keys.rows.inside.stopped).to.equal(1);
  });

  it("of the same id replace each other", async () => {
    const rig = await armed(timer("t", 1_000));
    await rig.send("a again");
    await rig.done("a", { timers: [timer("t", 5_000)] });
    await rig.pass(4_999);
    expect(rig.held).to.deep.equal([]);
    await rig.pass(1);
    expect(rig.held).to.deep.equal(["a: after t (timer t)"]);
  });

  it("send messages to others when they are due", async () => {
    const rig = await armed(timer("t", 1_000, "b"));
    await rig.pass(1_000);
    expect(rig.held).to.deep.equal(["b: after t (mail of a)"]);
  });

  it("keep a sealed run open, and are removed when the run is cancelled", async () => {
    const rig = await armed(timer("t", 1_000));
    const { world } = rig;
    await world.seal();
    expect((await world.view()).state).to.equal("Sealed.Active");
    expect((await world.view()).timers).to.deep.equal({ armed: 1, nextInMs: 1_000 });
    await rig.pass(1_000);
    await rig.done("a", { timers: [timer("t", 500)] });
    expect((await world.view()).state).to.equal("Sealed.Active");
    await world.step({ kind: "cancel", answer: () => undefined });
    await rig.pass(500);
    await rig.takeOver();
    expect(rig.held).to.deep.equal([]);
    expect(world.state.keys.wakesAtMs).to.equal(undefined);
    expect((await world.view()).timers).to.equal(undefined);
  });

  it("are refused by name when an actor has too many, or they are due in centuries", async () => {
    const many = Array.from({ length: LIMITS.timersPerActor + 1 }, (_, at) => timer(`t${at}`, 1_000));
    const rig = await armed(...many);
    const why = (): string | undefined => rig.world.state.ledger.failureMessages.top(1)[0]?.message;
    expect(why()).to.match(/it has 65 timers, and an actor may have 64/);
    expect(rig.world.state.keys.timers.armed).to.equal(0);
    const other = await armed(timer("t", 200 * 365 * 86_400_000));
    expect(other.world.state.ledger.failureMessages.top(1)[0]?.message).to.match(/more than a hundred years/);
  });

  it("come off their heap in the order in which they are due, whatever was disarmed", () => {
    const random = seededRandom(14);
    const below = (limit: number): number => Math.floor(random.unit() * limit);
    const timers = new Timers();
    let there: Timer[] = [];
    const parts = { key: "a", event: bytes(""), to: "", isOptional: false, asker: bytes(""), index: 0 };
    for (let number = 0; number < 20_000; number++) {
      const one = new Timer({
        ...parts,
        id: number % 5 === 0 ? "" : "t",
        number,
        dueMs: below(1_000),
        priority: 0,
      });
      timers.arm(one);
      there.push(one);
      if (below(10) > 0) {
        const [gone] = there.splice(below(there.length), 1);
        if (gone !== undefined) timers.disarm(gone);
      }
    }
    there = there.sort((one, other) => one.dueMs - other.dueMs);
    expect(timers.armed).to.equal(there.filter(({ id }) => id !== "").length);
    for (const { dueMs } of there) {
      const next = timers.peek();
      expect(next?.dueMs).to.equal(dueMs);
      if (next !== undefined) timers.disarm(next);
    }
    expect(timers.peek()).to.equal(undefined);
  });
});
