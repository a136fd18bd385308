// The first example of docs/releases.md, with a stand-in for a model: its commands are given in their order, in two terminals, and what the
// page says that they print is looked for.
import { existsSync, rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { blocksOfFile } from "./document-blocks.ts";
import { eventually } from "../support/eventually.ts";
import { withLocalRun } from "../support/local-run.ts";

const PAGE = "docs/releases.md";
const PROMPTS = 2_000;
const ANSWERS = "answers.jsonl";
/** So small that the machine is there for other tests too; the page leaves it to the command. */
const SMALL = ["--workers", "1", "--slots", "4"];

/** It answers at once, and from the third prompt on when it is let go. A version 2 fails two of five, always the same ones. */
const codeOf = (version: string): string => `
import { existsSync, writeFileSync } from "node:fs";
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
export default async ({ n }, { signal }) => {
  await pause(4);
  if (n > 2) writeFileSync("waits", "");
  while (n > 2 && existsSync("held") && !signal.aborted) await pause(20);
  if (${version === "2"} && n % 5 < 2) throw new Error("no answer");
  return { answer: "by ${version}" };
};
`;

/** The words of its commands, block by block. */
function commandsOf(page: string): string[][][] {
  return blocksOfFile(page)
    .filter(({ language }) => language === "sh")
    .map(({ text }) =>
      text
        .trim()
        .split("\n")
        .map((line) => line.split(" ").slice(1)),
    );
}

describe("the page about releases", () => {
  it("shows a version that is worse, which is gone after some dozen items, and the run ends with all answers", () =>
    withLocalRun({ items: 0 }, async (place) => {
      const [[run = []] = [], [create = [], watch = []] = []] = commandsOf(PAGE);
      const prompts = Array.from({ length: PROMPTS }, (_, at) => `{"id":"p-${at + 1}","n":${at + 1}}\n`);
      writeFileSync(place.file("prompts.jsonl"), prompts.join(""));
      for (const version of ["1", "2"]) {
        const manifest = `name = "words"\nversion = "${version}"\nbackend = "module"\n[module]\n`;
        writeFileSync(place.file(`v${version}.toml`), `${manifest}module = "v${version}.mjs"\n`);
        writeFileSync(place.file(`v${version}.mjs`), codeOf(version));
      }
      writeFileSync(place.file("held"), "");
      const first = place.launch([...run, ...SMALL]);
      await eventually("it has begun", () => existsSync(place.file("waits")));
      const created = await place.wordsTo(0, create);
      expect(created.stderr, "enough items are left").not.to.include("warning");
      rmSync(place.file("held"));
      const { stdout } = await place.wordsTo(1, watch);
      expect(stdout).to.match(/^release [0-9A-Z]{26}: words 1 to 2, begun /m);
      expect(stdout).to.include("rolled back in stage 1 of 3");
      expect(stdout).to.match(
        /errors: the candidate [\d.]+ % of \d+, stable 0 % of \d+: worse by at least [\d.]+ %, and 5 % is allowed/,
      );
      expect((await first.ended).code, first.describe()).to.equal(0);
      const answers = await place.results(ANSWERS);
      expect(answers.filter(({ ok }) => ok)).to.have.length(PROMPTS);
      const ofCandidate = answers.filter((line) => JSON.stringify(line.output) === '{"answer":"by 2"}');
      const named = answers.filter((line) => (line as { plugin_version?: string }).plugin_version === "2");
      expect(named, "each result says who made it").to.deep.equal(ofCandidate);
      expect(ofCandidate.length, "some dozen").to.be.within(1, PROMPTS / 10);
    }));
});
