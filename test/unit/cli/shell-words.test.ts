import { execFileSync } from "node:child_process";
import { expect } from "chai";
import { namedConfig } from "../../../src/cli/arguments.ts";
import { hintedLine, shellWords } from "../../../src/cli/shell-words.ts";

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

describe("a command line in a hint", () => {
  for (const [argv, line] of [
    [["status"], "rollout worker list"],
    [["status", "-c", "a b", "--json"], "rollout worker list -c 'a b'"],
    [["status", "-ca"], "rollout worker list -c a"],
    [["status", "-c=a"], "rollout worker list -c a"],
    [["status", "--config", "a"], "rollout worker list -c a"],
    [["status", "--config=a", "-c", "b"], "rollout worker list -c b"],
    [["run", "in", "--", "sh", "-c", "true"], "rollout worker list"],
  ] as const) {
    it(`behind \`${argv.join(" ")}\` is \`${line}\``, () =>
      expect(hintedLine(namedConfig(argv))("worker", "list")).to.equal(line));
  }
});
