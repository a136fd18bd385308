// A local run that has ended, and what somebody did with its directory meanwhile: with a coordinator of its own, or without.
import { existsSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";
import type { RolloutProcess } from "../support/rollout-process.ts";

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

async function lead(place: LocalRunPlace): Promise<RolloutProcess> {
  const coordinator = place.launch(["coordinator", "run", ...CONFIG]);
  await coordinator.until("it to lead", () =>
    coordinator.stdout.find((line) => line.includes("coordinator_leading")),
  );
  return coordinator;
}

describe("a local run that has ended", () => {
  const it = concurrentTests(3);

  it("is not called what it was, when its failed items were tried again by other commands", async () => {
    await withLocalRun({ items: 3 }, async (place) => {
      writeFileSync(place.file("work.sh"), SCRIPT);
      writeFileSync(place.file("broken"), "");
      expect((await place.run("--max-attempts", "1")).code).to.equal(1);
      expect(await place.results()).to.have.length(2);
      rmSync(place.file("broken"));

      const coordinator = await lead(place);
      expect((await place.runWords(["retry", "--failed", ...CONFIG])).code).to.equal(0);
      const worker = place.launch(["worker", "run", ...CONFIG]);
      await eventually("the last item to be done", async () => {
        const { stdout } = await place.runWords(["status", "--json", ...CONFIG]);
        return (JSON.parse(stdout) as { done: number }).done === 3;
      });
      for (const each of [worker, coordinator]) {
        each.send("SIGTERM");
        await each.ended;
      }

      const { code, stderr } = await place.run("--max-attempts", "1");
      expect(code, stderr).to.equal(0);
      expect(stderr).to.contain("3 of 3 done");
      expect(await place.results()).to.have.length(3);
      expect(existsSync(place.file("out.errors.jsonl"))).to.equal(false);
    });
  });

  it("ends the waiting of a follower that has not seen its end, saying that it has ended", async () => {
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
        expect((await follower.ended).code, follower.describe()).to.equal(3);
        expect(follower.stderr.at(-1)).to.contain("has ended, with 2 done and 0 failed");
      }
    });
  });

  it("says that it was never started, where no coordinator has come up, and by which command it is", async () => {
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

  it("gets no new database in place of one that is gone, nor an empty one led", async () => {
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
      const doctor = await place.runWords(["doctor", ...CONFIG]);
      expect(doctor.code, doctor.stdout).to.equal(6);
      expect(doctor.stdout).to.contain("rollout.db is gone, and").and.contain(words);
      const again = await place.run("--max-attempts", "1");
      expect([again.code, gone.exec(again.stderr)?.[1]], again.stderr).to.deep.equal([6, words]);

      // The run of this configuration, in a place of its own: there nothing is recorded.
      const empty = ["coordinator", "run", ...CONFIG, "--storage-path", place.file("other.db")];
      const other = place.launch(empty);
      await other.until("it to lead", () =>
        other.stdout.find((line) => line.includes("coordinator_leading")),
      );
      other.send("SIGTERM");
      await other.ended;
      renameSync(place.file("other.db"), database);
      const late = await place.runWords(["coordinator", "run", ...CONFIG]);
      expect(late.code, late.stderr).to.equal(6);
      expect(late.stderr).to.contain("rollout.db has 0 done items, and results were written from it");
    });
  });
});
