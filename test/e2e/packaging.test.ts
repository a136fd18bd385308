import { expect } from "chai";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import { repositoryFile } from "../../scripts/generate-docs.ts";

const execute = promisify(execFile);
const UNITS = repositoryFile("packaging/systemd");

describe("packaging", () => {
  it("as systemd units: systemd verifies them, and they name commands that exist", async () => {
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
        repositoryFile("bin/run.js"),
        ...(command ?? "").split(" "),
        "--help",
      ]);
      expect(stdout).to.include(`rollout ${command}`);
    }
  });
});
