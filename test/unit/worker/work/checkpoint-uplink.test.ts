import { expect } from "chai";
import { CheckpointUplink } from "../../../../src/worker/work/checkpoint-uplink.ts";
import type { Saved } from "../../../../src/worker/work/execution.ts";
import { assignedItem } from "../../../support/assigned-item.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";

const INTERVAL_MS = 5_000;
const KIB = 1_024;

describe("checkpoints on their way to the coordinator", () => {
  let clock: VirtualClock;
  let uplink: CheckpointUplink;
  let saved: Saved[];
  let rings: number;

  beforeEach(() => {
    clock = new VirtualClock();
    saved = [];
    rings = 0;
    uplink = new CheckpointUplink({ clock, intervalMs: INTERVAL_MS, onDue: () => rings++ });
  });

  /** Item `number` has begun now, and goes on from `given`. */
  function begin(number: number, given = new Uint8Array()): void {
    saved.push({
      assigned: assignedItem(number, { checkpoint: given }),
      checkpoint: given,
      startedMs: clock.monotonicMs(),
    });
  }

  function save(number: number, checkpoint: Uint8Array): void {
    const at = saved.findIndex(({ assigned }) => assigned.itemId[0] === number);
    const before = saved[at];
    if (before === undefined) throw new Error("it does not run");
    saved[at] = { ...before, checkpoint };
    uplink.notice(saved[at]);
  }

  async function untilRung(): Promise<void> {
    const before = rings;
    for (let step = 0; step < 1_000; step++) {
      if (rings > before) return;
      await clock.advance(10);
    }
    expect(rings).to.be.above(before);
  }

  const sent = (): [number | undefined, number | undefined][] | undefined =>
    uplink
      .next({ saved })
      ?.checkpoints?.map(({ attempt, checkpoint }) => [attempt?.itemId?.[0], checkpoint?.[0]]);

  it("are sent once, when the attempt has run for the interval, and named by their attempt", async () => {
    begin(1);
    save(1, Uint8Array.of(7));
    expect([sent(), rings]).to.deep.equal([undefined, 0]);
    await clock.advance(INTERVAL_MS - 1);
    expect([sent(), rings]).to.deep.equal([undefined, 0]);
    await clock.advance(1);
    expect(rings).to.equal(1);
    const { itemId, attempt, epoch } = assignedItem(1);
    expect(uplink.next({ saved })).to.deep.equal({
      checkpoints: [{ attempt: { itemId, attempt }, epoch, checkpoint: Uint8Array.of(7) }],
    });
    expect(sent()).to.equal(undefined);
    await clock.advance(10 * INTERVAL_MS);
    expect([sent(), rings, clock.armed]).to.deep.equal([undefined, 1, 0]);
  });

  it("of one attempt are sent at most once in the interval, the newest", async () => {
    begin(1);
    await clock.advance(INTERVAL_MS);
    save(1, Uint8Array.of(1));
    await clock.advance();
    expect(sent()).to.deep.equal([[1, 1]]);
    save(1, Uint8Array.of(2));
    await clock.advance(INTERVAL_MS - 1);
    save(1, Uint8Array.of(3));
    expect([sent(), rings]).to.deep.equal([undefined, 1]);
    await clock.advance(1);
    expect([sent(), rings]).to.deep.equal([[[1, 3]], 2]);
  });

  it("are not sent that the coordinator gave, nor of what has ended meanwhile, nor empty ones", async () => {
    begin(1, Uint8Array.of(1));
    begin(2);
    begin(3);
    save(2, Uint8Array.of(2));
    save(3, new Uint8Array());
    saved = saved.filter(({ assigned }) => assigned.itemId[0] !== 2);
    await clock.advance(INTERVAL_MS);
    expect([sent(), clock.armed]).to.deep.equal([undefined, 0]);
  });

  it("take no more bytes than the rate allows, those that wait longest first", async () => {
    for (const number of [1, 2, 3]) begin(number);
    for (const number of [3, 2, 1]) save(number, new Uint8Array(600 * KIB).fill(number));
    await clock.advance(INTERVAL_MS);
    expect(sent()).to.deep.equal([[1, 1]]);
    save(1, new Uint8Array(600 * KIB).fill(9));
    const sentAtMs: number[] = [];
    for (const next of [2, 3, 1]) {
      await untilRung();
      sentAtMs.push(clock.monotonicMs());
      expect(sent()).to.deep.equal([[next, next === 1 ? 9 : next]]);
      expect(sent()).to.equal(undefined);
    }
    for (const [at, ms] of sentAtMs.slice(1).entries())
      expect(ms - (sentAtMs[at] ?? 0)).to.be.within(2_300, 3_000);
  });

  it("share a frame as far as it goes", async () => {
    for (const number of [1, 2, 3]) begin(number);
    save(1, new Uint8Array(400 * KIB).fill(1));
    save(2, new Uint8Array(400 * KIB).fill(2));
    save(3, new Uint8Array(400 * KIB).fill(3));
    await clock.advance(INTERVAL_MS);
    expect(sent()).to.deep.equal([
      [1, 1],
      [2, 2],
    ]);
  });

  it("are sent again on another stream", async () => {
    begin(1);
    save(1, Uint8Array.of(7));
    await clock.advance(INTERVAL_MS);
    expect(sent()).to.deep.equal([[1, 7]]);
    uplink.forget();
    await clock.advance(1);
    expect(sent()).to.deep.equal([[1, 7]]);
    expect(sent()).to.equal(undefined);
  });

  it("that nobody asked for when they were due are sent when somebody does", async () => {
    begin(1);
    save(1, Uint8Array.of(7));
    await clock.advance(3 * INTERVAL_MS);
    save(1, Uint8Array.of(8));
    expect([sent(), rings]).to.deep.equal([[[1, 8]], 1]);
  });

  it("leave no timer behind", () => {
    begin(1);
    save(1, Uint8Array.of(7));
    uplink.close();
    expect(clock.armed).to.equal(0);
  });
});
