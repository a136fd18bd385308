import { expect } from "chai";
import type { ActorSystem } from "../../../src/runtime/driver.ts";
import type { BellEvent } from "../../support/bell-chart.ts";
import type { Store } from "../../../src/storage/store.ts";
import { CommitGate } from "../../support/commit-gate.ts";
import { ActorHost } from "../../support/actor-host.ts";

const ADDRESS = "bell/1";
const HOUR_MS = 3_600_000;
const arm = (delayMs: number, name = "alarm"): BellEvent => ({ type: "bell.arm", name, delayMs });

async function withBell(host: ActorHost, store?: (inner: Store) => Store): Promise<ActorSystem> {
  const system = await host.open(store && { store });
  await system.spawn(ADDRESS, "bell", undefined);
  await host.clock.advance();
  return system;
}

const rings = (system: ActorSystem): number => (system.contextOf(ADDRESS) as { rings: number }).rings;
const armedNames = async (host: ActorHost): Promise<string[] | undefined> =>
  (await host.recordOf(ADDRESS))?.timers.map(({ name }) => name);

describe("timers of actors", () => {
  it("fire once, when they are due, and are used up", async () => {
    const host = new ActorHost();
    const system = await withBell(host);
    await system.send(ADDRESS, arm(1_000));
    await host.clock.advance(999);
    expect(rings(system)).to.equal(0);
    await host.clock.advance(1);
    expect([rings(system), system.stateOf(ADDRESS)]).to.deep.equal([1, "Ringing"]);
    await host.clock.advance(HOUR_MS);
    expect([rings(system), await armedNames(host)]).to.deep.equal([1, []]);
  });

  it("are written and taken away in the same commit as the step that asks for it", async () => {
    const host = new ActorHost();
    const system = await withBell(host);
    const steps = host.life.steps;
    await system.send(ADDRESS, arm(1_000));
    // One commit: before it and after it.
    expect(host.life.steps - steps).to.equal(2);
    expect(await armedNames(host)).to.deep.equal(["alarm"]);
    await host.clock.advance(1_000);
    const fired = await host.recordOf(ADDRESS);
    expect([fired?.value, fired?.timers]).to.deep.equal(["Ringing", []]);
  });

  it("do not fire when they are cancelled", async () => {
    const host = new ActorHost();
    const system = await withBell(host);
    await system.send(ADDRESS, arm(1_000));
    await system.send(ADDRESS, arm(2_000, "second"));
    await system.send(ADDRESS, { type: "bell.cancel", name: "alarm" } satisfies BellEvent);
    expect([host.clock.armed, await armedNames(host)]).to.deep.equal([1, ["second"]]);
    await host.clock.advance(1_500);
    expect(rings(system)).to.equal(0);
    await host.clock.advance(500);
    expect(rings(system)).to.equal(1);
  });

  it("are replaced by one of the same name, earlier or later", async () => {
    for (const delayMs of [300, 3_000]) {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, arm(1_000));
      await system.send(ADDRESS, arm(delayMs));
      expect(host.clock.armed).to.equal(1);
      await host.clock.advance(delayMs - 1);
      expect(rings(system)).to.equal(0);
      await host.clock.advance(1);
      expect(rings(system)).to.equal(1);
      await host.clock.advance(HOUR_MS);
      expect(rings(system)).to.equal(1);
    }
  });

  for (const [what, event, expected] of [
    ["cancels", { type: "bell.cancel", name: "alarm" }, { rings: 0, armed: [], later: 0 }],
    ["replaces", arm(5_000), { rings: 0, armed: ["alarm"], later: 1 }],
    ["has nothing to do with", { type: "bell.note", at: 0 }, { rings: 1, armed: [], later: 1 }],
  ] as const)
    it(`that come due while the commit of an event is under way that ${what} them`, async () => {
      const host = new ActorHost();
      const gate = new CommitGate("open");
      const system = await withBell(host, gate.over);
      await system.send(ADDRESS, arm(1_000));
      gate.shut();
      const sent = system.send(ADDRESS, event);
      await host.clock.advance(1_000);
      expect([gate.waiting, rings(system)]).to.deep.equal([1, 0]);
      gate.open();
      await sent;
      await host.clock.advance(1_000);
      expect([rings(system), await armedNames(host)]).to.deep.equal([expected.rings, expected.armed]);
      await host.clock.advance(HOUR_MS);
      expect([rings(system), await armedNames(host)]).to.deep.equal([expected.later, []]);
    });

  it("are used up by an event that the chart ignores or throws at", async () => {
    for (const type of ["bell.armNothing", "bell.armFault"] as const) {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, { type, delayMs: 100 } satisfies BellEvent);
      await host.clock.advance(100);
      expect(await armedNames(host), type).to.deep.equal([]);
      const reported = host.log.lines.length;
      await system.send(ADDRESS, { type: "bell.note", at: 0 } satisfies BellEvent);
      await host.clock.advance(HOUR_MS);
      expect(host.log.lines.length, `${type}: it does not fire again`).to.equal(reported + 1);
      await system.close();
      const next = await host.open();
      await host.clock.advance(HOUR_MS);
      expect([host.log.lines.length, next.stateOf(ADDRESS)]).to.deep.equal([reported + 1, "Quiet"]);
    }
  });

  it("can be armed again by the event that they send", async () => {
    const host = new ActorHost();
    const system = await withBell(host);
    await system.send(ADDRESS, arm(100));
    await host.clock.advance(100);
    await system.send(ADDRESS, arm(100));
    await host.clock.advance(100);
    expect(rings(system)).to.equal(2);
  });

  it("longer than Node can wait for are waited for", async () => {
    const host = new ActorHost();
    const system = await withBell(host);
    const monthMs = 31 * 24 * HOUR_MS;
    await system.send(ADDRESS, arm(monthMs));
    await host.clock.advance(monthMs - 1);
    expect(rings(system)).to.equal(0);
    await host.clock.advance(1);
    expect(rings(system)).to.equal(1);
  });

  describe("over a restart", () => {
    it("have left what they had left, the time that the machine was off included", async () => {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, arm(10_000));
      await host.clock.advance(3_000);
      await system.close();
      const next = await host.open({ offMs: 2_000 });
      expect(host.clock.nextDueInMs).to.equal(5_000);
      await host.clock.advance(4_999);
      expect(rings(next)).to.equal(0);
      await host.clock.advance(1);
      expect(rings(next)).to.equal(1);
    });

    it("fire at once when they are overdue, in the order of arming, and only once", async () => {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, arm(1_000));
      await system.send(ADDRESS, arm(900, "second"));
      await system.close();
      const next = await host.open({ offMs: HOUR_MS });
      await host.clock.advance();
      expect([rings(next), await armedNames(host)]).to.deep.equal([2, []]);
      await next.close();
      const last = await host.open();
      await host.clock.advance(HOUR_MS);
      expect(rings(last)).to.equal(2);
    });

    it("keep counting over several restarts", async () => {
      const host = new ActorHost();
      let system = await withBell(host);
      await system.send(ADDRESS, arm(10_000));
      for (let restart = 0; restart < 4; restart++) {
        await host.clock.advance(1_000);
        await system.close();
        system = await host.open({ offMs: 1_000 });
      }
      expect(host.clock.nextDueInMs).to.equal(2_000);
    });
  });

  describe("and a wall clock that jumps", () => {
    for (const jumpMs of [HOUR_MS, -HOUR_MS])
      it(`do not notice ${jumpMs / HOUR_MS} h while the process runs`, async () => {
        const host = new ActorHost();
        const system = await withBell(host);
        await system.send(ADDRESS, arm(10_000));
        host.clock.jumpWall(jumpMs);
        // Another step of the same actor goes over its timers again.
        await system.send(ADDRESS, { type: "bell.note", at: 0 } satisfies BellEvent);
        await host.clock.advance(9_999);
        expect(rings(system)).to.equal(0);
        await host.clock.advance(1);
        expect(rings(system)).to.equal(1);
      });

    for (const jumpMs of [HOUR_MS, -HOUR_MS])
      it(`do not notice ${jumpMs / HOUR_MS} h between a step and its commit`, async () => {
        const host = new ActorHost();
        const system = await withBell(host);
        const sent = system.send(ADDRESS, arm(10_000));
        await Promise.resolve();
        host.clock.jumpWall(jumpMs);
        await sent;
        expect(host.clock.nextDueInMs).to.equal(10_000);
      });

    it("are late by no more than their own delay when it went back over a restart", async () => {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, arm(10_000));
      await host.clock.advance(3_000);
      await system.close();
      host.clock.jumpWall(-HOUR_MS);
      await host.open();
      expect(host.clock.nextDueInMs).to.equal(10_000);
    });

    it("fire at once, and not before the restart, when it went ahead", async () => {
      const host = new ActorHost();
      const system = await withBell(host);
      await system.send(ADDRESS, arm(10_000));
      await system.close();
      host.clock.jumpWall(HOUR_MS);
      const next = await host.open();
      expect(host.clock.nextDueInMs).to.equal(0);
      await host.clock.advance();
      expect(rings(next)).to.equal(1);
    });
  });

  it("are taken in by a mailbox that is full", async () => {
    const host = new ActorHost();
    const gate = new CommitGate("open");
    const system = await withBell(host, gate.over);
    await system.send(ADDRESS, arm(1_000));
    gate.shut();
    const sent = [system.send(ADDRESS, { type: "bell.note", at: 0 } satisfies BellEvent)];
    await host.clock.advance();
    for (let at = 0; at < 1_024; at++) sent.push(system.send(ADDRESS, { type: "unheard of" }));
    await host.clock.advance(1_000);
    gate.open();
    await Promise.all(sent);
    await host.clock.advance();
    expect([rings(system), host.fatal]).to.deep.equal([1, []]);
  });
});
