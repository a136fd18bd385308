import { chmod, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { Level } from "level";
import sinon from "sinon";
import { systemClock } from "../../../../src/base/clock.ts";
import { systemStatFs } from "../../../../src/storage/level/directory.ts";
import type { StatFs } from "../../../../src/storage/level/directory.ts";
import { holderFilePath, readHolder, writeHolder } from "../../../../src/storage/level/holder-file.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import { thisProcess } from "../../../../src/storage/level/process-identity.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { batchOf, bytesOf, EVERYTHING, putOf, textOf } from "../../../support/batch.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const open = (path: string, statFs: StatFs = systemStatFs): Promise<Store> =>
  openLevelStore({ path, holderName: "unit test", clock: systemClock, statFs });

describe("LevelDB store", () => {
  const directory = useTemporaryDirectory();

  it("makes the directory and its parents, and is there again when it is opened again", async () => {
    const path = directory.file("a/b/db");
    const first = await open(path);
    expect(first.location).to.equal(path);
    await first.commit(batchOf({ puts: [putOf("a", "1")], durability: "sync" }));
    await first.close();
    const second = await open(path);
    expect(textOf(await second.get("a"))).to.equal("1");
    expect(second.everWritten).to.equal(true);
    await second.close();
    expect((await stat(path)).mode & 0o777).to.equal(0o700);
  });

  it("remembers nothing of expected values beyond what is there", async () => {
    const path = directory.file("db");
    for (let round = 0; round < 3; round++) {
      const store = await open(path);
      const outcome = await store.commit(
        batchOf({
          puts: [putOf("round", String(round))],
          expect: [{ key: "round", value: round === 0 ? null : bytesOf(String(round - 1)) }],
        }),
      );
      expect(outcome.kind).to.equal("committed");
      await store.close();
    }
  });

  it("asks the disk for a sync for synced batches, and for no others", async () => {
    // Light operations are chained, heavy ones are written as an array.
    const [array, chained] = [sinon.spy(Level.prototype, "batch"), sinon.spy(await chains(), "write")];
    const store = await open(directory.file("db"));
    try {
      for (const text of ["", "x".repeat(5_000)])
        for (const durability of ["sync", "flush", "sync"] as const)
          await store.commit(batchOf({ puts: [putOf("a", text)], durability }));
      const said = [{ sync: true }, { sync: false }, { sync: true }];
      expect(chained.args.map(([options]: readonly unknown[]) => options)).to.deep.equal(said);
      const arrays = array.args.filter(({ length }: readonly unknown[]) => length > 1);
      expect(arrays.map(([, options]: readonly unknown[]) => options)).to.deep.equal(said);
    } finally {
      array.restore();
      chained.restore();
      await store.close();
    }
  });

  /** The prototype of chained batches. */
  async function chains(): Promise<{ write(...options: readonly unknown[]): unknown }> {
    const database = new Level(directory.file("probe"));
    await database.open();
    const chain = Object.getPrototypeOf(database.batch()) as object;
    await database.close();
    return Object.getPrototypeOf(chain) as Awaited<ReturnType<typeof chains>>;
  }

  it("its own keys are in no scan, however many commits there were", async () => {
    const path = directory.file("db");
    for (let round = 0; round < 2; round++) {
      const store = await open(path);
      for (let at = 0; at < 30; at++) await store.commit(batchOf({ puts: [putOf("a", "")] }));
      expect((await store.scan({ ...EVERYTHING, from: "" })).map(({ key }) => key)).to.deep.equal(["a"]);
      await store.close();
    }
  });

  it("empties its log after many small commits: an open reads the number of each that is in it", async () => {
    const path = directory.file("db");
    const store = await open(path);
    const hasTable = async (): Promise<boolean> =>
      (await readdir(path)).some((name) => name.endsWith(".ldb"));
    for (let commits = 0; commits < 20_000; commits++) {
      await store.commit(batchOf({ puts: [putOf("a", String(commits))] }));
      if (commits % 500 === 0 && (await hasTable())) break;
    }
    expect(await hasTable()).to.equal(true);
    await store.close();
    const again = await open(path);
    expect(again.everWritten).to.equal(true);
    await again.close();
  });

  it("says beside the directory who holds it, until it is closed", async () => {
    const path = directory.file("db");
    const store = await open(path);
    expect(await readHolder(path)).to.include({ pid: process.pid, command: "unit test" });
    await store.close();
    expect(await readdir(directory.path)).to.deep.equal(["db"]);
  });

  it("a second open by this process is refused, by any name of the directory, and the first goes on", async () => {
    const path = directory.file("db");
    const store = await open(path);
    await symlink(path, directory.file("link"));
    for (const name of [path, directory.file("link"), `${directory.path}/./db/../db/`]) {
      const refused = await failureOf(open(name));
      expect(refused).to.include({ code: "store_held" });
      expect(refused.params["holder"]).to.match(
        /^unit test, pid \d+ on host .* since .*, which is this process$/,
      );
    }
    expect(await store.commit(batchOf({ puts: [putOf("a", "1")], durability: "sync" }))).to.include({
      kind: "committed",
    });
    await store.close();
    const again = await open(directory.file("link"));
    expect(textOf(await again.get("a"))).to.equal("1");
    await again.close();
  });

  it("of many opens at once one wins", async () => {
    const settled = await Promise.allSettled([1, 2, 3, 4].map(() => open(directory.file("db"))));
    const stores = settled.flatMap((result) => (result.status === "fulfilled" ? [result.value] : []));
    expect(stores.length).to.equal(1);
    await stores[0]?.close();
  });

  it("a file that names this process stops an open even when this module knows of none", async () => {
    const path = directory.file("db");
    await mkdir(path);
    await writeHolder(path, { ...(await thisProcess()), command: "another thread", since: "today" });
    expect((await failureOf(open(path))).params["holder"]).to.match(/^another thread, pid/);
    expect(await readdir(path), "LevelDB was not touched").to.deep.equal([]);
    await rm(holderFilePath(path));
    await (await open(path)).close();
  });

  it("a stale file, and one that nobody understands, are replaced", async () => {
    const path = directory.file("db");
    const stale = { ...(await thisProcess()), startTicks: "1", command: "dead", since: "yesterday" };
    await writeHolder(path, stale);
    const first = await open(path);
    expect(await readHolder(path)).to.include({ command: "unit test" });
    await first.close();
    await writeFile(holderFilePath(path), "what is this?");
    const second = await open(path);
    expect(await readHolder(path)).to.include({ command: "unit test" });
    await second.close();
  });

  const networks: readonly (readonly [bigint, string])[] = [
    [0x6969n, "NFS"],
    [0x517bn, "SMB"],
    [0xff534d42n, "CIFS"],
    [0xffffffffff534d42n, "CIFS"],
    [0xfe534d42n, "SMB2"],
    [0xc36400n, "Ceph"],
    [0xbd00bd0n, "Lustre"],
    [0x47504653n, "GPFS"],
    [0x5346414fn, "AFS"],
    [0x1021997n, "9p"],
    [0x65735546n, "FUSE"],
  ];
  for (const [type, name] of networks) {
    it(`is refused on ${name} (0x${type.toString(16)}), and nothing is made there`, async () => {
      const statFs: StatFs = async (path) => ({ ...(await systemStatFs(path)), type });
      const refused = await failureOf(open(directory.file("a/db"), statFs));
      expect(refused).to.include({ code: "store_unusable" });
      expect(refused.params["reason"]).to.include(`(${name})`);
      expect(refused.hint).to.equal("use a directory on a local disk");
      expect(await readdir(directory.path)).to.deep.equal([]);
    });
  }

  it("a path that cannot be a directory is refused with the reason", async () => {
    await writeFile(directory.file("file"), "");
    const cases = [
      [directory.file("file"), "it is a file, not a directory"],
      [directory.file("file/db"), "a part of the path is not a directory"],
      ["/proc/nowhere/db", "it does not exist"],
    ] as const;
    for (const [path, reason] of cases) {
      const refused = await failureOf(open(path));
      expect(refused, path).to.include({ code: "store_unusable" });
      expect(refused.params["reason"], path).to.equal(reason);
    }
    expect(await readFile(directory.file("file"), "utf8")).to.equal("");
  });

  it("a directory with something else in it is left alone", async () => {
    const path = directory.file("home");
    await mkdir(path);
    await writeFile(directory.file("home/letter.txt"), "dear");
    await mkdir(directory.file("home/shared"));
    for (const name of ["home", "home/shared", "home/letter.txt"]) await chmod(directory.file(name), 0o777);
    const refused = await failureOf(open(path));
    expect(refused).to.include({ code: "store_unusable" });
    expect(refused.params["reason"]).to.equal("it holds letter.txt, which is not of a database");
    expect(await readdir(path)).to.deep.equal(["letter.txt", "shared"]);
    expect(await readdir(directory.path)).to.deep.equal(["home"]);
    for (const name of ["home", "home/shared", "home/letter.txt"])
      expect((await stat(directory.file(name))).mode & 0o777, name).to.equal(0o777);
  });

  it("a database that was only begun when its process was killed opens", async () => {
    const path = directory.file("db");
    await mkdir(path);
    for (const name of ["LOCK", "LOG", "MANIFEST-000001", "000001.dbtmp"])
      await writeFile(`${path}/${name}`, "");
    await (await open(path)).close();
  });

  it("closing leaves a file beside the directory alone that somebody else has written", async () => {
    const path = directory.file("db");
    const store = await open(path);
    await writeFile(holderFilePath(path), "mine");
    await store.close();
    expect(await readFile(holderFilePath(path), "utf8")).to.equal("mine");
    await (await open(path)).close();
  });
});
