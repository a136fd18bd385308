import { expect } from "chai";
import type { Manifest } from "../../../src/config/manifest.ts";
import { mockManifest, parseManifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";

function manifest(table: string, { file = "/plugins/m.toml", name = "m", more = "" } = {}): Manifest {
  const [, backend = ""] = /\[(\w+)\]/.exec(table) ?? [];
  return parseManifest(file, `name = "${name}"\nversion = "1"\nbackend = "${backend}"\n${more}\n${table}`);
}

function digest(of: Manifest): string {
  return Buffer.from(taskOf(of).digest).toString("hex");
}

const MODULE = `[module]\nmodule = "m.ts"\n`;
const PROCESS = `[process]\ncommand = ["python3", "infer.py"]\n`;

describe("the task of a manifest", () => {
  it("is the same wherever the manifest stands, and however its keys are ordered", () => {
    const parameters = (text: string): string => `${MODULE}parameters = ${text}\n`;
    expect(digest(manifest(parameters(`{ a = 1, b = { c = 2, d = 3 } }`)))).to.equal(
      digest(manifest(parameters(`{ b = { d = 3, c = 2 }, a = 1 }`), { file: "/elsewhere/other.toml" })),
    );
  });

  it("is a digest that items were submitted under, which no version may change", () => {
    const known = "6a7752057591e7394f49d3ffa358118c443ac86894bee48176a6db71fca2dc38";
    expect(digest(mockManifest())).to.equal(known);
  });

  const SAME: readonly [what: string, one: Manifest, other: Manifest][] = [
    ["the version", manifest(PROCESS), { ...manifest(PROCESS), version: "2" }],
    ["the item timeout", manifest(PROCESS), manifest(PROCESS, { more: `item_timeout = "5m"` })],
    ["the working directory", manifest(PROCESS), manifest(PROCESS, { more: `working_directory = "/x"` })],
    ["the concurrency", manifest(PROCESS), manifest(`${PROCESS}concurrency = 8`)],
    ["how long it may take to be ready", manifest(PROCESS), manifest(`${PROCESS}ready_timeout = "1h"`)],
    ["the memory", manifest(MODULE), manifest(`${MODULE}memory_limit = "64MiB"`)],
    ["what the mock backend pretends", mockManifest(), mockManifest({ sleepMs: 9, failurePercent: 3 })],
  ];
  for (const [what, one, other] of SAME) {
    it(`does not depend on ${what}`, () => {
      expect(digest(one)).to.equal(digest(other));
    });
  }

  const OTHER: readonly [what: string, one: Manifest, other: Manifest][] = [
    ["the plugin's name", manifest(PROCESS), manifest(PROCESS, { name: "n" })],
    ["the backend", manifest(PROCESS), manifest(PROCESS.replace("process", "command"))],
    ["the command", manifest(PROCESS), manifest(PROCESS.replace("infer.py", "train.py"))],
    ["where words of the command begin", manifest(PROCESS), manifest(PROCESS.replace(`", "`, " "))],
    ["a variable of the manifest", manifest(PROCESS), manifest(`${PROCESS}env = { MODEL = "b" }`)],
    ["the file", manifest(MODULE), manifest(MODULE.replace("m.ts", "n.ts"))],
    ["the export", manifest(MODULE), manifest(`${MODULE}export = "other"`)],
    ["the parameters", manifest(MODULE), manifest(`${MODULE}parameters = { width = 2 }`)],
  ];
  for (const [what, one, other] of OTHER) {
    it(`is another with ${what}`, () => {
      expect(digest(one)).not.to.equal(digest(other));
    });
  }

  it("says in one line what runs, and enough of the digest to tell two tasks apart", () => {
    const one = taskOf(manifest(`${PROCESS}env = { MODEL = "a" }`));
    const other = taskOf(manifest(`${PROCESS}env = { MODEL = "b" }`));
    expect(one.summary).to.match(/^m \(process\): python3 infer\.py \[[0-9a-f]{8}\]$/);
    expect(one.summary).not.to.equal(other.summary);
    expect(one.plugin).to.equal("m");
  });

  it("is described without the secrets that it is run with", () => {
    const words = `["env", "HF_TOKEN=pa55", "work", "--api-key", "-pa55 55", "{.n}"]`;
    const command = manifest(`[command]\ncommand = ${words}\nenv = { PASS = "pa55" }\n`);
    const url = manifest(`[http]\nurl = "http://host/v1?api_key=pa55"\n`);
    expect(taskOf(command).summary).to.contain("env HF_TOKEN=[redacted] work --api-key [redacted] {.n} [");
    expect(taskOf(url).summary).to.contain("http://host/v1?api_key=[redacted] [");
  });

  it("is described without control characters, and not at any length", () => {
    const long = manifest(`[command]\ncommand = ["sh", "-c", "line\\nline ${"x".repeat(2_000)}"]\n`);
    expect(taskOf(long).summary).to.match(/^m \(command\): sh -c line\\nline x+… \[[0-9a-f]{8}\]$/);
    expect(taskOf(long).summary.length).to.be.lessThan(256);
  });
});
