// The actor system killed at every moment at which it touches the world, and at every pair of them, and started again.
import { expect } from "chai";
import { ActorSystem } from "../../../src/runtime/driver.ts";
import { ActorHost } from "./actor-host.ts";
import type { BellEvent } from "./bell-chart.ts";

const ADDRESS = "bell/1";

/** A client's wishes, in order. An event that was not acknowledged is sent again in the next life. */
const SCRIPT: readonly BellEvent[] = [0, 1, 2, 3].map((at) => ({ type: "bell.note", at }));
const EFFECTS = ["greet", "play 0", "record", "play 1", "record", "play 2", "record", "play 3", "record"];

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
        await system.send(ADDRESS, next);
        if (life.isOver) return false;
      }
      await host.clock.advance(5_000);
      return true;
    });
    if (finished === true && !life.isOver) return at === deaths.length;
  }
  return false;
}

async function expectSound(host: ActorHost, deaths: readonly number[]): Promise<void> {
  const when = `killed at steps ${deaths.join(" and ")}`;
  const record = await host.recordOf(ADDRESS);
  expect(record?.context, when).to.deep.equal({ notes: SCRIPT.length, rings: 0 });
  expect(host.fatal, when).to.deep.equal([]);
  // A life does the effects of the steps that it has committed, in their order, and none twice.
  let from = 0;
  for (const effect of host.done) {
    const at = EFFECTS.indexOf(effect, from);
    expect(at, `${when}: ${effect} in order, and once`).to.be.at.least(from);
    from = at + 1;
  }
  const ofLast = host.performed.filter(({ life }) => life === deaths.length + 1).length;
  expect(
    host.done.slice(host.done.length - ofLast),
    `${when}: the last life does all of its own`,
  ).to.deep.equal(EFFECTS.slice(EFFECTS.length - ofLast));
}

describe("an actor system that is killed", () => {
  it("does all its effects when it is not", async () => {
    const host = new ActorHost();
    await survive(host, []);
    expect(host.done).to.deep.equal(EFFECTS);
    await expectSound(host, []);
  });

  it("goes on after a death at any step", async () => {
    let lastStep = 1;
    for (; ; lastStep++) {
      const host = new ActorHost();
      const hasDied = await survive(host, [lastStep]);
      await expectSound(host, [lastStep]);
      if (!hasDied) break;
    }
    expect(lastStep, "there are many moments to die in").to.be.greaterThan(30);
  });

  it("goes on after a death at any step, and another at any step of the recovery", async () => {
    let pairs = 0;
    for (let first = 1; await survive(new ActorHost(), [first]); first++)
      for (let second = 1; ; second++) {
        const host = new ActorHost();
        const hasDied = await survive(host, [first, second]);
        await expectSound(host, [first, second]);
        if (!hasDied) break;
        pairs++;
      }
    expect(pairs).to.be.greaterThan(370);
  });
});
