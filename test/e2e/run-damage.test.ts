import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cp, mkdir, rename, rm } from "node:fs/promises";
import { basename } from "node:path";
import { expect } from "chai";
import { DONE_PREFIX } from "../../src/storage/keys.ts";
import { prefixRange } from "../../src/storage/store.ts";
import { concurrentTests } from "../support/concurrent.ts";
import { damageRow } from "../support/damaged-copy.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";

const ITEMS = 20;
const RUN = { items: ITEMS, secondsEach: 0.1 };
const DATABASE = "out.jsonl.rollout/rollout.db";
const RECORD = "out.jsonl.rollout/task.json";

/** The same command is refused, runs nothing and leaves the results as they are. Returns its standard error. */
async function refusal(place: LocalRunPlace, code: number): Promise<string> {
  const read = (): string =>
    existsSync(place.file("out.jsonl")) ? readFileSync(place.file("out.jsonl"), "utf8") : "";
  const [results, journal] = [read(), await place.journal()];
  const refused = await place.run();
  expect(refused.code, refused.stderr).to.equal(code);
  expect(read()).to.equal(results);
  expect(await place.journal()).to.deep.equal(journal);
  return refused.stderr;
}

/** As if it had never been there, for as long as `use` takes. */
async function without(place: LocalRunPlace, name: string, use: () => Promise<void>): Promise<void> {
  const aside = place.file(`${basename(name)}.aside`);
  await rename(place.file(name), aside);
  await use();
  await rm(place.file(name), { recursive: true, force: true });
  await rename(aside, place.file(name));
}

/** Another byte stands where one of the results did. */
function flip(place: LocalRunPlace): void {
  const text = readFileSync(place.file("out.jsonl"), "utf8");
  writeFileSync(place.file("out.jsonl"), text.replace('"ok":true', '"ok":truE'));
}

describe("rollout run, when something of a run was lost", () => {
  const it = concurrentTests(3);

  it("executes nothing again without its database or task, says what was recorded, and goes on when they are back", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      const done = (await place.results()).length;
      const anew = `to run everything again on purpose remove out.jsonl out.jsonl.rollout)`;
      await without(place, DATABASE, async () => {
        expect(await refusal(place, 6))
          .to.contain(`results were written from it (${done} done)`)
          .and.contain(anew);
        await mkdir(place.file(DATABASE));
        expect(await refusal(place, 6), "emptied").to.contain("rollout.db is gone, and results were");
      });
      await without(place, "out.jsonl.rollout/task.json", async () => {
        expect(await refusal(place, 6)).to.contain("is without task.json, which says which run");
      });
      await without(place, "out.jsonl.rollout", async () => {
        const lines = "it has lines that this run did not write";
        expect(await refusal(place, 2)).to.contain(lines);
        await mkdir(place.file("out.jsonl.rollout"));
        expect(await refusal(place, 2), "emptied").to.contain(lines);
      });
      await place.runTo(0);
      expect(await place.journal(), "once each").to.have.length(ITEMS);
    });
  });

  it("executes nothing again with an older copy of its database, nor rows that were set aside there, and ends with 6", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      await cp(place.file(DATABASE), place.file("older"), { recursive: true });
      expect((await place.run()).code).to.equal(0);
      place.writeInput(ITEMS + 1);
      await without(place, DATABASE, async () => {
        await rename(place.file("older"), place.file(DATABASE));
        expect(await refusal(place, 6)).to.contain(`results were written from it (${ITEMS} done)`);
      });
      await place.runTo(0);
      expect(await place.journal(), "once each").to.have.length(ITEMS + 1);

      const ended = await place.runWords(["results", "-c", "out.jsonl.rollout"]);
      expect(ended.code, "a coordinator could lead").to.equal(3);
      const key = await damageRow(place.file(DATABASE), prefixRange(DONE_PREFIX));
      const rest = await place.wordsTo(6, ["results", "-c", "out.jsonl.rollout"]);
      expect(rest.stdout.split("\n").slice(0, -1)).to.have.length(ITEMS);
      expect(rest.stderr).to.contain(`It is damaged at ${key}`);

      const aside = await place.runWords(["doctor", "-c", "out.jsonl.rollout", "--quarantine", key]);
      expect(aside.stdout).to.contain(`${key} was set aside`);
      const lacking = "1 item has no result: its row could not be read.";
      expect(await refusal(place, 6), "all is done, but for what stands in quarantine").to.contain(lacking);
    });
  });

  it("keeps a result whose row was set aside when its files are written anew", async () => {
    await withLocalRun(RUN, async (place) => {
      writeFileSync(place.file("broken"), "");
      expect((await place.run("--max-attempts", "1", "--max-fails", "none")).code).to.equal(1);
      rmSync(place.file("broken"));
      place.writeInput(ITEMS + 1);
      expect((await place.run("--max-attempts", "1", "--max-fails", "none")).code).to.equal(1);
      const [done] = await place.results();
      const key = await damageRow(place.file(DATABASE), prefixRange(DONE_PREFIX));
      await place.runWords(["doctor", "-c", "out.jsonl.rollout", "--quarantine", key]);

      const { stderr } = await place.runTo(6, "--max-attempts", "1", "--max-fails", "none", "--retry-failed");
      expect(stderr).to.contain("are kept in out.jsonl.kept-1 and out.errors.jsonl.kept-1");
      expect(await place.results("out.jsonl.kept-1")).to.deep.equal([done]);
      const anew = await place.results();
      expect(anew.map(({ ok }) => ok)).to.deep.equal(Array.from({ length: ITEMS }, () => true));
      expect(existsSync(place.file("out.errors.jsonl"))).to.equal(false);
    });
  });

  it("takes no other file for its own results, and finds a byte that has changed", async () => {
    await withLocalRun(RUN, async (place) => {
      await place.begin();
      await without(place, "out.jsonl", async () => {
        writeFileSync(place.file("out.jsonl"), '{"another":"file"}\n'.repeat(1_000));
        expect(await refusal(place, 2)).to.contain("it has other bytes than what was written to it");
      });
      const record = readFileSync(place.file(RECORD), "utf8");
      writeFileSync(place.file(RECORD), JSON.stringify({ ...JSON.parse(record), results: undefined }));
      expect(await refusal(place, 2)).to.contain("it has lines that this run did not write");
      writeFileSync(place.file(RECORD), record);
      expect((await place.run()).code).to.equal(0);
      const words = ["doctor", "-c", "out.jsonl.rollout"];
      expect((await place.runWords(words)).stdout).to.match(/results +.*out\.jsonl: as it was written\n/);
      const text = readFileSync(place.file("out.jsonl"), "utf8");
      flip(place);
      const { code, stdout } = await place.runWords(words);
      expect(stdout).to.match(/results +.*out\.jsonl: it has other bytes than what was written to it\n/);
      expect(code).to.equal(2);
      expect(await refusal(place, 2), "where all seems to be done").to.contain("nothing is run again");

      await rm(place.file("out.jsonl"));
      const { code: anew, stderr } = await place.run();
      expect(anew, stderr).to.equal(0);
      expect(readFileSync(place.file("out.jsonl"), "utf8")).to.equal(text);
      expect(await place.journal(), "once each").to.have.length(ITEMS);
    });
  });
});
