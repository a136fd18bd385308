import { readdir, rm } from "node:fs/promises";
import { hostname } from "node:os";
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { holderFilePath, readHolder, writeHolder } from "../../src/storage/level/holder-file.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { batchOf, putOf } from "../support/batch.ts";
import { failureOf } from "../support/rejection.ts";
import type { StoreAnswer } from "./store-process.ts";
import { useStoreProcesses } from "./store-process.ts";
import { useTemporaryDirectory } from "../support/temporary-directory.ts";

describe("a second open of a database", () => {
  const directory = useTemporaryDirectory();
  const start = useStoreProcesses();
  const open = (path: string) => openLevelStore({ path, holderName: "first", clock: systemClock });
  const messageOf = (answer: StoreAnswer): string =>
    answer.kind === "failed" ? answer.message : answer.kind;

  it("by the same process is refused, and the first still holds it against others and loses no write", async () => {
    const path = directory.file("db");
    const first = await open(path);
    await first.commit(batchOf({ puts: [putOf("a", "before")], durability: "sync" }));
    for (let tries = 0; tries < 3; tries++)
      expect(await failureOf(open(path))).to.include({ code: "store_held" });

    const intruder = start(path);
    expect(await intruder.answer()).to.include({ kind: "failed", code: "store_held" });
    expect(await intruder.exit()).to.equal(6);

    expect(await first.commit(batchOf({ puts: [putOf("b", "after")], durability: "sync" }))).to.include({
      kind: "committed",
    });
    await first.close();
    const later = start(path);
    expect(await later.answer()).to.include({ kind: "open" });
    expect(await later.ask({ kind: "keys" })).to.deep.equal({ kind: "keys", keys: ["a", "b"] });
  });

  it("by another process is refused with who holds it, and the first is unharmed", async () => {
    const path = directory.file("db");
    const first = start(path);
    const opened = await first.answer();
    const pid = opened.kind === "open" ? opened.pid : 0;
    await first.ask({ kind: "put", key: "a", text: "before" });
    for (let tries = 0; tries < 2; tries++) {
      const second = start(path);
      const refused = await second.answer();
      expect(messageOf(refused)).to.match(
        new RegExp(
          `^the database ${path} is held by another process: store program, pid ${pid} on host ${hostname()} since 20`,
        ),
      );
      expect(await second.exit()).to.equal(6);
    }
    expect(await readHolder(path), "the loser leaves the winner's file").to.include({ pid });
    expect(await first.ask({ kind: "put", key: "b", text: "after" })).to.deep.equal({ kind: "committed" });
    expect(await first.ask({ kind: "close" })).to.deep.equal({ kind: "closed" });
    expect(await first.exit()).to.equal(0);
    const again = start(path);
    await again.answer();
    expect(await again.ask({ kind: "keys" })).to.deep.equal({ kind: "keys", keys: ["a", "b"] });
  });

  it("is decided by the kernel when the file that names the holder is gone, and the loser writes no such file", async () => {
    const path = directory.file("db");
    const first = start(path);
    await first.answer();
    await first.ask({ kind: "put", key: "a", text: "before" });
    await rm(holderFilePath(path));
    const second = start(path);
    expect(messageOf(await second.answer())).to.include(
      `held by another process: a process that ${path}.lock does not name`,
    );
    expect(await readdir(directory.path)).to.deep.equal(["db"]);
    expect(await first.ask({ kind: "put", key: "b", text: "after" })).to.deep.equal({ kind: "committed" });
  });

  it("of several processes that race, one wins, its file stays, and the others name it", async () => {
    const path = directory.file("db");
    const racers = [1, 2, 3, 4].map(() => start(path));
    const answers = await Promise.all(racers.map((racer) => racer.answer()));
    const winners = answers.flatMap((answer) => (answer.kind === "open" ? [answer.pid] : []));
    expect(winners.length).to.equal(1);
    expect(await readHolder(path)).to.include({ pid: winners[0] });
    for (const answer of answers) {
      if (answer.kind !== "open")
        expect(messageOf(answer)).to.include(`store program, pid ${winners[0]} on host`);
    }
    const winner = racers[answers.findIndex(({ kind }) => kind === "open")];
    expect(await winner?.ask({ kind: "put", key: "a", text: "won" })).to.deep.equal({ kind: "committed" });
  });

  it("succeeds once the holder was killed, and finds what was acknowledged", async () => {
    const path = directory.file("db");
    const first = start(path);
    await first.answer();
    await first.ask({ kind: "put", key: "a", text: "acknowledged" });
    await first.kill();
    expect(await readdir(directory.path), "the file of the dead").to.deep.equal(["db", "db.lock"]);

    const second = start(path);
    const opened = await second.answer();
    expect(opened.kind).to.equal("open");
    expect(await readHolder(path)).to.include({ pid: opened.kind === "open" ? opened.pid : 0 });
    expect(await second.ask({ kind: "get", key: "a" })).to.deep.equal({
      kind: "value",
      text: "acknowledged",
    });
  });

  it("succeeds when another process has the pid of a dead holder", async () => {
    const path = directory.file("db");
    const bystander = start(directory.file("other"));
    await bystander.answer();
    const named = await readHolder(directory.file("other"));
    if (named === undefined) throw new Error("the bystander holds its own database");
    await writeHolder(path, { ...named, startTicks: "1" });
    const opener = start(path);
    expect(await opener.answer()).to.include({ kind: "open" });
    expect(await readHolder(path)).to.not.include({ pid: named.pid });
  });
});
