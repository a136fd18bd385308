// A worker that has the run's plugin, and gets nothing because of its versions, is told of with the reason and what to do.
import { expect } from "chai";
import type { Plugin } from "../../../../src/coordinator/turn/input.ts";
import { unfitReasonOf } from "../../../../src/coordinator/run/unfit.ts";
import { TASK_DIGEST } from "../../../support/world.ts";
import { ALL, BOTH, CANDIDATE, ReleaseRun, STABLE } from "../release/release-run.ts";

describe("the reason why a worker gets nothing", () => {
  let run: ReleaseRun;

  beforeEach(async () => {
    run = await ReleaseRun.start({ items: 4 });
    await run.worker(1);
  });

  /** The reason that is said of another worker with these versions, and how many items it gets. */
  async function saidOf(plugins: readonly Plugin[], number = 2): Promise<{ reason: string; gets: number }> {
    const worker = await run.worker(number, { plugins });
    await worker.ask(1);
    const row = run.world.state.workers.get(worker.id);
    expect(row).to.not.equal(undefined);
    return { reason: row === undefined ? "" : unfitReasonOf(run.world.state, row), gets: worker.held.length };
  }

  it("is none where its own version is the run's task, or it does not say what it runs", async () => {
    expect(await saidOf(BOTH)).to.deep.equal({ reason: "", gets: 1 });
    expect(await saidOf([{ name: "words", version: "7" }], 3)).to.deep.equal({ reason: "", gets: 1 });
  });

  it("is none where it does not have the plugin: its plugins say so", async () => {
    expect(await saidOf([{ ...STABLE, name: "other" }])).to.deep.equal({ reason: "", gets: 0 });
  });

  it("is its own version, with the one that has to come first where it has that", async () => {
    expect(await saidOf([CANDIDATE])).to.deep.equal({
      reason:
        "its own version of words, 2, is another task than the run's: start it with the manifest that the run began with as its first --plugin",
      gets: 0,
    });
    expect(await saidOf([CANDIDATE, STABLE], 3)).to.deep.equal({
      reason:
        "its own version of words, 2, is another task than the run's, which is its version 1: start it with that manifest as its first --plugin",
      gets: 0,
    });
  });

  it("is, after a release, that it does not have the release's version, or another task under its name", async () => {
    await run.create({}, { stages: [ALL] });
    await run.steer({ action: "promote", stage: 1 });
    expect(await run.state()).to.equal("COMPLETED");
    expect(await saidOf([STABLE])).to.deep.equal({
      reason:
        "it does not have version 2 of words, which the run executes since its release: start it with that manifest as --plugin, or put it into its --plugin-dir",
      gets: 0,
    });
    expect(await saidOf([STABLE, { ...CANDIDATE, taskDigest: TASK_DIGEST }], 3)).to.deep.equal({
      reason:
        "its version 2 of words is another task than the release's of that version: give it the same manifest",
      gets: 0,
    });
    expect(await saidOf(BOTH, 4)).to.deep.equal({ reason: "", gets: 1 });
  });

  it("is not told of one that was not heard since this coordinator leads: it may have said what it runs to another", async () => {
    await run.create({}, { stages: [ALL] });
    await run.steer({ action: "promote", stage: 1 });
    const worker = await run.worker(2);
    const state = await ReleaseRun.over(run.world.store, { nowMs: 0 });
    const row = state.workers.get(worker.id);
    expect(row?.lastBeatMs).to.equal(undefined);
    expect(row && unfitReasonOf(state, row)).to.equal("");
  });
});
