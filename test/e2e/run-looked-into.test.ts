// A local run that has ended, and what somebody did with its directory meanwhile: with a coordinator of its own, or without.
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { RolloutClient } from "../../src/compose/rollout-client.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";

const CONFIG = ["-c", "out.jsonl.rollout"];
/** The second item fails, for as long as there is a file of this name. */
const SCRIPT = `
item=$(cat)
case "$item" in *'"n":2}'*) if [ -e broken ]; then exit 3; fi;; esac
echo "$item"
`;
/** The second item waits for as long as there is a file of this name. */
const HELD = `
item=$(cat)
case "$item" in *'"n":2}'*) while [ -e held ]; do sleep 0.05; done;; esac
echo "$item"
`;

/** Longer than a coordinator takes to leave. */
const LOOKS = 15;
const LOOK_MS = 50;

describe("a local run that has ended", () => {
  const it = concurrentTests(3);

  it("is shown to its end to commands that follow it", async () => {
    await withLocalRun({ items: 2 }, async (place) => {
      writeFileSync(place.file("work.sh"), HELD);
      writeFileSync(place.file("held"), "");
      const run = place.start();
      await place.untilResults(1);
      const follower = place.launch(["results", "--follow", "-o", "followed.jsonl", ...CONFIG]);
      await eventually("its first result", async () => (await place.results("followed.jsonl")).length === 1);
      const config = place.file("out.jsonl.rollout/rollout.toml");
      using client = await RolloutClient.connect({ config });
      rmSync(place.file("held"));
      await eventually("the end", async () => (await client.status()).state === "complete");
      for (let looks = 0; looks < LOOKS; looks++) {
        expect(await client.status()).to.include({ state: "complete", done: 2 });
        await sleep(systemClock, LOOK_MS);
      }
      expect((await follower.ended).code, follower.describe()).to.equal(0);
      expect(await place.results("followed.jsonl")).to.have.length(2);
      client.close();
      expect((await run.ended).code, run.describe()).to.equal(0);
    });
  });

  for (const [how, code] of [
    ["done", 0],
    ["failed", 1],
    ["been cancelled", 1],
  ] as const) {
    it(`ends a command that follows its events with ${code}, and no error, where its last item has ${how}`, async () => {
      await withLocalRun({ items: 2 }, async (place) => {
        const failing = how === "failed" ? "exit 3" : "exit 0";
        writeFileSync(place.file("work.sh"), HELD.replace("echo", `[ -e broken ] && ${failing}\necho`));
        for (const name of ["held", "broken"]) writeFileSync(place.file(name), "");
        const run = place.start("--max-attempts", "1");
        await eventually("its place", () => existsSync(place.file("out.jsonl.rollout/rollout.toml")));
        const follower = place.launch(["events", "--follow", ...CONFIG]);
        await follower.until("it to have printed something", () => follower.stdout[0]);
        if (how === "been cancelled") await place.wordsTo(0, ["cancel", "--yes", ...CONFIG]);
        else rmSync(place.file("held"));
        expect((await run.ended).code, run.describe()).to.equal(code);
        expect((await follower.ended).code, follower.describe()).to.equal(code);
        expect(follower.stdout.join("\n")).to.match(/run_(completed|cancelled)/u);
        expect(follower.stderr.join("\n")).not.to.contain("error");
      });
    });
  }

  it("is shown with its latest state when other commands have retried its failed items", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      writeFileSync(place.file("work.sh"), SCRIPT);
      writeFileSync(place.file("broken"), "");
      expect((await place.run("--max-attempts", "1")).code).to.equal(1);
      expect(await place.results()).to.have.length(2);
      rmSync(place.file("broken"));

      const coordinator = await place.lead(["coordinator", "run", ...CONFIG]);
      expect((await place.runWords(["retry", "--failed", ...CONFIG])).code).to.equal(0);
      const worker = place.launch(["worker", "run", ...CONFIG]);
      await coordinator.event("run_completed", { done: 3 });
      for (const each of [worker, coordinator]) {
        each.send("SIGTERM");
        await each.ended;
      }

      const { stderr } = await place.runTo(0, "--max-attempts", "1");
      expect(stderr).to.contain("3 of 3 done");
      expect(await place.results()).to.have.length(3);
      expect(existsSync(place.file("out.errors.jsonl"))).to.equal(false);
    });
  });

  it("ends the wait of a follower, and says that the run has ended where the follower has not seen its end", async () => {
    await withLocalRun({ items: 2 }, async (place) => {
      writeFileSync(place.file("work.sh"), HELD);
      writeFileSync(place.file("held"), "");
      const run = place.start();
      await place.untilResults(1);
      const followers = ["results", "events"].map((name) => place.launch([name, "--follow", ...CONFIG]));
      for (const follower of followers) {
        await follower.until("it to have printed something", () => follower.stdout[0]);
        follower.send("SIGSTOP");
      }
      rmSync(place.file("held"));
      expect((await run.ended).code, run.describe()).to.equal(0);
      for (const follower of followers) {
        follower.send("SIGCONT");
        const { code } = await follower.ended;
        // Events may have come as far as this machine's network before they were read.
        const hasSeenEnd = follower.stdout.some((line) => line.includes('"topic":"run_completed"'));
        expect(code, follower.describe()).to.equal(hasSeenEnd ? 0 : 3);
        if (!hasSeenEnd) expect(follower.stderr.at(-1)).to.contain("has ended, with 2 done and 0 failed");
      }
    });
  });

  it("is reported as never started where no coordinator has come up, with the command that starts it", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      const refuser = place.file("refuser.mjs");
      writeFileSync(refuser, 'if (process.argv.includes("coordinator")) process.exit(2);\n');
      const run = place.launch(place.words(), ["env", `NODE_OPTIONS=--import ${refuser}`]);
      expect((await run.ended).code, run.describe()).to.equal(2);
      const [status, doctor] = await Promise.all([
        place.runWords(["status", ...CONFIG]),
        place.runWords(["doctor", ...CONFIG]),
      ]);
      const command = "rollout run in.jsonl -o out.jsonl --workers 1 -- sh work.sh";
      expect(status.code, status.stderr).to.equal(3);
      expect(status.stderr).to.match(
        /^error: the local run in out\.jsonl\.rollout was never started \(`(.*)` starts it; where that has failed,/,
      );
      expect(status.stderr).to.contain(`\`${command}\``);
      expect(doctor.code, doctor.stdout).to.equal(0);
      expect(doctor.stdout).to.match(/^warn +coordinator +the local run in .* was never started$/m);
    });
  });

  it("has no leader while its record cannot be read, and doctor lists that beside its other findings", async () => {
    await withLocalRun({ items: 1 }, async (place) => {
      await place.runTo(0);
      const record = place.file("out.jsonl.rollout/task.json");
      rmSync(record);
      mkdirSync(record);
      const [coordinator, doctor] = await Promise.all([
        place.runWords(["coordinator", "run", ...CONFIG]),
        place.runWords(["doctor", ...CONFIG]),
      ]);
      const unread = "cannot keep a run: task.json cannot be read: it is a directory";
      expect(coordinator.code, coordinator.stderr).to.equal(2);
      expect(coordinator.stderr).to.contain(unread);
      for (const subject of ["database", "results", "coordinator"])
        expect(doctor.stdout).to.match(new RegExp(`^FAIL +${subject} .*${unread}$`, "m"));
      expect(doctor.stdout).to.match(/^ok +configuration /m);
    });
  });

  it("gets no new database in place of one that is gone, and an empty one is not led", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      writeFileSync(place.file("work.sh"), SCRIPT);
      writeFileSync(place.file("broken"), "");
      expect((await place.run("--max-attempts", "1")).code).to.equal(1);
      const database = place.file("out.jsonl.rollout/rollout.db");
      rmSync(database, { recursive: true });
      const gone =
        /rollout\.db is gone, and results were written from it \(2 done, 1 failed\) \(.*; (.*)\)$/m;
      const words = "to run everything again on purpose remove out.jsonl out.errors.jsonl out.jsonl.rollout";

      const led = await place.runWords(["coordinator", "run", ...CONFIG]);
      expect([led.code, gone.exec(led.stderr)?.[1]], led.stderr).to.deep.equal([6, words]);
      expect(existsSync(database), "none is made").to.equal(false);
      const doctor = await place.wordsTo(6, ["doctor", ...CONFIG]);
      expect(doctor.stdout).to.contain("rollout.db is gone, and").and.contain(words);
      const again = await place.run("--max-attempts", "1");
      expect([again.code, gone.exec(again.stderr)?.[1]], again.stderr).to.deep.equal([6, words]);

      // The run of this configuration, in a place of its own: there nothing is recorded.
      const empty = ["coordinator", "run", ...CONFIG, "--storage-path", place.file("other.db")];
      const other = await place.lead(empty);
      other.send("SIGTERM");
      await other.ended;
      renameSync(place.file("other.db"), database);
      const late = await place.wordsTo(6, ["coordinator", "run", ...CONFIG]);
      expect(late.stderr).to.contain("rollout.db has 0 done items, and results were written from it");
    });
  });
});
