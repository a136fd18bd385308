import { execFileSync } from "node:child_process";
import { expect } from "chai";
import { shellWords } from "../../../src/cli/shell-words.ts";

describe("a command line as one would type it", () => {
  it("is quoted where it has to be, and nowhere else", () => {
    expect(
      shellWords(["rollout", "run", "a.jsonl", "--max-fails", "5%", "--", "sh", "-c", "echo $1; it's"]),
    ).to.equal(`rollout run a.jsonl --max-fails 5% -- sh -c 'echo $1; it'\\''s'`);
  });

  it("is read by a shell as the words that it was made of", () => {
    const words = ["", " ", "$HOME", "`id`", "a\nb", "'", '"', "\\", "*", "é", "--x=y z"];
    const printed = execFileSync("sh", ["-c", `printf '%s\\0' ${shellWords(words)}`], { encoding: "utf8" });
    expect(printed.split("\0").slice(0, -1)).to.deep.equal(words);
  });
});
