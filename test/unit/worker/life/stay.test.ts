// A stay over its real chart and actor system, in virtual time; a leader and work follow the test.
import { expect } from "chai";
import type { StayLimits } from "../../../../machines/worker-stay.ts";
import { seededRandom } from "../../../../src/base/random.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import { Stay } from "../../../../src/worker/life/stay.ts";
import { useClosers } from "../../../support/closers.ts";
import { VirtualClock } from "../../../support/virtual-clock.ts";
import { workerId } from "../../../support/world-worker.ts";

const NONE: StayLimits = { orphanMs: null, lifetimeMs: null, idleMs: null };

describe("the stay of a worker", () => {
  const closing = useClosers();

  /** A worker in a process, which may be another one's successor on the same machine. */
  async function stayWith(
    limits: Partial<StayLimits>,
    clock = new VirtualClock({ monotonicMs: 0 }),
    store = new MemoryStore(),
  ) {
    const left: string[] = [];
    const work: { idleSinceMs: number | undefined } = { idleSinceMs: clock.monotonicMs() };
    const stay = await Stay.open({
      ...{ workerId: workerId(1), boot: "this boot", store, limits: { ...NONE, ...limits }, clock },
      ...{ random: seededRandom(1), log: silentLogger },
      idleSinceMs: () => work.idleSinceMs,
      onLeaving: (cause) => void left.push(`${cause} at ${clock.monotonicMs()}`),
      onFatal: (error) => {
        throw error;
      },
    });
    closing(() => stay.stop());
    const begin = (): void => void (work.idleSinceMs = undefined);
    const end = (): void => void (work.idleSinceMs = clock.monotonicMs());
    return { stay, left, clock, store, begin, end };
  }

  it("ends when no leader has answered since the start, and once", async () => {
    const { left, clock } = await stayWith({ orphanMs: 30_000 });
    await clock.advance(29_999);
    expect(left).to.deep.equal([]);
    await clock.advance(100_000);
    expect(left).to.deep.equal(["orphan at 30000"]);
  });

  it("counts from the last beat that a leader has answered, and goes on when one answers again", async () => {
    const { stay, left, clock } = await stayWith({ orphanMs: 30_000 });
    await clock.advance(5_000);
    stay.leaderAnswered();
    await clock.advance(100_000);
    stay.leaderLost(95_000);
    await clock.advance(19_000);
    stay.leaderAnswered();
    await clock.advance(100_000);
    expect([stay.state, left]).to.deep.equal(["Idle", []]);
    stay.leaderLost(clock.monotonicMs() - 10_000);
    await clock.advance(20_000);
    expect(left).to.deep.equal(["orphan at 244000"]);
  });

  it("ends for want of work only while a leader answers, and an item that came and went counts", async () => {
    const { stay, left, clock, begin, end } = await stayWith({ idleMs: 10_000 });
    await clock.advance(60_000);
    stay.leaderAnswered();
    await clock.advance(8_000);
    // Between two looks.
    end();
    await clock.advance(8_000);
    begin();
    await clock.advance(60_000);
    expect([stay.state, left]).to.deep.equal(["Working", []]);
    end();
    await clock.advance(9_000);
    expect(left).to.deep.equal([]);
    await clock.advance(2_000);
    expect(left).to.deep.equal(["idle at 146000"]);
  });

  it("ends after its time also when it works, and a process that was killed does not lengthen that", async () => {
    const first = await stayWith({ lifetimeMs: 60_000 });
    first.stay.leaderAnswered();
    first.begin();
    await first.clock.advance(40_000);
    await first.stay.stop();
    const next = await stayWith({ lifetimeMs: 60_000 }, first.clock, first.store);
    next.begin();
    await next.clock.advance(25_000);
    expect([first.left, next.left]).to.deep.equal([[], ["lifetime at 60000"]]);
    await next.stay.stop();
    const third = await stayWith({ lifetimeMs: 60_000 }, first.clock, first.store);
    await third.clock.advance(59_000);
    expect(third.left).to.deep.equal([]);
  });
});
