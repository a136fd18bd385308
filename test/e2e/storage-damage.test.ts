import { expect } from "chai";
import { damagedCopy, flippedCopies } from "../support/damaged-copy.ts";
import { fillLamps, openLamps } from "../support/lamp-store.ts";
import { runProgram } from "../support/run-program.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

interface Tally {
  reported: number;
  harmless: number;
  /** LevelDB met the damage with an assertion of its own: nothing was served. */
  ended: number;
}

/**
 * Examines each database by the program, that goes on behind one that ends it. A value that is served and is not the last
 * that was written ends the program with code 1, and fails here.
 */
async function examineAll(paths: readonly string[]): Promise<Tally> {
  const tally: Tally = { reported: 0, harmless: 0, ended: 0 };
  let left = paths;
  while (left.length > 0) {
    const { code, stdout, stderr } = await runProgram("test/e2e/lamp-program.ts", left);
    const lines = stdout.split("\n").filter((line) => line !== "");
    for (const line of lines) {
      if (line === "null") tally.harmless++;
      else tally.reported++;
    }
    if (code === 0) break;
    expect(code, `${left[lines.length]}: ${stderr}`).to.equal(null);
    tally.ended++;
    left = left.slice(lines.length + 1);
  }
  return tally;
}

describe("damage to the tables of a LevelDB", () => {
  const directory = useTemporaryDirectory();
  beforeEach(async () => {
    await fillLamps(directory.file("db"), "sync");
    // Opening moves the log into tables.
    await (await openLamps(directory.file("db"))).close();
  });

  const kinds: readonly (readonly [string, RegExp, number, number])[] = [
    ["a table", /\.ldb$/, 80, 12],
    ["LevelDB's list of tables", /^MANIFEST/, 40, 13],
    ["the name of that list", /^CURRENT$/, 10, 14],
  ];
  for (const [name, pattern, cases, seed] of kinds) {
    it(`a flipped bit of ${name} is reported, harmless or the end of the process, and never served`, async () => {
      const copies = await flippedCopies(directory.file("db"), directory.file("copy"), pattern, {
        cases,
        seed,
      });
      const tally = await examineAll(copies);
      expect(tally.reported + tally.harmless + tally.ended).to.equal(cases);
      expect(tally.reported).to.be.greaterThan(cases / 4);
    });
  }

  it("undamaged, nothing is reported", async () => {
    const copy = await damagedCopy(directory.file("db"), directory.file("copy"), () => Promise.resolve());
    expect(await examineAll([copy])).to.deep.equal({ reported: 0, harmless: 1, ended: 0 });
  });
});
