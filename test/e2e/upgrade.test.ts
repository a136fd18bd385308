// This version goes on with files that an earlier one left on disk. The directory of `rollout run` of 0.1 was left by kill -9 in
// the middle: 10 of 40 results written, four more with the workers, whose coordinator had died before, and two items that had
// failed once.
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { EXIT } from "../../src/base/error-row.ts";
import { systemClock } from "../../src/base/clock.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { COORDINATOR_LEASE_KEY, EPOCH_KEY } from "../../src/storage/keys.ts";
import { withLocalRun } from "../support/local-run.ts";
import type { LocalRunPlace } from "../support/local-run.ts";
import { runProgram } from "../support/run-program.ts";
import { wrongClock } from "./fake-clock.ts";

/** An hour after it was left: its workers have certificates for two days. */
const LEFT_MS = Date.UTC(2026, 10, 18, 6);
const PARTS = {
  items: 0,
  workers: 2,
  env: wrongClock(`-${Math.round((systemClock.wallMs() - LEFT_MS) / 1_000)}s`),
};

const ITEMS = 40;
const WRITTEN = 10;
const EXECUTED = 14;
/** From source a process takes longer to start than silence is borne otherwise. */
const PATIENT = {
  ROLLOUT_LIVENESS_WORKER_SELF_FENCE_TIMEOUT: "40s",
  ROLLOUT_LIVENESS_COORDINATOR_FAILURE_TIMEOUT: "60s",
};
const DATABASE = "out.jsonl.rollout/rollout.db";

function unpack(version: string, { directory }: LocalRunPlace): void {
  const archive = fileURLToPath(new URL(`earlier/run-${version}.tar.gz`, import.meta.url));
  execFileSync("tar", ["-xzf", archive, "-C", directory]);
}

/** The values under these keys, as hexadecimal. */
async function rowsIn(place: LocalRunPlace, keys: readonly string[]): Promise<(string | undefined)[]> {
  const path = place.file(DATABASE);
  const store = await openLevelStore({ path, holderName: "a look", clock: systemClock });
  const rows = await store.getMany(keys);
  await store.close();
  return rows.map((row) => row && Buffer.from(row).toString("hex"));
}

/** Every item is done, and what the workers of the earlier version had done was not done again. */
async function expectGoneOn(place: LocalRunPlace, before: string): Promise<void> {
  expect(readFileSync(place.file("out.jsonl"), "utf8").startsWith(before)).to.equal(true);
  const results = await place.results();
  expect(results.map(({ ok }) => ok)).to.deep.equal(results.map(() => true));
  expect(new Set(results.map(({ id }) => id)).size).to.equal(ITEMS);
  expect(results.length).to.equal(ITEMS);
  const journal = await place.journal();
  expect(new Set(journal).size).to.equal(ITEMS);
  expect(journal.length, "what the workers had done was not done again").to.equal(ITEMS);
}

describe("a run directory of an earlier version", () => {
  it("0.1: is gone on with; its ledger, its workers' records and its results count", () =>
    withLocalRun(PARTS, async (place) => {
      unpack("0.1", place);
      const before = readFileSync(place.file("out.jsonl"), "utf8");
      expect([await place.results(), await place.journal()].map(({ length }) => length)).to.deep.equal([
        WRITTEN,
        EXECUTED,
      ]);
      // Without this file two of the items fail.
      writeFileSync(place.file("mended"), "");
      await place.runTo(0);
      await expectGoneOn(place, before);
    }));

  // The charts of today are those of 0.1. A chart that is changed is seen by the program as it will be then: from source, with the next
  // version of one chart in it.
  it("0.1: is gone on with when a chart of its ledger has changed, and refused by name by a program without the change", () =>
    withLocalRun(PARTS, async (place) => {
      unpack("0.1", place);
      const before = readFileSync(place.file("out.jsonl"), "utf8");
      writeFileSync(place.file("mended"), "");
      const hooks = new URL("earlier/next-run-chart.ts", import.meta.url).href;
      const env = place.environment({ NODE_OPTIONS: `--import=${hooks}`, ...PATIENT });
      const { code, stderr } = await runProgram("bin/dev.js", place.words(), { cwd: place.directory, env });
      expect(code, stderr).to.equal(0);
      await expectGoneOn(place, before);

      const claims = await rowsIn(place, [COORDINATOR_LEASE_KEY, EPOCH_KEY]);
      const refused = await place.runWords([
        ...["coordinator", "run", "--config", "out.jsonl.rollout/rollout.toml"],
      ]);
      expect(refused.code).to.equal(EXIT.storage);
      expect(refused.stderr).to.match(/meta\/charts has version run 2 \(.*\), this one knows run 1 \(/);
      expect(await rowsIn(place, [COORDINATOR_LEASE_KEY, EPOCH_KEY])).to.deep.equal(claims);
    }));
});
