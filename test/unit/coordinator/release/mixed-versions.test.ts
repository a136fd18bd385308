// Attempts of two versions with one worker at the same time: fetched beforehand, stolen, handed back, given in answer to a call.
import { expect } from "chai";
import type { HeldItem, WorldWorker } from "../../../support/world-worker.ts";
import { ALL, onWorkers, ReleaseRun, share, SUCCESS } from "./release-run.ts";

describe("attempts of two versions with one worker", () => {
  let run: ReleaseRun;
  let one: WorldWorker;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 60 });
    one = await run.worker(1, { slots: 2 });
    await run.create({}, { stages: [share(0.5, { minItems: 1_000 }), ALL] });
  });

  /** By the text of the item. */
  const versions = (items: readonly HeldItem[]): Map<string, string> =>
    new Map(items.map(({ text, pluginVersion = "" }) => [text, pluginVersion]));

  it("are fetched beforehand, each under the version that it is of", async () => {
    await run.fill(one, 20);
    expect(new Set(versions(one.held).values())).to.deep.equal(new Set(["", "2"]));
    const given = one.given.flatMap(({ items }) => items);
    expect(given, "each is given once").to.have.length(20);
  });

  it("keep their version when they are stolen, and when they are handed back", async () => {
    await run.fill(one, 20);
    const before = versions(one.held);
    const two = await run.worker(2, { slots: 20 });
    // It gets the rest first, and then has nothing while some wait with the first one.
    await two.ask(60);
    await run.end(two, () => SUCCESS);
    await two.ask(20);
    await run.watch(500);
    const asked = one
      .framesOf("recall")
      .at(-1)
      ?.attempts.map(({ id }) => Buffer.from(id).toString("hex"));
    const stolen = one.held.filter(({ id }) => asked?.includes(Buffer.from(id).toString("hex")));
    expect(new Set(versions(stolen).values()), "of both versions").to.deep.equal(new Set(["", "2"]));
    await one.handBack(stolen);
    const after = versions(two.held);
    for (const { text } of stolen) expect(after.get(text), text).to.equal(before.get(text));
    const kept = [...one.held];
    await one.handBack(kept);
    await one.beat();
    await run.fill(one, 20);
    const again = new Map([...versions(one.held), ...versions(two.held)]);
    for (const { text } of kept) expect(again.get(text), text).to.equal(before.get(text));
  });

  it("are stolen also where an earlier attempt may have left a checkpoint, as every worker has both versions", async () => {
    await assignAll(run, one, true);
    const two = await run.worker(2, { slots: 20 });
    await two.ask(20);
    await run.watch(500);
    expect(one.framesOf("recall")).to.have.length(1);
  });

  it("keep their version under the next leader, who is told of them", async () => {
    await run.fill(one, 20);
    const before = versions(one.held);
    await run.world.lead();
    expect(await one.reconnect()).to.deep.equal(Array<boolean>(20).fill(true));
    await one.handBack([...one.held]);
    // Until then it is taken for one that does not have the version.
    await one.beat();
    await run.fill(one, 20);
    const after = versions(one.held);
    expect(after.size).to.equal(20);
    for (const [text, version] of after) expect(version, text).to.equal(before.get(text));
  });

  it("come in the one frame that a call is answered with", async () => {
    const hello = { ...one.helloInput([]), takesOneFrame: true };
    await run.world.step(hello as ReturnType<WorldWorker["helloInput"]>);
    await run.world.settle();
    const frames = one.given.length;
    await one.ask(20);
    expect(one.given.length - frames).to.equal(1);
    expect(new Set(versions(one.held).values())).to.deep.equal(new Set(["", "2"]));
    await run.end(one, () => SUCCESS);
    expect((await run.world.view()).done).to.equal(20);
  });
});

describe("a worker that gets the candidate alone", () => {
  for (const [isAgain, asked] of [
    [false, 1],
    [true, 0],
  ] as const)
    it(`steals ${isAgain ? "no items that may have a checkpoint of the old version" : "items that may be tried"}`, async () => {
      const run = await ReleaseRun.start({ items: 12 });
      for (const number of [1, 2]) await run.worker(number, { slots: 2 });
      await run.create({}, { stages: [onWorkers(1, { minItems: 1_000 }), ALL] });
      await run.world.scan();
      const { releases, workers } = run.world.state;
      const isChosen = ({ id }: WorldWorker): boolean => {
        const row = workers.get(id);
        return row !== undefined && releases.deskOf(row) === "candidate";
      };
      const thief = run.workers.find(isChosen);
      const victim = run.workers.find((worker) => worker !== thief);
      if (thief === undefined || victim === undefined) return expect.fail("one of the two is chosen");
      await assignAll(run, victim, isAgain);
      await thief.ask(4);
      await run.watch(500);
      expect(victim.framesOf("recall")).to.have.length(asked);
    });
});

/** The worker gets all items of the run: for the first time, or again after it has handed them back. */
async function assignAll(run: ReleaseRun, worker: WorldWorker, isAgain: boolean): Promise<void> {
  await run.fill(worker, 60);
  if (!isAgain) return;
  await worker.handBack([...worker.held]);
  await worker.beat();
  await run.fill(worker, 60);
  expect(new Set(worker.held.map(({ attempt }) => attempt))).to.deep.equal(new Set([2]));
}
