// The directory of further versions, as `rollout doctor` finds it on a machine of workers.
import { chmod, mkdir, symlink, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { examinePluginDirectory } from "../../../src/compose/doctor/plugin-directory.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("the directory of further versions, for doctor,", () => {
  const directory = useTemporaryDirectory();
  const look = { environment: { PATH: process.env["PATH"] }, clock: systemClock };

  async function write(file: string, version: string, command = "cat", name = "words"): Promise<void> {
    const lines = [`name = "${name}"`, `version = "${version}"`, 'backend = "command"', "[command]"];
    await writeFile(
      directory.file(file),
      [...lines, `command = ["${command}", "${version}"]`, ""].join("\n"),
    );
  }

  async function found(files = ["v1.toml"]): Promise<string[]> {
    const own = files.map((file) => directory.file(file));
    const findings = await examinePluginDirectory(directory.file("plugins"), own, look);
    return findings.map(({ verdict, subject, detail }) => {
      expect(subject).to.equal("further version");
      return `${verdict}: ${detail.replaceAll(`${directory.file("")}/`, "").replaceAll(directory.file(""), "")}`;
    });
  }

  beforeEach(() => write("v1.toml", "1"));

  it("has no finding where none is watched, and a good one where it is missing or empty", async () => {
    expect(await examinePluginDirectory(undefined, [], look)).to.deep.equal([]);
    expect(await found()).to.deep.equal(["good: none: there is no plugins yet"]);
    await mkdir(directory.file("plugins"));
    await writeFile(directory.file("plugins/notes.txt"), "");
    expect(await found()).to.deep.equal(["good: none: no manifest is in plugins"]);
  });

  it("has a finding for each manifest: what a worker takes, and what not and why", async () => {
    await mkdir(directory.file("plugins"));
    await write("elsewhere.toml", "3");
    await symlink("../elsewhere.toml", directory.file("plugins/b-link.toml"));
    await write("plugins/a.toml", "2");
    await write("plugins/c-program.toml", "4", "nonesuch-program");
    await writeFile(directory.file("plugins/d-bad.toml"), "name =");
    await symlink("../gone.toml", directory.file("plugins/e-gone.toml"));
    await write("plugins/f-other.toml", "1", "cat", "judge");
    await write("plugins/g-same.toml", "2", "true");
    await write("plugins/h-open.toml", "5");
    await chmod(directory.file("plugins/h-open.toml"), 0o666);
    const all = await found();
    expect(all).to.have.length(8);
    const [taken, link, program, bad, gone, other, same, open] = all;
    expect(taken).to.match(/^good: words@2 \(command\): the program \S+ is there$/);
    expect(link).to.match(/^good: words@3 \(command\): /);
    expect(program).to.match(/^warning: .*nonesuch-program/);
    expect(bad).to.match(/^warning: none from plugins\/d-bad\.toml: .*d-bad\.toml:1/);
    expect(gone).to.match(/^warning: none from plugins\/e-gone\.toml: .*does not exist/);
    expect(other).to.equal(
      "warning: none from plugins/f-other.toml: this worker has no plugin judge that it could be a version of",
    );
    expect(same).to.equal(
      "warning: none from plugins/g-same.toml: this worker has another task as version 2 of words already",
    );
    expect(open).to.match(/^warning: none from plugins\/h-open\.toml: .*write/);
  });

  it("is not looked into where others may write to it", async () => {
    await mkdir(directory.file("plugins"));
    await chmod(directory.file("plugins"), 0o777);
    const [only] = await found();
    expect(only).to.match(/^warning: none from plugins: .*write/);
  });
});
