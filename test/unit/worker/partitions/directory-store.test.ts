// Trouble with a directory of checkpoints: full, read-only, gone, and not only files in it; and the order of its system calls.
import { spawnSync } from "node:child_process";
import { mkdir, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { systemReason } from "../../../../src/base/system-reason.ts";
import { DirectoryStore } from "../../../../src/worker/partitions/directory-store.ts";
import { withFailingCalls } from "../../../support/failing-system-calls.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const PROGRAM = join(import.meta.dirname, "directory-program.ts");

/** The line of the program that writes there: that it has, or why it could not. */
function written(before: readonly string[], directory: string, ...args: string[]): string {
  const [program = "", ...words] = [...before, process.execPath, PROGRAM, directory, ...args];
  const { stdout, stderr } = spawnSync(program, words, { encoding: "utf8" });
  return stdout.trimEnd() || stderr;
}

describe("a directory of checkpoints", () => {
  const directory = useTemporaryDirectory();

  it("has the bytes on the disk before their name, and then the name", async () => {
    const trace = directory.file("trace");
    const place = directory.file("places");
    await mkdir(place);
    const strace = ["strace", "-f", "-y", "-qq", "-o", trace, "-e", "trace=fsync,fdatasync,rename,renameat2"];
    expect(written(strace, place)).to.equal("written");
    const calls = (await readFile(trace, "utf8"))
      .split("\n")
      .filter((line) => line.includes(place))
      .map((line) =>
        /(?<call>fsync|rename)\w*\(.*?places(?<path>[\w/.]*)/u.exec(line)?.slice(1, 3).join(" "),
      );
    expect(calls.slice(-3)).to.deep.equal([
      "fsync /run/place.writer",
      "rename /run/place.writer",
      "fsync /run",
    ]);
  });

  it("says that the disk is full, leaves nothing half written, and has what was there before", async () => {
    const place = directory.file("places");
    await mkdir(place);
    expect(written([], place)).to.equal("written");
    const full = withFailingCalls({
      call: "write,pwrite64",
      error: "ENOSPC",
      which: "1+",
      path: `${place}/run/place.writer`,
    });
    expect(written(full, place, "100000")).to.equal("no space left on the disk");
    expect(await readdir(`${place}/run`)).to.deep.equal(["place"]);
    expect((await readFile(`${place}/run/place`)).length).to.equal(5);
  });

  it("says that it is read-only", async () => {
    const place = directory.file("places");
    await mkdir(`${place}/run`, { recursive: true });
    const readOnly = withFailingCalls({
      call: "openat",
      error: "EROFS",
      which: "1+",
      path: `${place}/run/place.writer`,
    });
    expect(written(readOnly, place)).to.equal("the file system is read-only");
  });

  it("is not made anew where it has gone, and goes on when it is there again", async () => {
    const place = directory.file("places");
    expect(written([], place)).to.equal("it does not exist");
    await mkdir(place);
    expect(written([], place)).to.equal("written");
    await rm(place, { recursive: true });
    expect(written([], place)).to.equal("it does not exist");
  });

  it("follows no link, and waits for no pipe", async () => {
    await writeFile(directory.file("secret"), "secret");
    await mkdir(directory.file("run"));
    await symlink(directory.file("secret"), directory.file("run/link"));
    await mkdir(directory.file("run/directory"));
    spawnSync("mkfifo", [directory.file("run/pipe")]);
    const store = new DirectoryStore(directory.path, "writer");
    const said = ["link", "directory", "pipe"].map((name) =>
      store.read(`run/${name}`, 100).catch(systemReason),
    );
    expect(await Promise.all(said)).to.deep.equal(["ELOOP", "it is no file", "it is no file"]);
  });
});
