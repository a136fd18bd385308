// The run tells of its release: of the one that is under way with what it waits for, of the last one, and of none where there was none.
import { expect } from "chai";
import { ReleaseState } from "../../../../src/gen/rollout/v1/release_pb.ts";
import type { GetRunResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import type { Filled } from "../../../../src/coordinator/turn/operator-message.ts";
import { releaseId, ReleaseRun } from "../release/release-run.ts";

describe("the release that a run tells of", () => {
  let run: ReleaseRun;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 4 });
    await run.worker(1);
  });

  async function told(): Promise<NonNullable<Filled<GetRunResponse>["run"]>> {
    const answer = await run.world.ask<Filled<GetRunResponse>>((given) => ({
      kind: "getRun",
      answer: given,
    }));
    if (answer.run === undefined) expect.fail("a run is told of");
    return answer.run;
  }

  it("is absent where there was none", async () => {
    expect(await told()).to.not.have.property("release");
  });

  it("is the one under way, with its stage and the same reason that it says itself", async () => {
    await run.create();
    const { release } = await told();
    expect(release).to.deep.include({ release: releaseId(1), stage: 1, stages: 2, share: "50%" });
    expect(release?.reason)
      .to.equal((await run.status()).reason)
      .and.to.not.equal("");
  });

  it("is the last one when that is over, with the reason of its end", async () => {
    await run.create();
    await run.steer({ action: "abort", reason: "enough" });
    const { release } = await told();
    expect(release).to.deep.include({ state: ReleaseState.ABORTED, reason: "enough" });
  });
});
