import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, readFile, stat, writeFile } from "node:fs/promises";
import { expect } from "chai";
import {
  describeHolder,
  findLiveHolder,
  holderFilePath,
  readHolder,
  removeHolder,
  writeHolder,
} from "../../../../src/storage/level/holder-file.ts";
import type { Holder } from "../../../../src/storage/level/holder-file.ts";
import { isAlive, isSame, thisProcess } from "../../../../src/storage/level/process-identity.ts";
import type { ProcessIdentity } from "../../../../src/storage/level/process-identity.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("holder file", () => {
  const directory = useTemporaryDirectory();
  let self: ProcessIdentity;
  let holder: Holder;
  beforeEach(async () => {
    self = await thisProcess();
    holder = { ...self, command: "rollout coordinator run", since: "2026-11-18T14:31:00.000Z" };
  });

  it("says who holds, is for its owner only, and leaves nothing else behind", async () => {
    const path = directory.file("db");
    await writeHolder(path, holder);
    expect(await readHolder(path)).to.deep.equal(holder);
    expect((await stat(holderFilePath(path))).mode & 0o777).to.equal(0o600);
    expect(await readdir(directory.path)).to.deep.equal(["db.lock"]);
    expect(describeHolder(holder)).to.equal(
      `rollout coordinator run, pid ${process.pid} on host ${self.host} since 2026-11-18T14:31:00.000Z`,
    );
  });

  it("replaces what was there, and removes only what names its own process", async () => {
    const path = directory.file("db");
    const other = { ...holder, pid: holder.pid + 1 };
    await writeHolder(path, other);
    await removeHolder(path, holder);
    expect(await readHolder(path)).to.deep.equal(other);
    await writeHolder(path, holder);
    await removeHolder(path, holder);
    await removeHolder(path, holder);
    expect(await readdir(directory.path)).to.deep.equal([]);
  });

  it("names this process as long as it lives", async () => {
    const path = directory.file("db");
    expect(await findLiveHolder(path, self)).to.equal(undefined);
    await writeHolder(path, holder);
    expect(await findLiveHolder(path, self)).to.deep.equal(holder);
  });

  const stale: readonly (readonly [string, Partial<Holder>])[] = [
    ["a pid that another process has now", { startTicks: "1" }],
    ["another boot", { bootId: "00000000-0000-0000-0000-000000000000" }],
    ["another host", { host: "elsewhere" }],
    ["a pid that nobody has", { pid: 2 ** 30 }],
  ];
  for (const [name, difference] of stale) {
    it(`is stale when it names ${name}`, async () => {
      const path = directory.file("db");
      await writeHolder(path, { ...holder, ...difference });
      expect(await findLiveHolder(path, self)).to.equal(undefined);
    });
  }

  for (const text of [
    "",
    "{",
    "null",
    "[]",
    "7",
    '{"pid":"1"}',
    '{"pid":1.5,"host":"a"}',
    '{"pid":1,"host":"a"}',
  ]) {
    it(`names nobody when it is not ours: ${text}`, async () => {
      const path = directory.file("db");
      await writeFile(holderFilePath(path), text);
      expect(await readHolder(path)).to.equal(undefined);
    });
  }

  it("a process that was killed is not alive, reaped or not", async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000)"], { stdio: "ignore" });
    await once(child, "spawn");
    const pid = child.pid ?? 0;
    const identity = { ...self, pid, startTicks: await startTicksOf(pid) };
    expect(await isAlive(identity, self)).to.equal(true);
    const exited = once(child, "exit");
    child.kill("SIGKILL");
    await exited;
    expect(await isAlive(identity, self)).to.equal(false);
  });

  it("two processes are the same only in all that is known of them", () => {
    expect(isSame(self, { ...self })).to.equal(true);
    for (const difference of [{ pid: 1 }, { host: "x" }, { bootId: "x" }, { startTicks: "x" }]) {
      expect(isSame(self, { ...self, ...difference })).to.equal(false);
    }
  });

  it("without /proc, a pid that answers is alive", async () => {
    const withoutProc = { ...self, startTicks: null, bootId: null };
    expect(await isAlive({ ...withoutProc, pid: process.pid }, withoutProc)).to.equal(true);
    expect(await isAlive({ ...withoutProc, pid: 2 ** 30 }, withoutProc)).to.equal(false);
  });
});

async function startTicksOf(pid: number): Promise<string> {
  const line = await readFile(`/proc/${pid}/stat`, "utf8");
  return line.slice(line.lastIndexOf(")") + 2).split(" ")[19] ?? "";
}
