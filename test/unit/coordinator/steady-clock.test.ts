// A wall clock that is set while a run goes on, or between two leaders: nothing that waits waits longer for it, and no limit comes
// sooner.
import { expect } from "chai";
import { World } from "../../support/world.ts";
import { ERROR } from "../../support/world-worker.ts";
import type { WorldWorker } from "../../support/world-worker.ts";

const HOUR_MS = 3_600_000;
/** No item waits for longer. */
const BACKOFF_MS = 61_000;
const TIME_LIMIT_MS = 600_000;

describe("a wall clock that is set", () => {
  let ledger: World;
  let worker: WorldWorker;

  beforeEach(async () => {
    ledger = await World.start({ limits: { timeLimitMs: TIME_LIMIT_MS }, isChecked: false });
    worker = await ledger.worker(1, { slots: 1 });
    await ledger.submit(["a"]);
    await worker.ask(1);
  });

  async function fail(): Promise<void> {
    await worker.report(worker.held, ERROR);
    expect(ledger.state.ledger.tally.count("delayed")).to.equal(1);
  }

  async function attemptAfter(ms: number): Promise<number | undefined> {
    await ledger.watch(ms, [worker]);
    if (worker.held.length === 0) await worker.ask(1);
    return worker.held[0]?.attempt;
  }

  it("back by an hour lets an item wait no longer than it would have", async () => {
    await fail();
    ledger.wallMs -= HOUR_MS;
    expect(await attemptAfter(BACKOFF_MS)).to.equal(2);
  });

  it("back by an hour before a restart lets it wait no longer than anything waits", async () => {
    await fail();
    ledger.wallMs -= HOUR_MS;
    await ledger.lead();
    await worker.hello();
    expect(await attemptAfter(BACKOFF_MS)).to.equal(2);
  });

  it("forward by an hour does not end an item's wait", async () => {
    await fail();
    ledger.wallMs += HOUR_MS;
    await ledger.step({ kind: "scan" });
    expect(ledger.state.ledger.tally.count("delayed")).to.equal(1);
    expect(await attemptAfter(BACKOFF_MS)).to.equal(2);
  });

  for (const [direction, stepMs] of [
    ["forward", HOUR_MS],
    ["back", -HOUR_MS],
  ] as const)
    it(`${direction} by an hour lets the run's time go on as it was`, async () => {
      ledger.wallMs += stepMs;
      await ledger.watch(TIME_LIMIT_MS - 1_000, [worker]);
      expect((await ledger.view()).pauseReason).to.equal(null);
      await ledger.watch(2_000, [worker]);
      expect((await ledger.view()).pauseReason).to.match(/^it began or was resumed 10m ago/);
    });

  it("back by an hour before a restart does not give the run that hour as well", async () => {
    ledger.wallMs -= HOUR_MS;
    await ledger.lead();
    await worker.hello();
    await ledger.watch(TIME_LIMIT_MS + 1_000, [worker]);
    expect((await ledger.view()).pauseReason).to.match(/^it began or was resumed 10m ago/);
  });
});
