import { expect } from "chai";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const run = promisify(execFile);

/** Asks a real shell that has read our script what it would offer behind this line, whose last word is being typed. */
type Ask = (line: readonly string[]) => Promise<string[]>;

describe("completion", () => {
  const directory = useTemporaryDirectory();
  const scripts = new Map<string, string>();

  before(async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      const { stdout } = await run(process.execPath, [repositoryFile("bin/run.js"), "completion", shell]);
      scripts.set(shell, stdout);
    }
  });

  const written = (shell: string): string => {
    const file = join(directory.path, shell);
    writeFileSync(file, scripts.get(shell) ?? "");
    return file;
  };
  const words = (text: string): string[] =>
    text
      .split("\n")
      .map((line) => line.split("\t")[0] ?? "")
      .filter((word) => word !== "")
      .sort();

  const shells: Readonly<Record<string, Ask>> = {
    bash: async (line) => {
      const ask =
        'source "$0"; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _rollout; printf "%s\\n" "${COMPREPLY[@]}"';
      return words(
        (await run("bash", ["-c", ask, written("bash"), ...line], { cwd: directory.path })).stdout,
      );
    },
    // Its completion runs in its line editor only: what the editor is told is printed instead.
    zsh: async (line) => {
      const stubs = 'compdef() { :; }; compadd() { shift; print -l -- "$@"; }; _files() { print -l -- *; }';
      const ask = `${stubs}; source "$0"; words=("$@"); CURRENT=$#; _rollout`;
      const offered = words(
        (await run("zsh", ["-f", "-c", ask, written("zsh"), ...line], { cwd: directory.path })).stdout,
      );
      return offered.filter((word) => word.startsWith(line.at(-1) ?? ""));
    },
    fish: async (line) => {
      const ask = `source ${written("fish")}; complete -C '${line.join(" ")}'`;
      return words((await run("fish", ["--no-config", "-c", ask], { cwd: directory.path })).stdout);
    },
  };

  for (const [shell, ask] of Object.entries(shells))
    describe(`in ${shell}`, () => {
      it("offers the words of commands, one at a time", async () => {
        expect(await ask(["rollout", "wor"])).to.deep.equal(["worker"]);
        expect(await ask(["rollout", "machines", ""])).to.deep.equal(["export", "list", "simulate"]);
      });

      it("offers a command's own flags", async () => {
        expect(await ask(["rollout", "worker", "run", "--preem"])).to.deep.equal(["--preemption"]);
        expect(await ask(["rollout", "status", "--preem"])).to.deep.equal([]);
      });

      it("offers what a flag or an argument may be", async () => {
        expect(await ask(["rollout", "worker", "run", "--preemption", ""])).to.deep.equal([
          "auto",
          "aws",
          "gcp",
          "none",
        ]);
        expect(await ask(["rollout", "completion", ""])).to.deep.equal(["bash", "fish", "zsh"]);
      });

      it("offers files where a file may stand, and nothing where only the user knows", async () => {
        writeFileSync(join(directory.path, "prompts.jsonl"), "");
        expect(await ask(["rollout", "submit", "prom"])).to.deep.equal(["prompts.jsonl"]);
        expect(await ask(["rollout", "worker", "run", "--slots", ""])).to.deep.equal([]);
      });
    });
});
