import { expect } from "chai";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OpenAiServer } from "../../examples/openai-server/server.ts";
import { useClosers } from "../support/closers.ts";
import { blocksOfFile } from "./document-blocks.ts";
import { runProgram } from "../support/run-program.ts";
import type { ProgramResult } from "../support/run-program.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const REPOSITORY = fileURLToPath(new URL("../..", import.meta.url));
const EXAMPLE = join(REPOSITORY, "examples/chat-completions");

interface Line {
  readonly id: string;
  readonly ok: boolean;
  readonly output: unknown;
}

interface BatchLine {
  readonly custom_id: string;
  readonly response: {
    readonly status_code: number;
    readonly body: Readonly<Record<string, unknown>>;
  } | null;
  readonly error: unknown;
}

describe("the example of chat completions", () => {
  const closing = useClosers();
  const directory = useTemporaryDirectory();

  /** A command of the README as it stands there, but for where the example is. */
  function follow(command: string): Promise<ProgramResult> {
    const [program, ...words] = command.replaceAll("examples/chat-completions", EXAMPLE).split(" ");
    expect(program).to.equal("rollout");
    return runProgram("bin/run.js", words, { cwd: directory.path });
  }

  const [prompts, batch] = blocksOfFile("examples/chat-completions/README.md")
    .filter(({ language }) => language === "sh")
    .map(({ text }) => text);

  async function linesOf<T>(name: string): Promise<T[]> {
    const text = await readFile(directory.file(name), "utf8");
    return text
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line) as T);
  }

  it("answers every prompt, by servers that its workers have started", async () => {
    const { code, stderr } = await follow(prompts ?? "");
    expect(code, stderr).to.equal(0);
    const lines = await linesOf<Line>("answers.jsonl");
    expect([lines.length, new Set(lines.map(({ id }) => id)).size]).to.deep.equal([20, 20]);
    expect(lines.every(({ ok }) => ok)).to.equal(true);
    expect(lines.find(({ id }) => id === "units")?.output).to.equal(
      "You asked in 8 words: How many litres are in a cubic metre?",
    );
  });

  it("runs a file of the OpenAI Batch API as it is, into files of that API", async () => {
    const { code, stderr } = await follow(batch ?? "");
    expect(code, stderr).to.equal(1);
    const done = await linesOf<BatchLine>("batch-output.jsonl");
    const failed = await linesOf<BatchLine>("batch-output.errors.jsonl");
    expect(done.map(({ custom_id: id }) => id).sort()).to.deep.equal([
      "request-1",
      "request-2",
      "request-3",
      "request-4",
    ]);
    for (const { response, error } of done) expect([response?.status_code, error]).to.deep.equal([200, null]);
    expect(failed.map(({ custom_id: id, response }) => [id, response?.status_code])).to.deep.equal([
      ["request-5", 400],
    ]);
  });

  it("asks once for what the server says is wrong, and no more often for the rest", async () => {
    const server = await OpenAiServer.start({ models: ["toy"] });
    closing(() => server.close());
    const manifest = await readFile(join(EXAMPLE, "chat.toml"), "utf8");
    const other = manifest.replace("http://127.0.0.1:{port}/v1", server.url).replace(/^launch = .*$/m, "");
    await writeFile(directory.file("chat.toml"), other);
    const line = (content: string, more: object): string =>
      JSON.stringify({ messages: [{ role: "user", content }], ...more });
    const wrong = line("wrong", { behave: { kind: "status", status: 400, message: "too long" } });
    await writeFile(directory.file("two.jsonl"), `${line("right", {})}\n${wrong}\n`);
    const words = ["two.jsonl", "-o", "out.jsonl", "--workers", "1", "--plugin", "chat.toml"].join(" ");
    const { code, stderr } = await follow(`rollout run ${words}`);
    expect(code, stderr).to.equal(1);
    expect(stderr).to.match(
      /\n1 failed \(1 error\): .*\n {2}1 error, such as item \w{12}: 400 Bad Request: too long\n/,
    );
    expect(server.requests).to.have.length(2);
  });

  it("gets all of it through a server that throttles, fails and breaks off", async () => {
    const server = await OpenAiServer.start({
      models: ["toy"],
      every: [
        { requests: 7, behaviour: { kind: "throttle", retryAfter: "0.2" } },
        { requests: 11, behaviour: { kind: "status", status: 500 } },
        { requests: 13, behaviour: { kind: "cut" } },
      ],
    });
    closing(() => server.close());
    const manifest = await readFile(join(EXAMPLE, "chat.toml"), "utf8");
    const other = manifest.replace("http://127.0.0.1:{port}/v1", server.url).replace(/^launch = .*$/m, "");
    await writeFile(directory.file("chat.toml"), other);
    const { code, stderr } = await follow((prompts ?? "").replace(/--plugin \S+/, "--plugin chat.toml"));
    expect(code, stderr).to.equal(0);
    expect((await linesOf<Line>("answers.jsonl")).filter(({ ok }) => ok)).to.have.length(20);
    expect(server.requests.length).to.be.above(20);
  });
});
