import { expect } from "chai";
import { writeFile } from "node:fs/promises";
import { RolloutError } from "../../../src/base/errors.ts";
import {
  commandManifest,
  commandManifestText,
  loadManifest,
  mockManifest,
  parseManifest,
} from "../../../src/config/manifest.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const FILE = "/plugins/infer.toml";
const HEAD = `name = "infer"\nversion = "1"\n`;

function refusal(text: string): { code: string; message: string; hint: string } {
  try {
    parseManifest(FILE, text);
  } catch (error) {
    if (error instanceof RolloutError) return { code: error.code, message: error.message, hint: error.hint };
    throw error;
  }
  throw new Error("the manifest was accepted");
}

describe("a plugin's manifest", () => {
  const directory = useTemporaryDirectory();

  it("names a backend with its settings, and settings that it does not name have their defaults", () => {
    const text = `${HEAD}backend = "process"\nitem_timeout = "10m"\n[process]\ncommand = ["python3", "infer.py"]\n`;
    const manifest = parseManifest(FILE, text);
    expect(manifest.file).to.equal(FILE);
    expect([manifest.name, manifest.version, manifest.backend]).to.deep.equal(["infer", "1", "process"]);
    expect([manifest.itemTimeoutMs, manifest.directory, manifest.workingDirectory]).to.deep.equal([
      600_000,
      "/plugins",
      "/plugins",
    ]);
    expect(manifest.spec).to.deep.include({ command: ["python3", "infer.py"], killGraceMs: 5_000, env: {} });
  });

  it("reads sizes, tables and relative directories", () => {
    const table = `[module]\nmodule = "thumb.ts"\nmemory_limit = "64MiB"\nparameters = { width = 64, more = [1, { deep = true }] }\n`;
    const manifest = parseManifest(
      FILE,
      `${HEAD}backend = "module"\nworking_directory = "work"\n${table}[module.env]\nA = "1"\n`,
    );
    expect(manifest.workingDirectory).to.equal("/plugins/work");
    expect(manifest.spec).to.deep.include({
      module: "thumb.ts",
      export: "default",
      memoryLimitBytes: 64 * 2 ** 20,
      env: { A: "1" },
      parameters: { width: 64, more: [1, { deep: true }] },
    });
  });

  const COMMAND = `${HEAD}backend = "command"\n`;
  const REFUSED: readonly [what: string, text: string, code: string, message: string, hint: string][] = [
    ["a name in capitals", `name = "A"`, "config_invalid_value", `${FILE}:1: name = "A"`, "a to z, 0 to 9"],
    [
      "no version",
      `name = "a"\nbackend = "mock"`,
      "config_missing_key",
      `${FILE}: version`,
      "a text of 1 to 128",
    ],
    [
      "a version that is a number",
      `name = "a"\nversion = 1\nbackend = "mock"`,
      "config_invalid_value",
      `${FILE}:2: version = 1`,
      "a text",
    ],
    [
      "a version of two lines",
      `name = "a"\nversion = "1\\n2"\nbackend = "mock"`,
      "config_invalid_value",
      `${FILE}:2: version`,
      "one line",
    ],
    [
      "a version that is too long",
      `name = "a"\nbackend = "mock"\nversion = "${"v".repeat(129)}"`,
      "config_invalid_value",
      `${FILE}:3: version`,
      "128",
    ],
    [
      "an unknown backend",
      `${HEAD}backend = "shell"`,
      "config_invalid_value",
      `${FILE}:3: backend = "shell"`,
      "mock, command, process, http, module, machine",
    ],
    ["no command", COMMAND, "config_missing_key", `${FILE}: command.command`, `["python3", "infer.py"]`],
    [
      "a command that is one text",
      `${COMMAND}[command]\ncommand = "wc"`,
      "config_invalid_value",
      `${FILE}:5: command.command = "wc"`,
      "a list of texts",
    ],
    [
      "an empty command",
      `${COMMAND}[command]\ncommand = []`,
      "config_invalid_value",
      `${FILE}:5: command.command = []`,
      "a list of texts",
    ],
    [
      "a shell's command of two words",
      `${COMMAND}[command]\ncommand = ["wc", "-w"]\nshell = true`,
      "config_invalid_value",
      `${FILE}:5: command.command`,
      "one text in a list",
    ],
    [
      "a mistyped key",
      `${COMMAND}[command]\ncommand = ["wc"]\nkil_grace = "1s"`,
      "config_unknown_key",
      `${FILE}:6: unknown setting command.kil_grace`,
      "did you mean command.kill_grace?",
    ],
    [
      "a key at the wrong place",
      `${COMMAND}kill_grace = "1s"\n[command]\ncommand = ["wc"]`,
      "config_unknown_key",
      `${FILE}:4: unknown setting kill_grace`,
      "write it below [command]",
    ],
    [
      "the table of another backend",
      `${COMMAND}[process]\ncommand = ["wc"]`,
      "config_unknown_key",
      `${FILE}:5: unknown setting process.command`,
      "[command]",
    ],
    [
      "the table of another backend besides",
      `${COMMAND}[command]\ncommand = ["wc"]\n[process]\nenv = {}`,
      "config_unknown_key",
      `${FILE}:7: unknown setting process.env`,
      `backend is "command": its table is [command]`,
    ],
    [
      "a table that is a value",
      `${COMMAND}command = ["wc"]`,
      "config_invalid_value",
      `${FILE}:4: command`,
      "written [command]",
    ],
    [
      "a grace that is too long",
      `${COMMAND}[command]\ncommand = ["wc"]\nkill_grace = "1h"`,
      "config_invalid_value",
      `${FILE}:6: command.kill_grace = "1h"`,
      `from "0ms" to "10m"`,
    ],
    [
      "a truth that is a text",
      `${COMMAND}[command]\ncommand = ["wc"]\nshell = "true"`,
      "config_invalid_value",
      `${FILE}:6: command.shell = "true"`,
      "true or false",
    ],
    [
      "a variable that is a number",
      `${COMMAND}[command]\ncommand = ["wc"]\nenv = { SECRET = "hush", N = 3 }`,
      "config_invalid_value",
      `${FILE}:6: command.env = { SECRET, N }`,
      `{ NAME = "value" }`,
    ],
    [
      "a date among parameters",
      `${HEAD}backend = "module"\n[module]\nmodule = "m.ts"\nparameters = { at = 2026-01-01 }`,
      "config_invalid_value",
      `${FILE}:6: module.parameters`,
      "a table of texts, numbers",
    ],
    ["what is not TOML", `name "a"`, "config_syntax", `${FILE}:1:`, "correct that line"],
  ];
  for (const [what, text, code, message, hint] of REFUSED) {
    it(`is refused with ${what}, saying where and what is allowed`, () => {
      const refused = refusal(text);
      expect(refused.code).to.equal(code);
      expect(refused.message).to.include(message);
      expect(refused.hint).to.include(hint);
    });
  }

  it("is refused when it cannot be read, naming the file", async () => {
    const missing = directory.file("nowhere.toml");
    const error: unknown = await loadManifest(missing).catch((thrown: unknown) => thrown);
    expect(error).to.be.instanceOf(RolloutError).and.include({ code: "manifest_unreadable" });
    expect((error as RolloutError).message)
      .to.include(missing)
      .and.include("it does not exist");
  });

  it("is read from a file, whose directory paths are relative to", async () => {
    await writeFile(
      directory.file("echo.toml"),
      `${HEAD}backend = "mock"\n[mock]\njournal = "journal.txt"\n`,
    );
    const manifest = await loadManifest(directory.file("echo.toml"));
    expect(manifest.spec).to.deep.include({ journal: directory.file("journal.txt"), failurePercent: 0 });
  });

  it("is made of a command line, and means the same when it is read from another place", () => {
    const words = ["python3", "in fer.py", `say "hi"\n`, "{}", "ünï"];
    const made = commandManifest(words, "/home/somebody");
    const read = parseManifest("/elsewhere/plugin.toml", commandManifestText(words, "/home/somebody"));
    for (const manifest of [made, read])
      expect(manifest).to.deep.include({
        name: "command",
        backend: "command",
        workingDirectory: "/home/somebody",
        spec: { command: words, shell: false, env: {}, killGraceMs: 5_000 },
      });
  });

  it("of a worker that names none is `mock`, as the settings say", () => {
    const manifest = mockManifest({ sleepMs: 7 });
    expect([manifest.name, manifest.version, manifest.backend]).to.deep.equal(["mock", "1", "mock"]);
    expect(manifest.spec).to.deep.include({ sleepMs: 7, failurePercent: 0 });
  });
});
