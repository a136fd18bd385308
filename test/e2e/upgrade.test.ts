// This version goes on with files that an earlier one left on disk. The directory of `rollout run` of 0.1 was left by kill -9 in
// the middle: 10 of 40 results written, four more with the workers, whose coordinator had died before, and two items that had
// failed once.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";

const ITEMS = 40;
const WRITTEN = 10;
const EXECUTED = 14;

function unpack(version: string, { directory }: LocalRunPlace): void {
  const archive = fileURLToPath(new URL(`../support/earlier/run-${version}.tar.gz`, import.meta.url));
  execFileSync("tar", ["-xzf", archive, "-C", directory]);
}

describe("a run directory of an earlier version", () => {
  it("0.1: is gone on with; its ledger, its workers' records and its results count", () =>
    withLocalRun({ items: 0, workers: 2 }, async (place) => {
      unpack("0.1", place);
      const before = readFileSync(place.file("out.jsonl"), "utf8");
      expect([await place.results(), await place.journal()].map(({ length }) => length)).to.deep.equal([
        WRITTEN,
        EXECUTED,
      ]);
      // Without this file two of the items fail.
      writeFileSync(place.file("mended"), "");
      const { code, stderr } = await place.run();
      expect(code, stderr).to.equal(0);
      expect(readFileSync(place.file("out.jsonl"), "utf8").startsWith(before)).to.equal(true);
      const results = await place.results();
      expect(results.map(({ ok }) => ok)).to.deep.equal(results.map(() => true));
      expect(new Set(results.map(({ id }) => id)).size).to.equal(ITEMS);
      expect(results.length).to.equal(ITEMS);
      const journal = await place.journal();
      expect(new Set(journal).size).to.equal(ITEMS);
      expect(journal.length, "what the workers had done was not done again").to.equal(ITEMS);
    }));
});
