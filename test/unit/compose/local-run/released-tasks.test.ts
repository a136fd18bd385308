// A run in a directory that a release has brought to another task: whoever gives either command goes on with it.
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { isTaken } from "../../../../src/compose/local-run/released-tasks.ts";
import { RunDirectory } from "../../../../src/compose/local-run/run-directory.ts";
import type { KeyedTask } from "../../../../src/compose/local-run/run-directory.ts";
import { commandManifest } from "../../../../src/config/manifest.ts";
import { taskOf } from "../../../../src/config/task.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { batchOf, EVERYTHING } from "../../../support/batch.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";
import { TASK_DIGEST } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ALL, CANDIDATE_DIGEST, releaseId, ReleaseRun } from "../../coordinator/release/release-run.ts";

const task = (word: string, digest: Uint8Array): KeyedTask => ({
  ...taskOf(commandManifest([word], "/")),
  digest: Buffer.from(digest),
});
const FIRST = task("first", TASK_DIGEST);
const CANDIDATE = task("second", CANDIDATE_DIGEST);
const OTHER = task("third", new Uint8Array(32).fill(9));

describe("the directory of a local run with releases", () => {
  const closeLater = useClosers();
  const temporary = useTemporaryDirectory();
  let release: ReleaseRun;

  async function claim(asked: KeyedTask): Promise<RunDirectory> {
    const ports = { clock: systemClock, random: systemRandom };
    const directory = await RunDirectory.claim(temporary.file("run"), "out", asked, ports);
    closeLater(() => directory.close());
    return directory;
  }

  /** The directory has a database with what happened there, and nobody holds either. */
  async function leave(): Promise<string> {
    const directory = await claim(FIRST);
    const store = await openLevelStore({
      ...{ path: directory.file("rollout.db"), holderName: "test", clock: systemClock },
    });
    const puts = await release.world.store.scan(EVERYTHING);
    await store.commit(batchOf({ puts, durability: "sync" }));
    await store.close();
    await directory.close();
    return directory.runId;
  }

  beforeEach(async () => {
    release = await ReleaseRun.start({ items: 2 });
    await release.worker(1);
    await release.create({}, { stages: [ALL] });
  });

  it("accepts the candidate's manifest when its release is complete, and still the first one", async () => {
    await release.steer({ action: "promote", stage: 1 });
    const runId = await leave();
    for (const asked of [CANDIDATE, FIRST, CANDIDATE]) {
      const again = await claim(asked);
      expect([again.runId, again.formerTask]).to.deep.equal([runId, undefined]);
      await again.close();
    }
    expect(await failureOf(claim(OTHER))).to.include({ code: "other_run_task" });
    const keyed = { ...CANDIDATE, fields: { key: "customer" } };
    expect(await failureOf(claim(keyed))).to.include({ code: "other_run_task" });
  });

  it("refuses the candidate's manifest while the release tries it, and names the release", async () => {
    await leave();
    const refusal = await failureOf(claim(CANDIDATE));
    expect(refusal).to.include({ code: "release_of_task" });
    expect(refusal.params).to.deep.equal({
      ...{ release: releaseId(1), task: FIRST.summary, other: CANDIDATE.summary },
    });
    await (await claim(FIRST)).close();
  });

  it("is asked of its coordinator where the run goes on, and the same is said of each task", async () => {
    const operator = new WorldOperator(release.world);
    const isOfRun = (asked: KeyedTask): Promise<boolean> =>
      isTaken((request) => operator.ask((calls) => calls.submit(request)), asked);
    const refusal = await failureOf(isOfRun(CANDIDATE));
    expect([refusal.code, refusal.params["release"]]).to.deep.equal(["release_of_task", releaseId(1)]);
    await release.steer({ action: "promote", stage: 1 });
    const said = [await isOfRun(FIRST), await isOfRun(CANDIDATE), await isOfRun(OTHER)];
    expect(said).to.deep.equal([true, true, false]);
  });

  it("refuses the candidate's manifest when its release has ended otherwise", async () => {
    await release.steer({ action: "abort", reason: "" });
    await leave();
    expect(await failureOf(claim(CANDIDATE))).to.include({ code: "other_run_task" });
  });
});
