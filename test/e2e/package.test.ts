// rollout as its users get it: packed, installed in a folder of its own without anything of the repository, and run.
import { expect } from "chai";
import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";

const REPOSITORY = join(import.meta.dirname, "../..");
const { version } = JSON.parse(readFileSync(join(REPOSITORY, "package.json"), "utf8")) as { version: string };

const execute = promisify(execFile);

describe("the installed package", () => {
  let home: string;
  let files: string[];

  const npm = async (cwd: string, ...args: string[]): Promise<string> => {
    const { stdout } = await execute("npm", [...args, "--no-audit", "--no-fund", "--prefer-offline"], {
      cwd,
    });
    return stdout;
  };
  const run = async (program: string, ...args: string[]): Promise<string> => {
    const path = join(home, "node_modules/.bin", program);
    const { stdout } = await execute(process.execPath, [path, ...args], { cwd: home });
    return stdout;
  };

  before(async () => {
    home = mkdtempSync(join(tmpdir(), "rollout-package-"));
    // dist was built before the end to end tests; building again would take it from under those that run beside.
    const packed = await npm(REPOSITORY, "pack", "--ignore-scripts", "--json", "--pack-destination", home);
    // npm 12 names the packages, older ones list them.
    const report = JSON.parse(packed) as Record<string, { filename: string; files: { path: string }[] }>;
    const [tarball] = Object.values(report);
    if (tarball === undefined) throw new Error(packed);
    files = tarball.files.map((file) => file.path);
    writeFileSync(join(home, "package.json"), JSON.stringify({ private: true }));
    await npm(home, "install", "--omit=dev", join(home, tarball.filename));
  });
  after(() => rmSync(home, { recursive: true, force: true }));

  it("holds the program, its contract and its papers, and nothing else", () => {
    const tops = new Set(files.map((file) => file.split("/")[0]));
    expect([...tops]).to.have.members([
      ...["bin", "dist", "proto", "oclif.manifest.json", "package.json"],
      ...["README.md", "CHANGELOG.md", "LICENSE"],
    ]);
    expect(files.filter((file) => /\.test\.|(?<!\.d)\.ts$/.test(file))).to.deep.equal([]);
  });

  it("says how it is used", async () => {
    expect(await run("rollout", "--help")).to.include("rollout worker run");
  });

  it("says which version it is", async () => {
    expect(await run("rollout", "--version")).to.include(`rollout ${version}`);
  });

  it("brings the coordinator as a program of its own", async () => {
    expect(await run("rollout-coordinator", "--help")).to.include("--storage-path");
  });

  it("does something", async () => {
    await run("rollout", "init", "--dir", "cluster");
    expect(readFileSync(join(home, "cluster/rollout.toml"), "utf8")).to.include("run_id");
  });

  it("brings every package that one of its modules imports", async () => {
    // The program of a thread is no module to import; what it imports, others do.
    const modules = files
      .filter((file) => /^dist\/.*\.js$/.test(file) && !file.endsWith("-thread.js"))
      .map((file) => `rollout/${file}`);
    const program = `await Promise.all(${JSON.stringify(modules)}.map((path) => import("./node_modules/" + path)))`;
    await execute(process.execPath, ["--input-type=module", "--eval", program], { cwd: home });
    expect(modules).to.include("rollout/dist/src/cli/main.js");
  });
});
