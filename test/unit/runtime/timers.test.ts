import { expect } from "chai";
import { DurableTimers } from "../../../src/runtime/timers.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

function timersOn(clock: VirtualClock): { timers: DurableTimers; fired: string[] } {
  const fired: string[] = [];
  return { fired, timers: new DurableTimers(clock, (address, { name }) => fired.push(`${address} ${name}`)) };
}

const alarm = { name: "alarm", event: "due", delayMs: 100 };

describe("durable timers", () => {
  it("keep of a timer what a restart needs, and nothing else", () => {
    const { timers } = timersOn(new VirtualClock({ wallMs: 5_000 }));
    const asked = { ...alarm, note: "not for the disk" };
    expect(timers.row(asked)).to.deep.equal({ ...alarm, dueWallMs: 5_100 });
  });

  it("fire a row once, however often it is seen again before it is out of the record", async () => {
    const clock = new VirtualClock();
    const { timers, fired } = timersOn(clock);
    const rows = [timers.row(alarm)];
    timers.sync("bell/1", rows);
    timers.sync("bell/1", rows);
    expect(clock.armed).to.equal(1);
    await clock.advance(100);
    timers.sync("bell/1", rows);
    await clock.advance(1_000);
    expect([fired, clock.armed]).to.deep.equal([["bell/1 alarm"], 0]);
  });

  it("tell addresses apart", async () => {
    const clock = new VirtualClock();
    const { timers, fired } = timersOn(clock);
    timers.sync("bell/1", [timers.row(alarm)]);
    timers.sync("bell/2", [timers.row({ ...alarm, delayMs: 50 })]);
    timers.sync("bell/1", []);
    await clock.advance(1_000);
    expect(fired).to.deep.equal(["bell/2 alarm"]);
  });

  it("count from when they were asked for, not from when the commit was answered", async () => {
    const clock = new VirtualClock();
    const { timers } = timersOn(clock);
    const row = timers.row(alarm);
    await clock.advance(30);
    timers.sync("bell/1", [row]);
    expect(clock.nextDueInMs).to.equal(70);
  });

  it("stop for good", async () => {
    const clock = new VirtualClock();
    const { timers, fired } = timersOn(clock);
    timers.sync("bell/1", [timers.row(alarm)]);
    timers.stop();
    timers.sync("bell/2", [timers.row(alarm)]);
    timers.stop();
    expect(clock.armed).to.equal(0);
    await clock.advance(1_000);
    expect(fired).to.deep.equal([]);
  });
});
