import { expect } from "chai";
import { execFile, execFileSync } from "node:child_process";
import { cpSync, lstatSync, readdirSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { delimiter, dirname, join } from "node:path";
import { promisify } from "node:util";
import { repositoryFile } from "../../scripts/generate-docs.ts";
import { buildImage } from "../support/dockerfile.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

const execute = promisify(execFile);
const UNITS = repositoryFile("packaging/systemd");

describe("packaging", () => {
  const directory = useTemporaryDirectory();

  it("as systemd units: they are verified, and name commands that there are", async () => {
    const units = readdirSync(UNITS);
    expect(units).to.have.members(["rollout-coordinator.service", "rollout-worker@.service"]);
    const { stderr } = await execute("systemd-analyze", [
      "verify",
      ...units.map((unit) => join(UNITS, unit)),
    ]);
    expect(stderr).to.equal("");
    for (const unit of units) {
      const command = /^ExecStart=\/usr\/bin\/env rollout (\w+ \w+) /m.exec(
        readFileSync(join(UNITS, unit), "utf8"),
      )?.[1];
      const { stdout } = await execute(process.execPath, [
        repositoryFile("bin/dev.js"),
        ...(command ?? "").split(" "),
        "--help",
      ]);
      expect(stdout).to.include(`rollout ${command}`);
    }
  });

  it("as an image: each step of the Dockerfile works in an empty directory, and what comes out runs", async () => {
    const image = await buildImage(readFileSync(repositoryFile("Dockerfile"), "utf8"), {
      directory: directory.path,
      copyContext: copyRepository,
      // As the image has it: Node and npm, and no module of this repository.
      env: {
        PATH: [dirname(process.execPath), "/usr/local/bin", "/usr/bin", "/bin"].join(delimiter),
        HOME: directory.path,
        npm_config_cache: process.env["npm_config_cache"] ?? join(homedir(), ".npm"),
        npm_config_prefer_offline: "true",
      },
    });
    const [program = ""] = image.entrypoint;
    const { stdout } = await execute(program, ["--version"], { cwd: image.workingDirectory, env: image.env });
    expect(stdout).to.match(/^rollout \d+\.\d+\.\d+ /);
    expect(image.user).to.equal("node");
  });
});

/**
 * The files as git would give them to somebody else, changes that are not committed included. No symbolic link: `npm ci` in the
 * copy would go through one of that name and empty the node_modules that it leads to.
 */
function copyRepository(to: string): void {
  const listed = execFileSync("git", ["ls-files", "-z", "--cached", "--others", "--exclude-standard"], {
    cwd: repositoryFile("."),
    encoding: "utf8",
  });
  const files = new Set(listed.split("\0").filter((name) => name !== ""));
  for (const file of files)
    if (lstatSync(repositoryFile(file)).isFile()) cpSync(repositoryFile(file), join(to, file));
}
