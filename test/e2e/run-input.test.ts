import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";
import { forgetful } from "./forgetful-coordinator.ts";

const ITEMS = 3;

/** The words of a run of `input`, with one worker. */
function wordsOf(input: string, ...flags: string[]): string[] {
  return ["run", input, "-o", "out.jsonl", "--workers", "1", ...flags, "--", "sh", "work.sh"];
}

async function expectAll(place: LocalRunPlace): Promise<void> {
  const ids = (await place.results()).map(({ id }) => id);
  expect(ids).to.have.members(["n1", "n2", "n3"]);
  expect(await place.journal()).to.have.length(ITEMS);
}

describe("what rollout run reads its items from", () => {
  const it = concurrentTests(3);

  it("may be a pipe, by a name of its own: it is read once and no line is lost", async () => {
    await withLocalRun({ items: ITEMS }, async (place) => {
      execFileSync("mkfifo", [place.file("fifo")]);
      const run = place.launch(wordsOf("fifo"));
      const said = (): number => run.stderr.filter((line) => line === "waiting for input from fifo").length;
      await eventually("it is said that it waits", () => said() === 1);
      await writeFile(place.file("fifo"), readFileSync(place.file("in.jsonl")));
      expect((await run.ended).code, run.describe()).to.equal(0);
      await expectAll(place);
      expect(said()).to.equal(1);
    });
  });

  it("may be a pipe, as a shell hands it over in place of a file", async () => {
    await withLocalRun({ items: ITEMS }, async (place) => {
      const piped = ["sh", "-c", 'cat in.jsonl | { exec 9<&0 </dev/null; exec "$@"; }', "sh"];
      const run = place.launch(wordsOf("/dev/fd/9"), piped);
      expect((await run.ended).code, run.describe()).to.equal(0);
      await expectAll(place);
    });
  });

  it("may be standard input by the name /dev/stdin", async () => {
    await withLocalRun({ items: ITEMS }, async (place) => {
      const input = readFileSync(place.file("in.jsonl"), "utf8");
      await place.wordsTo(0, wordsOf("/dev/stdin"), input);
      await expectAll(place);
    });
  });

  it("pauses the run at a line that is no item, far from the start, and goes on when that is mended", async () => {
    await withLocalRun({ items: 0 }, async (place) => {
      const line = (number: number): string =>
        `{"id":"n${number}","n":${number},"pad":"${"x".repeat(40_000)}"}\n`;
      const before = line(1) + line(2);
      await writeFile(place.file("in.jsonl"), `${before}{\n${line(3)}`);
      const paused = await place.wordsTo(5, wordsOf("in.jsonl"));
      const why = "in.jsonl:3: not an item: it is not JSON at column 2; correct that line";
      expect(paused.stderr).to.contain(`\npaused (${why}), so this ends with code 5: `);
      expect(paused.stderr).to.contain("\nto go on: rollout run in.jsonl ");
      const kept = await place.results();
      const again = await place.wordsTo(5, wordsOf("in.jsonl"));
      expect(again.stderr).to.contain(`the run was paused (${why}); it goes on\n`);
      expect((await place.results()).slice(0, kept.length)).to.deep.equal(kept);

      await writeFile(place.file("in.jsonl"), before + line(3));
      const mended = await place.wordsTo(0, wordsOf("in.jsonl"));
      expect(mended.stderr).to.match(/\n3 of 3 done/);
      await expectAll(place);
      const { stderr } = await place.wordsTo(0, wordsOf("in.jsonl"));
      expect(stderr).to.match(/^nothing to do: 3 of 3 were done before/);
    });
  });

  it("is counted: where lines checked differ from lines submitted the run never says complete", async () => {
    await withLocalRun({ items: ITEMS }, async (place) => {
      const run = place.launch(wordsOf("in.jsonl"), forgetful(place));
      expect((await run.ended).code, run.describe()).to.equal(70);
      const said = run.stderr.join("\n");
      expect(said).to.contain("a line that got lost on the way");
      expect(said).to.not.match(/ done in |nothing to do/);
      // Nothing counts as finished: the same command goes on, and has them all.
      const { stderr } = await place.wordsTo(0, wordsOf("in.jsonl"));
      expect(stderr).to.match(/\n3 of 3 done/);
      const ids = (await place.results()).map(({ id }) => id);
      expect(ids.toSorted()).to.deep.equal(["n1", "n2", "n3"]);
    });
  });

  it("can be interrupted while it waits for the other end of a pipe, input or output", async () => {
    await withLocalRun({ items: ITEMS }, async (place) => {
      execFileSync("mkfifo", [place.file("fifo")]);
      const reading = place.launch(wordsOf("fifo"));
      await untilHeld(reading.pid);
      reading.send("SIGINT");
      expect((await reading.ended).code, reading.describe()).to.equal(4);
      expect(existsSync(place.file("out.jsonl.rollout")), "nothing was made").to.equal(false);

      const words = [
        "run",
        "in.jsonl",
        "-o",
        "fifo",
        "--dir",
        "kept",
        "--workers",
        "1",
        "--",
        "sh",
        "work.sh",
      ];
      const writing = place.launch(words);
      await untilHeld(writing.pid);
      writing.send("SIGINT");
      expect((await writing.ended).code, writing.describe()).to.equal(4);
      expect(writing.stderr.at(-1)).to.equal(`to go on: rollout ${words.join(" ")}`);
    });
  });
});

/** A thread of it waits in the kernel for the other end of a pipe. */
async function untilHeld(pid: number): Promise<void> {
  const waitsFor = async (): Promise<boolean> => {
    const threads = await readdir(`/proc/${pid}/task`).catch(() => []);
    const channels = threads.map((thread) =>
      readFile(`/proc/${pid}/task/${thread}/wchan`, "utf8").catch(() => ""),
    );
    return (await Promise.all(channels)).includes("wait_for_partner");
  };
  await eventually("a thread that waits for the other end", waitsFor);
}
