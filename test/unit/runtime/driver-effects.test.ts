import { expect } from "chai";
import { seededRandom, backoffMs } from "../../../src/base/random.ts";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import type { Perform } from "../../../src/runtime/driver.ts";
import { ActorHost, withBell } from "./actor-host.ts";
import type { BellEvent } from "./bell-chart.ts";

const ADDRESS = "bell/1";
const note = (at: number): BellEvent => ({ type: "bell.note", at });

/** Fails the effects of one type so many times, and counts all tries of it. */
function failing(type: string, times: number): { perform: Perform; tries: number } {
  const counter = {
    tries: 0,
    perform: (effect: { readonly type: string }): void => {
      if (effect.type !== type) return;
      counter.tries++;
      if (counter.tries <= times) throw new Error(`cannot ${type}`);
    },
  };
  return counter;
}

describe("effects of actors", () => {
  it("are done one after the other, in order, over several steps", async () => {
    const host = new ActorHost();
    let running = 0;
    const system = await host.open({
      perform: async () => {
        running++;
        expect(running).to.equal(1);
        await new Promise<void>((resolve) => host.clock.after(10, resolve));
        running--;
      },
    });
    await system.spawn(ADDRESS, "bell", undefined);
    for (const at of [0, 1, 2]) await system.send(ADDRESS, note(at));
    expect(host.done).to.deep.equal([]);
    await host.clock.advance(1_000);
    expect(host.done).to.deep.equal(["greet", "play 0", "record", "play 1", "record", "play 2", "record"]);
  });

  it("are not done while their commit is not answered (C2)", async () => {
    const host = new ActorHost();
    // Steps: scan, answer, spawn's commit, answer, greet, done, the note's commit, and no answer.
    const options = host.begin({ lastStep: 8 });
    await host.life.live(async () => {
      const system = await ActorSystem.open(options);
      await system.spawn(ADDRESS, "bell", undefined);
      await host.clock.advance();
      await system.send(ADDRESS, note(0));
    });
    await host.clock.advance(60_000);
    expect((await host.recordOf(ADDRESS))?.context).to.deep.equal({ notes: 1, rings: 0 });
    expect(host.done).to.deep.equal(["greet"]);
  });

  it("of one address do not wait for those of another", async () => {
    const host = new ActorHost();
    const system = await host.open({
      perform: ({ address }) => (address === "bell/1" ? new Promise<void>(() => {}) : undefined),
    });
    await system.spawn("bell/1", "bell", undefined);
    await system.spawn("bell/2", "bell", undefined);
    await host.clock.advance();
    expect(host.performed.map(({ address }) => address)).to.deep.equal(["bell/2"]);
  });

  it("that fail are tried again with backoff, and those behind them wait", async () => {
    const host = new ActorHost();
    const play = failing("play", 3);
    const system = await host.open(play);
    await system.spawn(ADDRESS, "bell", undefined);
    await system.send(ADDRESS, note(0));
    await host.clock.advance();
    const random = seededRandom(1);
    for (const attempt of [1, 2, 3]) {
      expect(play.tries).to.equal(attempt);
      const waitMs = backoffMs({ baseMs: 100, ceilingMs: 10_000 }, attempt, random);
      expect(host.clock.nextDueInMs).to.be.closeTo(waitMs, 1e-3);
      expect(host.done).to.deep.equal(["greet"]);
      await host.clock.advance(host.clock.nextDueInMs);
    }
    expect(play.tries).to.equal(4);
    expect(host.done).to.deep.equal(["greet", "play 0", "record"]);
    const errors = host.log.lines.filter(({ level }) => level === "error");
    expect(
      errors.map(({ fields: { address, effect, attempt } }) => [address, effect, attempt]),
    ).to.deep.equal([
      [ADDRESS, "play", 1],
      [ADDRESS, "play", 2],
      [ADDRESS, "play", 3],
    ]);
    for (const { fields } of errors) expect(fields["err"]).to.be.instanceOf(Error);
  });

  it("that fail do not hold up the actor's events", async () => {
    const { system } = await withBell(failing("play", Infinity));
    for (const at of [0, 1, 2]) await system.send(ADDRESS, note(at));
    expect(system.contextOf(ADDRESS)).to.include({ notes: 3 });
  });

  it("that were not done are not done by the next process, which goes on from the snapshot", async () => {
    const { host, system } = await withBell({ perform: () => new Promise<void>(() => {}) });
    await system.send(ADDRESS, note(0));
    const next = await host.open();
    await next.send(ADDRESS, note(1));
    await host.clock.advance();
    expect(next.contextOf(ADDRESS)).to.include({ notes: 2 });
    expect(host.done).to.deep.equal(["play 1", "record"]);
  });

  it("that fail while the system closes get one try more, and those behind them none", async () => {
    const host = new ActorHost();
    const play = failing("play", Infinity);
    const system = await host.open(play);
    await system.spawn(ADDRESS, "bell", undefined);
    await system.send(ADDRESS, note(0));
    await host.clock.advance();
    const late = system.send(ADDRESS, note(1));
    await Promise.all([late, system.close()]);
    expect([play.tries, host.clock.armed]).to.deep.equal([2, 0]);
    expect(host.done).to.deep.equal(["greet"]);
  });

  it("may send events, to their own address too", async () => {
    const host = new ActorHost();
    const system = await host.open({
      perform: async (effect) => {
        if (effect.type === "greet") await system.send(ADDRESS, note(0));
      },
    });
    await system.spawn(ADDRESS, "bell", undefined);
    await host.clock.advance();
    expect(host.done).to.deep.equal(["greet", "play 0", "record"]);
  });
});
