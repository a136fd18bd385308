import { spawn, spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { expect } from "chai";
import { exitCodesOf } from "../../../src/cli/help.ts";
import { runProgram } from "../../support/run-program.ts";
import type { ProgramOptions, ProgramResult } from "../../support/run-program.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const PROGRAM = "test/unit/cli/cli-fixture/program.ts";

function run(args: string, options?: ProgramOptions): Promise<ProgramResult> {
  return runProgram(PROGRAM, args === "" ? [] : args.split(" "), options);
}

describe("the program", () => {
  const directory = useTemporaryDirectory();

  it("lists its commands when it is given nothing, and when it is asked for help", async () => {
    const [nothing, help, word] = await Promise.all([run(""), run("--help"), run("help")]);
    expect(nothing).to.deep.include({ code: 0, stderr: "" });
    expect(nothing.stdout).to.match(/^Run one big batch .*\n\n {2}rollout break\s+Go wrong\.\n/);
    expect(nothing.stdout).to.contain("`rollout COMMAND --help`").and.not.contain("hidden");
    expect([help, word]).to.deep.equal([nothing, nothing]);
  });

  it("works with a home directory that cannot be read", async () => {
    const home = directory.file("home");
    // A user who may read everything cannot read this either.
    await mkdir(`${home}/.local/share/rollout/package.json`, { recursive: true });
    expect(await run("--version", { env: { HOME: home } })).to.deep.include({ code: 0, stderr: "" });
  });

  it("says to a program what it says to a person, an object for each command", async () => {
    const [nothing, help, one, word] = await Promise.all([
      run("--json"),
      run("--json --help"),
      run("print --help --json"),
      run("help print --json"),
    ]);
    expect(help).to.deep.equal(nothing);
    const lines = nothing.stdout.trimEnd().split("\n");
    const objects = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(nothing).to.include({ code: 0, stderr: "" });
    expect(objects.map(({ command }) => command))
      .to.include("rollout print")
      .and.not.include("rollout hidden");
    expect(word).to.deep.equal(one);
    const print = JSON.parse(one.stdout) as {
      command: string;
      flags: { name: string }[];
      exit_codes: object;
    };
    expect(print.command).to.equal("rollout print");
    expect(print.flags.map(({ name }) => name)).to.include("--times");
    expect(print.exit_codes).to.have.property("70");
  });

  it("lists in the help of commands of two words the codes that they end with", () => {
    for (const id of ["worker run", "worker:run", "coordinator run"])
      expect(exitCodesOf(id).map(([code]) => code)).to.include("6");
  });

  it("lists in the help of a command a code that only this command ends with, with its meaning there", () => {
    const meanings = ["actor check", "actor:send", "release status"].map(
      (id) => new Map(exitCodesOf(id)).get("1") ?? "",
    );
    expect(meanings).to.deep.equal([
      "an actor would park with this code",
      "--timeout has ended --wait",
      "with --watch: the release was rolled back, aborted or ended",
    ]);
    expect(new Map(exitCodesOf("events")).get("1")).to.equal(new Map(exitCodesOf("run")).get("1"));
  });

  it("explains a command", async () => {
    const [flag, short, word] = await Promise.all([run("print --help"), run("print -h"), run("help print")]);
    expect(flag).to.deep.include({ code: 0, stderr: "" });
    expect(flag.stdout).to.contain("Print what is given.").and.contain("--times");
    expect([short, word]).to.deep.equal([flag, flag]);
  });

  it("says which version it is, of what Node, and of each machine", async () => {
    const [plain, json] = await Promise.all([run("--version"), run("--json --version")]);
    expect(plain).to.deep.include({ code: 0, stderr: "" });
    expect(plain.stdout).to.match(
      /^rollout \d+\.\d+\.\d+ \(Node \d+\.\d+\.\d+\)\nmachines: .*work-item \d+.*\n$/,
    );
    expect(JSON.parse(json.stdout)).to.have.all.keys("version", "node", "machines");
  });

  for (const [args, detail, command] of [
    ["nonsense", "there is no command nonsense", "rollout"],
    ["prnit x", "there is no command prnit, did you mean `rollout print`?", "rollout"],
    ["nonsense --help", "there is no command nonsense", "rollout"],
    ["--nonsense", "unknown flag --nonsense", "rollout"],
    ["--versoin", "unknown flag --versoin, did you mean --version?", "rollout"],
    ["print --tims 3", "unknown flag --tims, did you mean --times?", "rollout print"],
    ["print a b", "unexpected argument b", "rollout print"],
    ["print --times", "Flag --times expects a value", "rollout print"],
    ["print --times x", "--times takes a whole number, not x", "rollout print"],
    ["break", "missing argument HOW", "rollout break"],
    ["print --late", "--late goes with --paused", "rollout print"],
    ["break throw -- x", "this command takes nothing after --", "rollout break"],
  ] as const) {
    it(`refuses \`rollout ${args}\` in one line, and for a program`, async () => {
      const [name = "", ...rest] = args.split(" ");
      const result = await runProgram(PROGRAM, [name, "--json", ...rest]);
      const hint = `see \`${command} --help\``;
      expect(result.stderr).to.equal(`error: ${detail} (${hint})\n`);
      expect(result.stdout).to.equal(
        `${JSON.stringify({ error: { code: "usage", message: detail, hint } })}\n`,
      );
      expect(result.code).to.equal(2);
    });
  }

  it("refuses on standard error alone when no program reads", async () => {
    const [plain, help] = await Promise.all([run("nonsense"), run("help nonsense")]);
    expect(plain).to.deep.include({ code: 2, stdout: "" });
    expect(help).to.deep.equal(plain);
  });

  it("leaves what stands after -- alone", async () => {
    const result = await run("print --json -- python3 x.py --json --help -- --times 3");
    expect(JSON.parse(result.stdout)).to.deep.equal({
      commandLine: ["python3", "x.py", "--json", "--help", "--", "--times", "3"],
    });
    const plain = await run("print -- --json");
    expect(plain.stdout).to.equal("nothing\n");
  });

  it("does not read an argument from standard input", async () => {
    const result = await run("print --json", { input: "text of a pipe\n" });
    expect(JSON.parse(result.stdout)).to.deep.equal({});
  });

  it("speaks to a person on standard error, and not at all to a program", async () => {
    const [plain, json] = await Promise.all([run("print x"), run("print x --json")]);
    expect(plain).to.deep.equal({ code: 0, stdout: "x\n", stderr: "printing\n" });
    expect(json).to.deep.equal({ code: 0, stdout: '{"file":"x"}\n', stderr: "" });
  });

  it("ends with the code of the command", async () => {
    expect((await run("print --paused")).code).to.equal(5);
  });

  it("prints all of a large result before it ends", async () => {
    const result = await run("print a-line-of-some-length --times 100000");
    expect(result.stdout.length).to.equal(100_000 * "a-line-of-some-length\n".length);
  });

  it("ends quietly when the reader of its result goes away", async () => {
    const path = fileURLToPath(new URL(`../../../${PROGRAM}`, import.meta.url));
    const child = spawn(process.execPath, [path, "print", "x", "--times", "1000000"], { stdio: "pipe" });
    child.stdout.once("data", () => child.stdout.destroy());
    const exited = new Promise((resolve) => child.once("exit", resolve));
    expect(await text(child.stderr)).to.equal("printing\n");
    expect(await exited).to.equal(0);
  });

  it("reports in one line that its result could not be written", () => {
    const script = fileURLToPath(new URL(`../../../${PROGRAM}`, import.meta.url));
    const full = openSync("/dev/full", "w");
    try {
      const stdio = ["ignore", full, "pipe"] as const;
      const { status, stderr } = spawnSync(process.execPath, [script, "print", "x"], { stdio: [...stdio] });
      expect(String(stderr)).to.match(/^printing\nerror: cannot write standard output: no space left .*\n$/);
      expect(status).to.equal(6);
    } finally {
      closeSync(full);
    }
  });

  it("prints an error of the table as one line without control characters", async () => {
    const [plain, json] = await Promise.all([run("break fail"), run("break fail --json")]);
    const hint = "set transport.listen_addr to a free address of this machine";
    expect(plain).to.deep.equal({
      code: 3,
      stdout: "",
      stderr: `error: cannot listen on a\\u001b[2J:1: in use (${hint})\n`,
    });
    expect(JSON.parse(json.stdout)).to.deep.equal({
      error: { code: "listen_failed", message: "cannot listen on a\\u001b[2J:1: in use", hint },
    });
  });

  for (const how of ["throw", "reject", "later"]) {
    it(`calls it a bug when a command does ${how} something that nobody expected`, async () => {
      const result = await run(`break ${how} --json`, { env: { ROLLOUT_LOG_LEVEL: "debug" } });
      const line =
        /^error: this is a bug in rollout: TypeError: x is not a function \(run it again with .*\)\n/;
      expect(result.code).to.equal(70);
      expect(result.stderr).to.match(line).and.contain("break.ts:");
      expect(JSON.parse(result.stdout)).to.have.nested.property("error.code", "internal");
    });
  }
});

describe("a bug", () => {
  it("is one line without a stack unless the level is debug", async () => {
    const result = await run("break throw");
    expect(result).to.deep.include({ code: 70, stdout: "" });
    expect(result.stderr.trimEnd().split("\n")).to.have.length(1);
  });
});

describe("a command with a configuration", () => {
  const directory = useTemporaryDirectory();
  const text = `run_id = "01JZ0000000000000000000000"\n[worker]\ncoordinator_addr = "a:1"\nslots = 3\n`;

  it("reads rollout.toml where it is run, and logs lines as JSON to a pipe", async () => {
    await writeFile(directory.file("rollout.toml"), text);
    const result = await run("configured", { cwd: directory.path });
    expect(result).to.deep.include({ code: 0, stdout: "3 slots\n" });
    expect(JSON.parse(result.stderr)).to.deep.include({ level: "info", message: "configured", slots: 3 });
  });

  it("takes the file, variables and flags that it is given", async () => {
    await mkdir(directory.file("sub"));
    await writeFile(directory.file("sub/other.toml"), text);
    const result = await run("configured -c sub/other.toml --log-format human --state-dir here --json", {
      cwd: directory.path,
      env: { ROLLOUT_WORKER_SLOTS: "5", ROLLOUT_LOG_LEVEL: "error" },
    });
    expect(result.stderr).to.equal("");
    expect(JSON.parse(result.stdout)).to.deep.include({ slots: 5, stateDir: directory.file("here") });
  });

  it("says what to do when there is no configuration file", async () => {
    const result = await run("configured", { cwd: directory.path });
    const file = directory.file("rollout.toml");
    const hint = "give its path with --config FILE, or make one with `rollout init`";
    expect(result).to.deep.equal({
      code: 2,
      stdout: "",
      stderr: `error: cannot read the configuration file ${file}: it does not exist (${hint})\n`,
    });
  });

  it("reports a directory without a configuration file, and a file that is far too large", async () => {
    await writeFile(directory.file("large.toml"), "#".repeat(2 ** 20 + 1));
    const [folder, large] = await Promise.all([
      run("configured --config .", { cwd: directory.path }),
      run("configured --config large.toml", { cwd: directory.path }),
    ]);
    expect(folder.stderr).to.contain("/rollout.toml: it does not exist (");
    expect(large.stderr).to.contain(": it has 1048577 bytes, and 1048576 are allowed (");
  });

  it("shows each setting of its role in its help", async () => {
    const { stdout } = await run("configured --help");
    expect(stdout)
      .to.contain("SETTINGS")
      .and.contain("--slots=N")
      .and.contain("--coordinator-addr=HOST:PORT");
    expect(stdout).to.not.contain("--storage-path");
  });
});
