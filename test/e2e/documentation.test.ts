import { execFile, spawn } from "node:child_process";
import { mkdir, readdir, writeFile } from "node:fs/promises";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect } from "chai";
import { concurrentTests } from "../support/concurrent.ts";
import type { Block } from "./document-blocks.ts";
import { blocksOf, blocksOfFile, documents } from "./document-blocks.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { runProgram } from "../support/run-program.ts";
import { withDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
/** The languages of blocks that are no shell. `bash`, `console` or nothing would slip past this test. */
const OTHER_LANGUAGES = ["json", "mermaid", "text", "toml", "ts"];
const REASON_MIN_CHARS = 20;

const execute = promisify(execFile);

/** The programs of the package by their names, as `npm install -g` puts them on the PATH. */
async function installPrograms(directory: string): Promise<string> {
  const bin = join(directory, "bin");
  await mkdir(bin);
  for (const [name, script] of [
    ["rollout", "run.js"],
    ["rollout-coordinator", "rollout-coordinator.js"],
  ] as const) {
    const text = `#!/bin/sh\nexec "${process.execPath}" "${join(REPOSITORY, "bin", script)}" "$@"\n`;
    await writeFile(join(bin, name), text, { mode: 0o755 });
  }
  return bin;
}

/** Runs blocks one after the other, as a reader would, in one empty directory. */
async function runInOrder(blocks: readonly Block[]): Promise<void> {
  await withDirectory(async (directory) => {
    const bin = await installPrograms(directory);
    const work = join(directory, "work");
    await mkdir(work);
    const env = { ...environmentFor(), PATH: `${bin}${delimiter}${process.env["PATH"] ?? ""}` };
    for (const { at, text, inRepository } of blocks) {
      const cwd = inRepository ? REPOSITORY : work;
      await execute("sh", ["-eu", "-c", text], { cwd, env }).catch((cause: unknown) => {
        throw new Error(`the block at ${at} does not do what it should:\n${text}`, { cause });
      });
    }
  });
}

describe("the documentation", () => {
  const it = concurrentTests(4);

  for (const document of documents()) {
    const blocks = blocksOfFile(document);
    const shell = blocks.filter(({ language }) => language === "sh");
    if (blocks.length === 0) continue;

    it(`${document}: every block is of a language that is looked at, and those that are not run say why`, async () => {
      for (const { at, language, notRun } of blocks) {
        expect([...OTHER_LANGUAGES, "sh"], `the language at ${at}`).to.include(language);
        if (notRun !== undefined) expect(notRun.length, `the reason at ${at}`).to.be.least(REASON_MIN_CHARS);
      }
    });

    const toRun = shell.filter(({ notRun }) => notRun === undefined);
    if (toRun.length === 0) continue;
    it(`${document}: its ${toRun.length} shell blocks run in an empty directory, in their order`, () =>
      runInOrder(toRun));
  }

  it("has a README whose first session begins with a block that is run", async () => {
    const [first] = blocksOfFile("README.md").filter(({ notRun }) => notRun === undefined);
    expect(first?.text).to.contain("rollout run texts.txt --text -o counts.jsonl");
  });

  it("is read in a way that would notice a block that fails, and one without a reason", async () => {
    const planted = ["Text.", "", "<!-- not run: because -->", "", "```sh", "rm -rf /", "```", "", "```sh"];
    const [marked, failing] = blocksOf(
      "x.md",
      [...planted, "rollout init", "false", "true", "```"].join("\n"),
    );
    expect(marked).to.include({ at: "x.md:5", notRun: "because" });
    expect(failing).to.include({ at: "x.md:9", notRun: undefined });
    const outcome = await runInOrder(failing === undefined ? [] : [failing]).catch((error: unknown) => error);
    expect(outcome).to.be.an("error").with.property("message").that.contains("x.md:9");
  });

  it("says the truth about `make run`: one is preempted, one is killed, nothing is lost and nothing done twice", async () => {
    const { code, stdout, stderr } = await runProgram("examples/word-count.ts", [], {
      env: environmentFor(),
    });
    expect(code, `${stdout}\n${stderr}`).to.equal(0);
    for (const sentence of [
      /^Counting the words of 86 texts with 3 workers\./,
      /\n- a worker \(pid \d+\) was preempted when a quarter was done\n/,
      /\n- the coordinator \(pid \d+\) was killed by kill -9 when half was done\n/,
      /\n- 86 texts, \d+ attempts, 86 executions that came to their end\n- 0 lost, 0 executed twice, /,
      /\n- (\d+) words counted, \1 there are\n/,
      /\nEvery process has ended, and the directory is gone\.\n$/,
    ]) {
      expect(stdout).to.match(sentence);
    }
    for (const sentence of [
      /\nworker \d has left in good order; it is started again\n/,
      /\nthe coordinator was killed \(SIGKILL\); it is started again\n/,
      /\n86 of 86 done in \d+s: .*counts\.jsonl\n/,
      /\nnothing to do: 86 of 86 were done before: .*counts\.jsonl\n$/,
    ]) {
      expect(stderr).to.match(sentence);
    }
  });

  it("says the truth about Ctrl-C in the middle of `make run`: everything is ended, and said so", async () => {
    await withDirectory(async (home) => {
      const env = { ...environmentFor(), TMPDIR: home };
      const demo = spawn(process.execPath, [join(REPOSITORY, "examples/word-count.ts")], { env });
      let said = "";
      let isInterrupted = false;
      demo.stdout.on("data", (chunk) => {
        said += String(chunk);
      });
      demo.stderr.on("data", (chunk) => {
        said += String(chunk);
        if (isInterrupted || !said.includes(" of 86")) return;
        isInterrupted = true;
        demo.kill("SIGINT");
      });
      const code = await new Promise((resolve) => demo.once("close", resolve));
      expect(code, said).to.equal(4);
      expect(said).to.contain("interrupted").and.contain("the directory is gone");
      expect(said).to.not.contain("kill -9");
      expect(await readdir(home)).to.deep.equal([]);
    });
  });
});
