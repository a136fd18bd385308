import { expect } from "chai";
import type { ReportedOutcome } from "../../../../src/coordinator/turn/session-frame.ts";
import { texts, World } from "../../../support/world.ts";
import { ERROR } from "../../../support/world-worker.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";

const SHARED: ReportedOutcome = { kind: "crash_shared", message: "the server died" };
/** Longer than the longest wait after a first failure, shorter than anybody's patience. */
const BACKOFF_MS = 1_250;

/** More than a shelf holds, in few items. */
function large(count: number): string[] {
  return texts(count).map((text) => `${text} ${"x".repeat(900_000)}`);
}

interface MuchInHand {
  readonly ledger: World;
  readonly busy: WorldWorker;
  readonly leaving: WorldWorker;
  readonly free: WorldWorker;
}

/** One worker has more in its hands than a shelf holds, one has two small items, and one nothing. */
async function startWithMuchInHand(): Promise<MuchInHand> {
  const ledger = await World.start({ isChecked: false });
  const busy = await ledger.worker(1, { slots: 30, credit: 30 });
  const [leaving, free] = [await ledger.worker(2), await ledger.worker(3)];
  await ledger.submit(large(30));
  await ledger.submit(["a", "b"], { batchNumber: 2 });
  await leaving.ask(2);
  return { ledger, busy, leaving, free };
}

/** Eight workers whose server has died with two items each, and who have asked for more. */
async function startWithEightThatCrashed(items: number): Promise<WorldWorker[]> {
  const ledger = await World.start();
  const workers: WorldWorker[] = [];
  for (let number = 1; number <= 8; number++) workers.push(await ledger.worker(number, { slots: 2 }));
  await ledger.submit(texts(items));
  for (const worker of workers) await worker.ask(2);
  for (const worker of workers) await worker.report([...worker.held], SHARED);
  for (const worker of workers) await worker.ask(2);
  return workers;
}

describe("work that not everybody may have", () => {
  it("gives handed-back items to other workers, also while isolated items fill their queue", async () => {
    const { ledger, busy, leaving, free } = await startWithMuchInHand();
    await busy.report([...busy.held], SHARED);
    await busy.ask(30);
    await leaving.handBack([...leaving.held]);
    expect(ledger.state.ledger.alone.isFull).to.equal(true);
    await free.ask(4);
    expect(free.texts).to.deep.equal(["a", "b"]);
    expect(busy.held.map(({ alone }) => alone)).to.deep.equal([true]);
  });

  it("does not keep what is handed back from others, however much one worker has failed", async () => {
    const { ledger, busy: failing, leaving, free } = await startWithMuchInHand();
    await failing.report([...failing.held], ERROR);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    await leaving.handBack([...leaving.held]);
    expect(ledger.state.ledger.shelf.isFull).to.equal(true);
    await failing.ask(2);
    expect(failing.texts).to.deep.equal(["a", "b"]);
    await free.ask(30);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    expect(free.held, "what the shelf had no room for comes as well").to.have.length(30);
  });

  it("lets an idle worker have items that wait in another's backlog", async () => {
    const ledger = await World.start();
    const [failing, victim] = [
      await ledger.worker(1, { slots: 1, credit: 1 }),
      await ledger.worker(2, { slots: 1 }),
    ];
    await ledger.submit(texts(4));
    await victim.ask(3);
    await failing.report([...failing.held], ERROR);
    await ledger.watch(BACKOFF_MS, ledger.workers);
    expect(ledger.state.ledger.shelf.size).to.equal(1);
    await failing.ask(1);
    expect(victim.framesOf("recall")).to.have.length(1);
  });

  it("is with everybody when nothing else is left", async () => {
    const workers = await startWithEightThatCrashed(16);
    expect(workers.map(({ held }) => held.map(({ alone }) => alone))).to.deep.equal(
      workers.map(() => [true]),
    );
  });

  it("is with a few while there is other work", async () => {
    const workers = await startWithEightThatCrashed(100);
    expect(workers.filter(({ held }) => held.some(({ alone }) => alone))).to.have.length(2);
  });

  it("goes to another worker when one has handed it back unasked, and later to the same again", async () => {
    const ledger = await World.start();
    const [stuck, other] = [await ledger.worker(1, { slots: 2 }), await ledger.worker(2, { slots: 2 })];
    await ledger.submit(["a"]);
    await stuck.ask(1);
    await stuck.report([...stuck.held], SHARED);
    await stuck.ask(1);
    expect(stuck.held.map(({ alone }) => alone)).to.deep.equal([true]);
    await stuck.handBack([...stuck.held]);
    await stuck.ask(1);
    await ledger.watch(20_000, ledger.workers);
    expect(stuck.held).to.have.length(0);
    await other.ask(1);
    expect(other.held.map(({ alone }) => alone)).to.deep.equal([true]);
    await other.handBack([...other.held]);
    await ledger.watch(20_000, ledger.workers);
    expect(stuck.held.map(({ alone }) => alone)).to.deep.equal([true]);
  });
});
