import { expect } from "chai";
import { ERROR } from "../../../support/world-worker.ts";
import { ReleaseRun, share, ALL, SUCCESS } from "./release-run.ts";
import type { Behaviour } from "./release-run.ts";

const good: Behaviour = () => SUCCESS;
const bad: Behaviour = (_, isCandidate) => (isCandidate ? ERROR : SUCCESS);

describe("the course of a release", () => {
  let run: ReleaseRun;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 400 });
    await run.worker(1);
    await run.worker(2);
    run.takeTopics();
  });

  it("a candidate that fails is rolled back, and its items are done by the old version at no cost", async () => {
    await run.create();
    await run.work(bad, { rounds: 8 });
    expect(await run.state()).to.equal("ROLLED_BACK");
    expect(run.takeTopics()).to.deep.equal([
      "release_started",
      "release_rolled_back",
    ]);
    expect(await run.phases()).to.deep.equal(["BREACHED", "ABANDONED"]);
    const { reason } = await run.status();
    expect(reason).to.match(
      /^errors: the candidate 100 % of \d+, stable 0 % of \d+: worse by at least /,
    );
    await run.work(good, { rounds: 30 });
    const { done, failed } = await run.world.view();
    expect([done, failed]).to.deep.equal([400, 0]);
  });

  it("a good candidate is promoted stage by stage, and then all items get it", async () => {
    await run.create({}, { stages: [share(0.25), share(0.5), ALL] });
    await run.work(good, { rounds: 24 });
    const status = await run.status();
    expect(status.reason).to.match(
      /^nothing worse after \d+ items of the candidate and \d+ of stable$/,
    );
    expect(await run.state()).to.equal("COMPLETED");
    expect(run.takeTopics()).to.deep.equal([
      "release_started",
      "stage_promoted",
      "stage_promoted",
      "release_completed",
    ]);
    expect(await run.phases()).to.deep.equal([
      "PROMOTED by VERDICT",
      "PROMOTED by VERDICT",
      "PROMOTED by VERDICT",
    ]);
    for (const worker of run.workers) {
      await run.fill(worker);
      expect(
        new Set(worker.held.map(({ pluginVersion }) => pluginVersion)),
      ).to.deep.equal(new Set(["2"]));
    }
  });
});
