import { readFile, rm, truncate, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { verifySegment } from "../../../../src/storage/segment-count.ts";
import { damagedCopy, fileOf, flippedCopies } from "../../../support/damaged-copy.ts";
import { examineLamps, fillLamps, lampSegment, openLamps } from "../../../support/lamp-store.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

const LOG = /\.log$/;
const WITNESS = /^commits\.synced$/;

describe("damage to the log of a LevelDB", () => {
  const directory = useTemporaryDirectory();

  it("undamaged, nothing is reported, from the log and from tables", async () => {
    await fillLamps(directory.file("db"), "sync");
    for (let round = 0; round < 3; round++)
      expect(await examineLamps(directory.file("db"))).to.equal(undefined);
  });

  it("any flipped bit of a synced log is reported by the commit that it took", async () => {
    await fillLamps(directory.file("db"), "sync");
    const copies = await flippedCopies(directory.file("db"), directory.file("copy"), LOG, {
      cases: 60,
      seed: 11,
    });
    for (const copy of copies) {
      const finding = await examineLamps(copy);
      expect(finding?.key, copy).to.match(/^commit \d+$/);
      expect(finding?.reason, copy).to.match(
        /^it is missing, and commit \d+ (is there|was acknowledged as synced)$/,
      );
    }
  });

  it("any shorter synced log is reported by the first commit that is lost", async () => {
    await fillLamps(directory.file("db"), "sync");
    const size = (await readFile(await fileOf(directory.file("db"), LOG))).length;
    for (let length = 0; length < size; length += Math.ceil(size / 25)) {
      const path = await damagedCopy(directory.file("db"), directory.file(`copy-${length}`), async (copy) =>
        truncate(await fileOf(copy, LOG), length),
      );
      const finding = await examineLamps(path);
      expect(finding?.key, `${length} bytes`).to.match(/^commit \d+$/);
      expect(finding?.reason).to.equal("it is missing, and commit 61 was acknowledged as synced");
    }
  });

  it("a synced log that is gone is reported", async () => {
    await fillLamps(directory.file("db"), "sync");
    await rm(await fileOf(directory.file("db"), LOG));
    expect((await examineLamps(directory.file("db")))?.key).to.equal("commit 1");
  });

  it("a hole in a log that was only flushed is reported: commits behind it are there", async () => {
    await fillLamps(directory.file("db"), "flush");
    const file = await fileOf(directory.file("db"), LOG);
    const bytes = await readFile(file);
    bytes[1_000] = (bytes[1_000] ?? 0) ^ 1;
    await writeFile(file, bytes);
    expect((await examineLamps(directory.file("db")))?.key).to.match(/^commit \d+$/);
  });

  it("a shorter log that was only flushed is a first part of the commits, and no damage", async () => {
    await fillLamps(directory.file("db"), "flush");
    await truncate(await fileOf(directory.file("db"), LOG), 20_000);
    const store = await openLamps(directory.file("db"));
    expect(await verifySegment(store, lampSegment)).to.include({ kind: "ok" });
    expect(await verifySegment(store, lampSegment, "walk")).to.include({ kind: "ok" });
    await store.close();
  });

  it("a witness that is gone or damaged claims nothing", async () => {
    await fillLamps(directory.file("db"), "sync");
    await writeFile(await fileOf(directory.file("db"), WITNESS), "0000000000009999 00000000\n");
    expect(await examineLamps(directory.file("db"))).to.equal(undefined);
    await rm(await fileOf(directory.file("db"), WITNESS));
    expect(await examineLamps(directory.file("db"))).to.equal(undefined);
  });

  it("LevelDB's files that are gone are reported", async () => {
    await fillLamps(directory.file("db"), "sync");
    await (await openLamps(directory.file("db"))).close();
    for (const pattern of [/^CURRENT$/, /^MANIFEST/, /\.ldb$/]) {
      const path = await damagedCopy(
        directory.file("db"),
        directory.file(`copy-${pattern.source.length}`),
        async (copy) => rm(await fileOf(copy, pattern)),
      );
      expect(await examineLamps(path), pattern.source).to.not.equal(undefined);
    }
  });
});
