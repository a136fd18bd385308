import { expect } from "chai";
import { RolloutError } from "../../../src/base/errors.ts";
import { pathOfUrl, withPort } from "../../../src/config/http-rules.ts";
import { parseManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";

const URL_LINE = 'url = "http://127.0.0.1:8000/v1"';
const HEAD = ['name = "ask"', 'version = "1"', 'backend = "http"', "[http]"];
const LAUNCH = 'launch = ["serve", "{port}"]';

function manifest(...lines: readonly string[]): ReturnType<typeof parseManifest> {
  return parseManifest("/ask.toml", [...HEAD, ...lines].join("\n"));
}

function refusal(...lines: readonly string[]): string {
  try {
    manifest(...lines);
  } catch (error) {
    if (error instanceof RolloutError) return `${error.message}; ${error.hint}`;
    throw error;
  }
  return "";
}

describe("the table [http] of a manifest", () => {
  it("needs a url, and has defaults for all else", () => {
    expect(refusal()).to.include("http.url is not set");
    expect(manifest(URL_LINE).spec).to.deep.include({
      url: "http://127.0.0.1:8000/v1",
      path: undefined,
      method: "POST",
      body: {},
      model: undefined,
      parameters: {},
      format: "auto",
      output: "body",
      stream: false,
      headers: {},
      concurrency: undefined,
      timeoutMs: 600_000,
      maxTries: 5,
      launch: undefined,
      readyUrl: undefined,
      readyTimeoutMs: 600_000,
    });
  });

  it("accepts all settings that it has", () => {
    for (const lines of [
      ['url = "https://api.example.com/openai/v1?version=2"'],
      [URL_LINE, 'output = "/choices/0/message"', 'path = "/a/{.b}"'],
      ['url = "http://127.0.0.1:{port}/v1"', LAUNCH, 'ready_url = "http://127.0.0.1:{port}/ready"'],
      [URL_LINE, 'headers = { Authorization = "Bearer ${TOKEN}" }'],
      [URL_LINE, 'body = { messages = [{ role = "user", content = "{}" }] }'],
    ])
      expect(refusal(...lines), lines.join("\n")).to.equal("");
  });

  const REFUSED: readonly [what: string, lines: readonly string[], words: string][] = [
    ["an address of another protocol", ['url = "ftp://h/v1"'], "http.url"],
    ["an address that is none", ['url = "127.0.0.1:8000"'], "http.url"],
    ["a password in the address", ['url = "http://me:secret@h/v1"'], "without a password"],
    ["a free port of a server that is not launched", ['url = "http://127.0.0.1:{port}/v1"'], "launch"],
    [
      "an address to be ready at, of a server that is not launched",
      [URL_LINE, 'ready_url = "http://h/"'],
      "beside launch",
    ],
    ["no address to be ready at", [URL_LINE, LAUNCH, 'ready_url = "h"'], "http.ready_url"],
    ["a path without a slash", [URL_LINE, 'path = "chat"'], "begins with /"],
    ["a path that is another host", [URL_LINE, 'path = "//other/x"'], "begins with /"],
    ["an output that is nothing", [URL_LINE, 'output = "choices"'], "JSON pointer"],
    ["a pointer that is none", [URL_LINE, 'output = "/a~2"'], "JSON pointer"],
    ["a header of two lines", [URL_LINE, 'headers = { A = "b\\r\\nC: d" }'], "one line"],
    [
      "a template for lines that have a body",
      [URL_LINE, 'format = "openai-batch"', 'body = { a = "{}" }'],
      "no template",
    ],
    ["a method that is none", [URL_LINE, 'method = "FETCH"'], "POST, PUT, PATCH, GET, DELETE"],
    ["no try at all", [URL_LINE, "max_tries = 0"], "1 to 100"],
  ];
  for (const [what, lines, words] of REFUSED)
    it(`refuses ${what}`, () => {
      expect(refusal(...lines)).to.include(words);
    });

  it("shows no password of an address that it refuses", () => {
    expect(refusal('url = "http://me:secret@h/v1"')).not.to.include("secret");
  });
});

describe("the task of the table [http]", () => {
  const digest = (...lines: readonly string[]): string =>
    Buffer.from(taskOf(manifest(...lines)).digest).toString("hex");
  const known = digest(URL_LINE);

  it("stays when the server moves, is started otherwise, or is asked in another manner", () => {
    for (const line of [
      'headers = { A = "b" }',
      "stream = true",
      "concurrency = 3",
      'timeout = "1s"',
      "max_tries = 9",
      LAUNCH,
      'env = { A = "b" }',
    ])
      expect(digest(URL_LINE, line), line).to.equal(known);
    expect(digest('url = "https://elsewhere:9/v1/"')).to.equal(known);
    expect(digest('url = "http://127.0.0.1:{port}/v1"', LAUNCH)).to.equal(known);
  });

  it("changes when it asks for something else, or takes something else from the answer", () => {
    const others = [
      ['url = "http://127.0.0.1:8000/v2"'],
      [URL_LINE, 'path = "/completions"'],
      [URL_LINE, 'method = "PUT"'],
      [URL_LINE, 'body = { prompt = "{}" }'],
      [URL_LINE, 'model = "m"'],
      [URL_LINE, "parameters = { temperature = 0 }"],
      [URL_LINE, 'format = "plain"'],
      [URL_LINE, 'output = "message"'],
    ].map((lines) => digest(...lines));
    expect(new Set([known, ...others]).size).to.equal(others.length + 1);
  });
});

describe("an address with a free port", () => {
  it("has the port wherever it is named, and a path that does not depend on it", () => {
    expect(withPort("http://h:{port}/{port}", 81)).to.equal("http://h:81/81");
    expect([pathOfUrl("http://h:{port}/v1/"), pathOfUrl("http://h")]).to.deep.equal(["/v1", ""]);
  });

  it("counts the query, which may say which model answers", () => {
    expect(pathOfUrl("http://h/v1/?model=a")).to.equal("/v1?model=a");
  });
});
