// The part of a worker in a release that is under way, and the items that it gets.
import { expect } from "chai";
import { releasePartOf } from "../../../../src/coordinator/run/release-part.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { TASK_DIGEST } from "../../../support/world.ts";
import type { WorldWorker } from "../../../support/world-worker.ts";
import { ALL, BOTH, CANDIDATE, onWorkers, ReleaseRun, share, STABLE } from "../release/release-run.ts";

describe("the part of a worker in a release", () => {
  let run: ReleaseRun;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 200 });
    for (const number of [1, 2]) await run.worker(number);
  });

  const begin = (stages = [share(0.5, { minItems: 1_000 }), ALL]): Promise<unknown> =>
    run.create({}, { stages });

  function partOf({ id }: WorldWorker): string {
    const row = run.world.state.workers.get(id);
    return row === undefined ? expect.fail("there is no such worker") : releasePartOf(run.world.state, row);
  }

  /** The versions of the items that it gets now, the old one as the empty word. */
  async function versionsOf(worker: WorldWorker): Promise<string[]> {
    await worker.ask(16);
    return [...new Set(worker.held.map(({ pluginVersion = "" }) => pluginVersion))].sort();
  }

  it("is none before a release, and when it is over", async () => {
    const worker = await run.worker(3);
    expect(partOf(worker)).to.equal("");
    await begin();
    expect(partOf(worker)).to.not.equal("");
    await run.steer({ action: "abort", reason: "" });
    expect(partOf(worker)).to.equal("");
  });

  it("is told with the answer about that worker", async () => {
    const operator = new WorldOperator(run.world);
    const [worker] = run.workers as [WorldWorker];
    const told = async (): Promise<string | undefined> => {
      const { releasePart } = await operator.ask((calls) => calls.getWorker({ workerId: worker.id }));
      return releasePart;
    };
    expect(await told()).to.equal(undefined);
    await begin();
    expect(await told()).to.equal(partOf(worker));
  });

  it("is a share of both versions where it has both, and of the old one while the release is held", async () => {
    await begin();
    const [one, two] = run.workers as [WorldWorker, WorldWorker];
    expect(partOf(one)).to.equal(
      "it has both versions, and counts for version 2; 50% of its items are of version 2",
    );
    expect(await versionsOf(one)).to.deep.equal(["", "2"]);
    await run.steer({ action: "pause", reason: "" });
    expect(partOf(two)).to.equal(
      "it has both versions, and counts for version 2; while the release is held its items are of version 1",
    );
    expect(await versionsOf(two)).to.deep.equal([""]);
  });

  for (const [reason, plugins, parts] of [
    ["it does not have version 2", [STABLE], {}],
    [
      "its version 2 is another task than the release's of that version",
      [STABLE, { ...CANDIDATE, taskDigest: TASK_DIGEST }],
      {},
    ],
    [
      "it does not say which tasks its versions run",
      [STABLE, { name: CANDIDATE.name, version: CANDIDATE.version }],
      {},
    ],
    ["it holds one version at a time, and the release goes by items", BOTH, { loadedVersions: 1 }],
  ] as const)
    it(`is the old version alone, because ${reason}`, async () => {
      await begin();
      const worker = await run.worker(3, { plugins, ...parts });
      expect(partOf(worker)).to.equal(
        `it does not count for version 2, because ${reason}; its items are of version 1, and are not compared`,
      );
      expect(await versionsOf(worker)).to.deep.equal([""]);
    });

  it("is the old version alone, because it has handed the new one back, until its next beat", async () => {
    await begin();
    const [worker] = run.workers as [WorldWorker];
    expect(await versionsOf(worker)).to.deep.equal(["", "2"]);
    await worker.handBack(worker.held.filter(({ pluginVersion }) => pluginVersion === "2"));
    expect(partOf(worker)).to.contain("because it has handed version 2 back since its last beat;");
    await worker.beat();
    expect(partOf(worker)).to.contain("counts for version 2;");
  });

  it("is nothing where its own version is another task, until the release is complete", async () => {
    await begin();
    const [candidate, other] = [
      await run.worker(3, { plugins: [CANDIDATE] }),
      await run.worker(4, { plugins: [{ ...STABLE, version: "0", taskDigest: new Uint8Array(32).fill(3) }] }),
    ];
    expect(partOf(candidate)).to.equal(
      "it counts for neither version, and gets version 2 when the release is complete",
    );
    expect(partOf(other)).to.equal("it counts for neither version");
    for (const worker of [candidate, other]) expect(await versionsOf(worker)).to.deep.equal([]);
  });

  it("is one version or the other in a stage of workers", async () => {
    await begin([onWorkers(1, { minItems: 1_000 }), ALL]);
    await run.world.scan();
    const parts = run.workers.map(partOf).sort();
    expect(parts).to.deep.equal([
      "it has both versions, and counts for version 2; it is not of the 1 worker with version 2, so its items are of version 1, and are compared",
      "it has both versions, and counts for version 2; it is of the 1 worker whose items are of version 2",
    ]);
    for (const worker of run.workers) {
      const isChosen = partOf(worker).includes("whose items are of version 2");
      expect(await versionsOf(worker)).to.deep.equal([isChosen ? "2" : ""]);
    }
  });
});
