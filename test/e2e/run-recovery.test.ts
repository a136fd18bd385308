import { readdirSync } from "node:fs";
import { rm, truncate, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { killIfThere, withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace, ResultLine } from "../support/local-run.ts";

const ITEMS = 40;
const RUN = { items: ITEMS, secondsEach: 0.15, workers: 2 };

/** Every item has one result, and none of those that were finished by then was executed once more. */
async function expectAllOnce(place: LocalRunPlace, finished: readonly ResultLine[]): Promise<void> {
  const items = (await place.results()).map(({ item }) => item);
  expect(new Set(items).size, "items with a result").to.equal(ITEMS);
  expect(items, "results").to.have.length(ITEMS);
  const journal = await place.journal();
  expect(new Set(journal).size, "items executed").to.equal(ITEMS);
  const repeated = journal.filter((item, at) => journal.indexOf(item) !== at);
  expect(finished.map(({ item }) => item).filter((item) => repeated.includes(item))).to.deep.equal([]);
}

/** Directories and files of its processes; not by which name of a process they are held. */
function keptInState(place: LocalRunPlace): string[] {
  const folders = readdirSync(place.file("out.jsonl.rollout/state")).sort();
  return folders.flatMap((folder) =>
    readdirSync(place.file(`out.jsonl.rollout/state/${folder}`))
      .filter((name) => !name.endsWith(".lock"))
      .map((name) => `${folder}/${name}`)
      .sort(),
  );
}

describe("rollout run, when something dies", () => {
  const it = concurrentTests(2);

  it("goes on by itself when its coordinator is killed, then a worker", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(8);
      const run = place.start();
      const finished = await place.untilResults(8);
      process.kill(place.coordinatorPid, "SIGKILL");
      await run.until("the coordinator's end", () =>
        run.stderr.find((line) => line.includes("the coordinator was killed")),
      );
      place.hold(16);
      finished.push(...(await place.untilResults(16)).slice(finished.length));
      const [worker] = await place.workerPids();
      process.kill(worker ?? 0, "SIGKILL");
      place.letGo();
      expect((await run.ended).code, run.describe()).to.equal(0);
      expect(run.stderr.join("\n")).to.match(/worker \d was killed \(SIGKILL\); it is started again/);
      await expectAllOnce(place, finished);
    });
  });

  it("writes output again that somebody removed or emptied while it was written, and executes nothing again", async () => {
    const spoilt = async (spoil: (file: string) => Promise<void>): Promise<void> =>
      withLocalRun({ ...RUN, secondsEach: 0.05 }, async (place) => {
        place.hold(8);
        const run = place.start();
        const finished = await place.untilResults(8);
        await spoil(place.file("out.jsonl"));
        place.letGo();
        expect((await run.ended).code, run.describe()).to.equal(0);
        await expectAllOnce(place, finished);
        expect(await place.journal(), "each was executed once").to.have.length(ITEMS);
      });
    await Promise.all([spoilt(rm), spoilt(truncate)]);
  });

  it("killed by kill -9 leaves no process behind, and the same command continues the run", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(8);
      const first = place.start();
      const finished = await place.untilResults(8);
      await first.kill();
      place.letGo();
      await place.runTo(0);
      await expectAllOnce(place, finished);
      await place.untilNobodyIsLeft();
    });
  });

  it("keeps what its last start needs in `state/`, and nothing of each start, however it ended", async () => {
    await withLocalRun({ ...RUN, items: 10 * ITEMS, workers: 1 }, async (place) => {
      const kept: string[][] = [];
      for (let start = 1; start <= 3; start++) {
        const { length: before } = await place.journal();
        const run = place.start("--slots", "1");
        // More than what was executing when the start before was killed.
        await eventually("items", async () => (await place.journal()).length > before + 2);
        const all = [place.coordinatorPid, ...(await place.workerPids())];
        await run.kill();
        if (start !== 2) for (const pid of all) killIfThere(pid);
        await place.untilNobodyIsLeft();
        kept.push(keptInState(place));
      }
      expect(kept[0]?.filter((name) => /^coordinators\/[^.]+$/.test(name))).to.have.length(1);
      expect(kept[0]?.filter((name) => /^workers\/[^.]+$/.test(name))).to.have.length(1);
      expect(kept[0], "after a second start").to.include.members(kept[1] ?? []);
      expect(kept[0], "after a third start").to.include.members(kept[2] ?? []);
    });
  });

  it("loses its whole machine, and the same command continues the run", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(8);
      const first = place.start();
      const finished = await place.untilResults(8);
      const all = [place.coordinatorPid, ...(await place.workerPids())];
      await first.kill();
      for (const pid of all) killIfThere(pid);
      place.letGo();
      await place.runTo(0);
      await expectAllOnce(place, finished);
    });
  });

  it("stopped by a terminal that closes lets what runs finish, says how to go on, and executes nothing twice", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(8);
      const first = place.start();
      await place.untilResults(8);
      first.send("SIGHUP");
      await first.until("its answer", () => first.stderr.find((line) => line.includes("stopping: ")));
      first.send("SIGHUP");
      place.letGo();
      expect((await first.ended).code).to.equal(4);
      expect(first.stderr.at(-1)).to.equal(
        "to go on: rollout run in.jsonl -o out.jsonl --workers 2 -- sh work.sh",
      );
      expect(await place.processes()).to.deep.equal([]);
      const finished = await place.results();
      expect(finished.map(({ item }) => item)).to.have.members(await place.journal());
      expect(finished.length).to.be.below(ITEMS);
      expect((await place.run()).code).to.equal(0);
      expect(await place.journal(), "once each").to.have.length(ITEMS);
      await expectAllOnce(place, finished);
    });
  });

  it("stopped by Ctrl-C twice ends at once, and leaves nobody behind", async () => {
    await withLocalRun({ items: 4, secondsEach: 30, workers: 2 }, async (place) => {
      const run = place.start();
      await run.until("work", () => run.stderr.find((line) => line.includes("of 4")));
      await place.untilWorkersWork();
      run.send("SIGINT");
      await run.until("its answer", () => run.stderr.find((line) => line.includes("stopping: ")));
      run.send("SIGINT");
      expect((await run.ended).code).to.equal(4);
      expect(run.stderr.slice(-2)).to.deep.equal([
        "error: interrupted (run the same command to go on)",
        "to go on: rollout run in.jsonl -o out.jsonl --workers 2 -- sh work.sh",
      ]);
      await place.untilNobodyIsLeft();
    });
  });

  it("stopped by Ctrl-C while its coordinator cannot come back says why, and ends", async () => {
    await withLocalRun({ items: 4, secondsEach: 30, workers: 2 }, async (place) => {
      const run = place.start();
      await place.untilWorkersWork();
      run.send("SIGINT");
      await run.until("its answer", () => run.stderr.find((line) => line.includes("stopping: ")));
      await writeFile(place.file("out.jsonl.rollout/rollout.db/CURRENT"), "MANIFEST-000000\n");
      process.kill(place.coordinatorPid, "SIGKILL");
      expect((await run.ended).code, run.describe()).to.equal(6);
      expect(run.stderr.join("\n")).to.match(/\nerror: the database .* is damaged at its file CURRENT/);
      await place.untilNobodyIsLeft();
    });
  });

  it("refuses a second one on the same output while the first runs, naming it", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(1);
      const first = place.start();
      await place.untilResults(1);
      const { code, stderr } = await place.run();
      expect(code).to.equal(3);
      expect(stderr).to.match(
        /^error: .*out\.jsonl\.rollout is in use by rollout run, pid \d+ on host .*\n$/,
      );
      expect(stderr).to.contain(`pid ${first.pid} `);
      place.letGo();
      first.send("SIGINT");
      await first.ended;
    });
  });
});
