import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";
import { dieAt, haveDied, mortal } from "./mortal-coordinator.ts";
import type { DeadlyCall } from "./mortal-coordinator.ts";

const ITEMS = 20;
const RUN = { items: ITEMS, secondsEach: 0.1 };

async function expectAllOnce(place: LocalRunPlace): Promise<void> {
  const items = (await place.results()).map(({ item }) => item);
  expect(new Set(items).size, "items with a result").to.equal(ITEMS);
  expect(items, "results").to.have.length(ITEMS);
}

/** The same command, while its coordinator dies at these calls: it does not end before its run does. */
async function goOn(place: LocalRunPlace, calls: readonly DeadlyCall[], ...flags: string[]): Promise<string> {
  const run = place.launch(place.words(...flags), mortal(place, ...calls));
  expect((await run.ended).code, run.describe()).to.equal(0);
  expect(haveDied(place, ...calls), "each of the calls was made").to.equal(true);
  const told = run.stderr.filter((line) =>
    line.includes("the coordinator was killed (SIGKILL); it is started again"),
  );
  expect(told, run.describe()).to.have.length(calls.length);
  await expectAllOnce(place);
  return run.stderr.join("\n");
}

describe("rollout run, whose coordinator is killed while it goes on", () => {
  const it = concurrentTests(3);

  it("survives that while another command reads its database", async () => {
    await withLocalRun(RUN, async (place) => {
      place.hold(2);
      const run = place.start();
      await place.untilResults(2);
      run.send("SIGSTOP");
      process.kill(place.coordinatorPid, "SIGKILL");
      const path = place.file("out.jsonl.rollout/rollout.db");
      const open = (): Promise<Store> => openLevelStore({ path, holderName: "a test", clock: systemClock });
      const store = await eventually("nobody has it", () => open().catch(() => undefined));
      run.send("SIGCONT");
      await eventually("the run meets that", () => run.stderr.some((line) => line.includes("a test")));
      await store.close();
      place.letGo();
      expect((await run.ended).code, run.describe()).to.equal(0);
      await expectAllOnce(place);
    });
  });

  it("survives that before the first request, and when lines were submitted and the answer was lost", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      await goOn(place, ["GetRun-asked", "Submit-answered"]);
    });
  });

  it("survives that before lines are submitted, and when the run was sealed and the answer was lost", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      place.writeInput(ITEMS);
      await goOn(place, ["Submit-asked", "Seal-answered"]);
      expect(await place.journal(), "once each").to.have.length(ITEMS);
    });
  });

  it("survives that while a paused run is resumed and failed items are retried, and counts them", async () => {
    await withLocalRun(RUN, async (place) => {
      writeFileSync(place.file("broken"), "");
      await place.runTo(5, "--max-attempts", "1", "--max-fails", "3");
      const failed = (await place.results("out.errors.jsonl")).length;
      rmSync(place.file("broken"));
      const told = await goOn(place, ["Resume-answered", "Retry-answered"], "--retry-failed");
      expect(told).to.contain(`${failed} failed items are tried again`);
    });
  });

  it("survives that as soon as the coordinator runs, and as soon as it leads", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      place.hold();
      const run = place.start();
      const [started = 0] = await eventually("a coordinator", async () => {
        const found = await place.processes("coordinator");
        return found.length > 0 && found;
      });
      const log = place.file("out.jsonl.rollout/coordinator.log");
      process.kill(started, "SIGKILL");
      const before = readFileSync(log, "utf8").length;
      await eventually(
        "another one that leads",
        () =>
          readFileSync(log, "utf8").slice(before).includes("the coordinator leads") &&
          place.coordinatorPid !== started,
      );
      process.kill(place.coordinatorPid, "SIGKILL");
      place.letGo();
      expect((await run.ended).code, run.describe()).to.equal(0);
      await expectAllOnce(place);
    });
  });

  it("survives that as its last items end, and its last line is right", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      place.hold(ITEMS - 1);
      const run = place.launch(place.words(), mortal(place));
      await place.untilResults(ITEMS - 1);
      dieAt(place, "GetRun-asked");
      place.letGo();
      expect((await run.ended).code, run.describe()).to.equal(0);
      expect(haveDied(place, "GetRun-asked")).to.equal(true);
      expect(run.stderr.at(-1)).to.match(/^20 of 20 done in \d+s: out\.jsonl$/);
      await expectAllOnce(place);
    });
  });
});
