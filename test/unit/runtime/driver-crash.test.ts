// The actor system killed at every moment at which it touches the world, and at every pair of them, and started again.
import { expect } from "chai";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import { ActorHost } from "../../support/actor-host.ts";
import type { BellEvent } from "../../support/bell-chart.ts";

const ADDRESS = "bell/1";

/** A client's wishes, in order. An event that was not acknowledged is sent again in the next life. */
const SCRIPT: readonly (BellEvent | { readonly passMs: number })[] = [
  { type: "bell.note", at: 0 },
  { type: "bell.arm", name: "alarm", delayMs: 1_000 },
  { type: "bell.note", at: 1 },
  { passMs: 600 },
  { type: "bell.note", at: 2 },
  { passMs: 600 },
];
const EFFECTS = ["greet", "play 0", "record", "play 1", "record", "play 2", "record", "announceRing"];

/** Lives through the script with the given deaths; false when there was nothing left to die of in the last of them. */
async function survive(host: ActorHost, deaths: readonly number[]): Promise<boolean> {
  let acknowledged = 0;
  for (const [at, lastStep] of [...deaths, Infinity].entries()) {
    const options = host.begin({ lastStep });
    const { life } = host;
    const finished = await life.live(async () => {
      const system = await ActorSystem.open(options);
      await system.spawn(ADDRESS, "bell", undefined);
      for (; acknowledged < SCRIPT.length; acknowledged++) {
        const next = SCRIPT[acknowledged];
        if (next === undefined) break;
        if ("passMs" in next) await host.clock.advance(next.passMs);
        else await system.send(ADDRESS, next);
        if (life.isOver) return false;
      }
      await host.clock.advance(5_000);
      return true;
    });
    if (finished === true && !life.isOver) return at === deaths.length;
  }
  return false;
}

async function expectAllDone(host: ActorHost, deaths: readonly number[]): Promise<void> {
  const when = `killed at steps ${deaths.join(" and ")}`;
  const record = await host.recordOf(ADDRESS);
  expect(record?.value, when).to.equal("Ringing");
  expect(record?.context, when).to.deep.equal({ notes: 3, rings: 1 });
  expect([record?.outbox, record?.timers], when).to.deep.equal([[], []]);
  expect(host.fatal, when).to.deep.equal([]);
  const firsts = new Map<number, string>();
  for (const [at, effect] of host.performed.entries()) {
    if (!firsts.has(effect.sequence)) firsts.set(effect.sequence, host.done[at] ?? "");
    const before = host.performed[at - 1];
    if (before?.life === effect.life)
      expect(effect.sequence, `${when}: in order, and once in a life`).to.be.greaterThan(before.sequence);
  }
  expect([...firsts.keys()], when).to.deep.equal([...firsts.keys()].sort((left, right) => left - right));
  expect([...firsts.values()], `${when}: each effect at least once`).to.deep.equal(EFFECTS);
}

describe("an actor system that is killed", () => {
  it("has nothing to make up for when it is not", async () => {
    const host = new ActorHost();
    await survive(host, []);
    expect(host.done).to.deep.equal(EFFECTS);
    await expectAllDone(host, []);
  });

  it("goes on after a death at any step", async () => {
    let lastStep = 1;
    for (; ; lastStep++) {
      const host = new ActorHost();
      const hasDied = await survive(host, [lastStep]);
      await expectAllDone(host, [lastStep]);
      if (!hasDied) break;
    }
    expect(lastStep, "there are many moments to die in").to.be.greaterThan(40);
  });

  it("goes on after a death at any step, and another at any step of the recovery", async () => {
    let pairs = 0;
    for (let first = 1; await survive(new ActorHost(), [first]); first++)
      for (let second = 1; ; second++) {
        const host = new ActorHost();
        const hasDied = await survive(host, [first, second]);
        await expectAllDone(host, [first, second]);
        if (!hasDied) break;
        pairs++;
      }
    expect(pairs).to.be.greaterThan(500);
  });
});
