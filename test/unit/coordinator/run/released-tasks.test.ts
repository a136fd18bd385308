// Items keep their ids, whichever version makes their results: a run takes the tasks of its completed releases as its own, and that of a
// candidate not before.
import { expect } from "chai";
import type { RolloutError } from "../../../../src/base/errors.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import type { StoreId } from "../../../../src/base/ids.ts";
import { planSubmission } from "../../../../src/coordinator/rpc/submissions.ts";
import type { SubmissionVerdict } from "../../../../src/coordinator/turn/run-terms.ts";
import type { SubmitResponse } from "../../../../src/gen/rollout/v1/run_pb.ts";
import { ITEMS_PREFIX } from "../../../../src/storage/keys.ts";
import { failureOf } from "../../../support/rejection.ts";
import { linesOf, TASK_DIGEST, texts } from "../../../support/world.ts";
import { WorldOperator } from "../../../support/world-operator.ts";
import { ALL, CANDIDATE_DIGEST, PLUGIN, releaseId, ReleaseRun } from "../release/release-run.ts";

const OTHER_DIGEST = new Uint8Array(32).fill(9);
const THIRD_DIGEST = new Uint8Array(32).fill(10);

describe("the tasks that a run takes", () => {
  let run: ReleaseRun;
  let operator: WorldOperator;
  let submissions: number;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 4 });
    await run.worker(1);
    operator = new WorldOperator(run.world);
    submissions = 0;
  });

  /** A new submission of these lines, for that task. */
  async function submit(
    taskDigest: Uint8Array,
    lines: readonly string[],
    parts: { dryRun?: boolean; eventId?: string } = {},
  ): Promise<Pick<SubmitResponse, "added" | "known">> {
    const submission = `01SVBM1SS10N0000000000001${(submissions++).toString(32).toUpperCase()}` as StoreId;
    const { eventId = "", dryRun = false } = parts;
    const items = lines.map((line) => ({ payload: Buffer.from(line), eventId, key: eventId && "k" }));
    const { added, known } = await operator.ask((client) =>
      client.submit({
        ...{ submissionId: ulidToBytes(submission), batchNumber: 1n, taskDigest, plugin: PLUGIN },
        ...{ taskSummary: "its task", items, dryRun },
      }),
    );
    return { added, known };
  }

  async function complete(id = releaseId(1), digest = CANDIDATE_DIGEST, version = "2"): Promise<void> {
    await run.create({ id, candidate: { plugin: PLUGIN, version, digest } }, { stages: [ALL] });
    await run.steer({ action: "promote", stage: 1 });
    expect(await run.state()).to.equal("COMPLETED");
  }

  it("are its own, and after a release is complete the candidate's too, with the very same items", async () => {
    await complete();
    for (const dryRun of [true, false]) {
      expect(await submit(CANDIDATE_DIGEST, texts(4), { dryRun })).to.deep.equal({ added: 0n, known: 4n });
      expect(await submit(TASK_DIGEST, texts(4), { dryRun })).to.deep.equal({ added: 0n, known: 4n });
    }
    expect(await submit(CANDIDATE_DIGEST, ["new"])).to.deep.equal({ added: 1n, known: 0n });
    expect(await submit(TASK_DIGEST, ["new"])).to.deep.equal({ added: 0n, known: 1n });
    expect(await run.world.countUnder(ITEMS_PREFIX)).to.equal(5);
  });

  it("name events of keys alike", async () => {
    await complete();
    expect(await submit(TASK_DIGEST, ["paid"], { eventId: "e" })).to.include({ added: 1n });
    expect(await submit(CANDIDATE_DIGEST, ["paid"], { eventId: "e" })).to.include({ known: 1n });
  });

  it("stay those of all completed releases, under later leaders as well", async () => {
    await complete();
    const third = { name: PLUGIN, version: "3", taskDigest: THIRD_DIGEST };
    for (const worker of run.workers) worker.plugins = [...worker.plugins, third];
    for (const worker of run.workers) await worker.beat();
    await complete(releaseId(2), THIRD_DIGEST, "3");
    await run.world.lead();
    operator = new WorldOperator(run.world);
    for (const digest of [TASK_DIGEST, CANDIDATE_DIGEST, THIRD_DIGEST])
      expect(await submit(digest, texts(4))).to.deep.equal({ added: 0n, known: 4n });
    expect(await failureOf(submit(OTHER_DIGEST, ["a"]))).to.include({ code: "other_task" });
  });

  it("are not a candidate's while it is tried, held or gone: it is refused with the release's name", async () => {
    await run.create({}, { stages: [ALL] });
    const refusalOf = async (dryRun: boolean): Promise<RolloutError> =>
      failureOf(submit(CANDIDATE_DIGEST, ["a"], { dryRun }));
    for (const dryRun of [true, false]) {
      const refusal = await refusalOf(dryRun);
      expect(refusal).to.include({ code: "release_of_task" });
      expect(refusal.params).to.include({ release: releaseId(1) });
    }
    await run.steer({ action: "pause", reason: "" });
    expect(await refusalOf(false)).to.include({ code: "release_of_task" });
    await run.steer({ action: "abort", reason: "" });
    for (const dryRun of [true, false])
      expect(await refusalOf(dryRun), "as without a release").to.include({ code: "other_task" });
    expect(await run.world.countUnder(ITEMS_PREFIX)).to.equal(4);
  });

  it("have a batch named anew that was named by another of them, and nothing of it is taken before", async () => {
    const { world } = run;
    const lines = linesOf(texts(4), { submission: "01SVBM1SS10N00000000000009", plugin: PLUGIN });
    const task = { ...lines.task, digest: CANDIDATE_DIGEST };
    const planned = await planSubmission(world.store, { ...lines, task });
    await complete();
    if (planned.kind !== "planned") throw new Error("it is a new one");
    const { batch } = planned;
    const verdict = await world.ask<SubmissionVerdict>((answer) => ({ kind: "submit", batch, answer }));
    expect(verdict).to.deep.include({ kind: "renamed" });
    expect(await world.countUnder(ITEMS_PREFIX)).to.equal(4);
  });
});
