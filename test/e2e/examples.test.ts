// The examples as their readers run them, by `rollout run` or by their own program. Chat completions and the long machine have
// tests of their own, and so has the shell command of `make run`.
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { readPng } from "../../examples/images/png.ts";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { runProgram } from "../support/run-program.ts";
import { environmentFor } from "../support/rollout-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

interface ResultLine {
  readonly ok: boolean;
  readonly output: unknown;
  readonly id: string | null;
}

interface Thumbnail {
  readonly size: readonly number[];
  readonly brightness: readonly number[];
  /** A PNG file as a URL of data. */
  readonly thumbnail: string;
}

/** The picture's facts in a result, and the size of the small one as its own file has it. */
function sizesOf({ size, brightness, thumbnail }: Thumbnail): object {
  const file = Buffer.from(thumbnail.replace("data:image/png;base64,", ""), "base64");
  const { width, height } = readPng(file);
  return {
    picture: size,
    thumbnail: [width, height],
    pixelsCounted: brightness.reduce((sum, count) => sum + count, 0),
  };
}

describe("the examples", () => {
  const directory = useTemporaryDirectory();

  const run = (...args: string[]): ReturnType<typeof runProgram> =>
    runProgram("bin/run.js", ["run", ...args], { cwd: directory.path });
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

  it("conversation: each turn is an event, the model is asked by an invoked promise, and silence is noticed", async () => {
    const { code, stdout, stderr } = await runProgram(
      "examples/conversation/talk.ts",
      ["Good morning", "How are you?"],
      { cwd: directory.path, env: { ...environmentFor(), TMPDIR: directory.path } },
    );
    expect({ code, stderr }).to.deep.equal({ code: 0, stderr: "" });
    expect(stdout.trimEnd().split("\n")).to.deep.equal([
      ...["> Good morning", "You asked in 2 words: Good morning"],
      ...["> How are you?", "You asked in 3 words: How are you?"],
      ...["Are you still there?", "5 turns"],
    ]);
  });

  it("images: pictures that ship with it become small, in processes of their own", async () => {
    const plugin = repositoryFile("examples/images/images.toml");
    const items = repositoryFile("examples/images/items.jsonl");
    const { code, stderr } = await run(items, "-o", "thumbnails.jsonl", "--workers", "2", "--plugin", plugin);
    expect(code, stderr).to.equal(0);
    const made = results("thumbnails.jsonl").map(({ id, output }) => [id, sizesOf(output as Thumbnail)]);
    const small = { picture: [96, 64], thumbnail: [16, 11], pixelsCounted: 96 * 64 };
    expect(Object.fromEntries(made)).to.deep.equal({
      dusk: small,
      mandelbrot: small,
      moire: small,
      tiles: small,
    });
    const pictures = results("thumbnails.jsonl").map(({ output }) => (output as Thumbnail).thumbnail);
    expect(new Set(pictures).size, "one of each").to.equal(4);
  });

  it("process-worker: a Python process loads its model once and works off many items", async () => {
    for (const name of ["infer.py", "plugin.toml", "rollout_worker.py"])
      copyFileSync(repositoryFile(join("examples/process-worker", name)), directory.file(name));
    // The program as it is, and a line that it leaves where it loads.
    const program = readFileSync(directory.file("infer.py"), "utf8");
    const counting = program.replace(/^(?=MODEL = load\(\))/m, `open("loads", "a").write("loaded\\n")\n`);
    expect(counting).to.not.equal(program);
    writeFileSync(directory.file("infer.py"), counting);
    const prompts = Array.from({ length: 12 }, (_, n) =>
      JSON.stringify({ id: `p${n}`, prompt: "the sea", words: n }),
    );
    writeFileSync(directory.file("prompts.jsonl"), `${prompts.join("\n")}\n`);
    const args = ["prompts.jsonl", "-o", "answers.jsonl", "--workers", "1", "--plugin", "plugin.toml"];
    const { code, stderr } = await run(...args);
    expect(code, stderr).to.equal(0);
    const answers = results("answers.jsonl").map(({ id, output }) => [id, output]);
    const words = "the sea is calm tonight ".repeat(3).split(" ");
    const told = (n: number): object => ({ text: words.slice(0, 2 + n).join(" "), resumed_at: 2 });
    expect(Object.fromEntries(answers)).to.deep.equal(
      Object.fromEntries(prompts.map((_, n) => [`p${n}`, told(n)])),
    );
    expect(readFileSync(directory.file("loads"), "utf8"), "loaded once").to.equal("loaded\n");
  });
});
