// The examples as their readers run them, by `rollout run` or by their own program. Chat completions and the long machine have
// tests of their own, and so has the shell command of `make run`.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { runProgram } from "../support/run-program.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

interface ResultLine {
  readonly ok: boolean;
  readonly output: unknown;
  readonly id: string | null;
}

describe("the examples", function () {
  this.timeout(60_000);
  const directory = useTemporaryDirectory();

  const run = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram("bin/run.js", ["run", ...args], { cwd: directory.path, env: environmentFor() });
  const results = (name: string): ResultLine[] =>
    readFileSync(directory.file(name), "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as ResultLine);

  it("from-code: a program submits a hundred items and takes their results as they finish", async () => {
    const { code, stdout, stderr } = await runProgram("examples/from-code/square-sums.ts", [], {
      cwd: directory.path,
      env: { ...environmentFor(), TMPDIR: directory.path },
    });
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    const sum = Array.from({ length: 100 }, (_, n) => n * n).reduce((one, other) => one + other);
    expect(stdout).to.include("100 items submitted");
    expect(stdout).to.include(`the run is complete: 100 done, 0 failed, ${sum} in all`);
  });

  it("images: pictures that ship with it become small, in processes of their own", async () => {
    const plugin = repositoryFile("examples/images/images.toml");
    const items = repositoryFile("examples/images/items.jsonl");
    const { code, stderr } = await run(items, "-o", "thumbnails.jsonl", "--workers", "2", "--plugin", plugin);
    expect(code, stderr).to.equal(0);
    const made = results("thumbnails.jsonl");
    expect(made).to.have.length(readFileSync(items, "utf8").trimEnd().split("\n").length);
    expect(made.every(({ ok }) => ok)).to.equal(true);
  });

  it("process-worker: a Python process loads its model once and works off many items", async () => {
    for (const name of ["infer.py", "plugin.toml", "rollout_worker.py"])
      copyFileSync(repositoryFile(join("examples/process-worker", name)), directory.file(name));
    const prompts = Array.from({ length: 12 }, (_, n) =>
      JSON.stringify({ id: `p${n}`, prompt: "the sea", words: n }),
    );
    writeFileSync(directory.file("prompts.jsonl"), `${prompts.join("\n")}\n`);
    const args = ["prompts.jsonl", "-o", "answers.jsonl", "--workers", "1", "--plugin", "plugin.toml"];
    const { code, stderr } = await run(...args);
    expect(code, stderr).to.equal(0);
    expect(new Set(results("answers.jsonl").map(({ id }) => id)).size).to.equal(12);
  });
});
