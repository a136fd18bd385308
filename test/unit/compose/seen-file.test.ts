import { readFileSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { newUlid } from "../../../src/base/ids.ts";
import type { StoreId } from "../../../src/base/ids.ts";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { SeenFile } from "../../../src/compose/seen-file.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { VirtualClock } from "../../support/virtual-clock.ts";

describe("the file of what a host has seen of a store", () => {
  const directory = useTemporaryDirectory();
  let storeId: StoreId;
  let log: RecordingLogger;
  let clock: VirtualClock;

  beforeEach(() => {
    storeId = newUlid<StoreId>(systemClock, systemRandom);
    log = new RecordingLogger();
    clock = new VirtualClock();
  });

  const open = (): SeenFile => new SeenFile({ stateDir: directory.file("state"), storeId, clock, log });
  const path = (): string => directory.file(`state/coordinators/${storeId}.seen`);
  const nothing = { epoch: -1, completion: 0, submitted: 0, done: 0, accepted: 0 };

  it("is not there for a store that was never seen, and nothing is warned of", async () => {
    expect(await open().recall()).to.deep.equal(nothing);
    expect(log.lines).to.deep.equal([]);
  });

  it("keeps the furthest, for the next process", async () => {
    const first = open();
    first.note({ epoch: 3 });
    first.note({ completion: 7, submitted: 20, done: 12 });
    first.note({ epoch: 1, completion: 2 });
    await first.keep();
    expect(await open().recall()).to.deep.equal({
      ...{ epoch: 3, completion: 7, submitted: 20, done: 12, accepted: 0 },
    });
  });

  it("is written within a second of a change, and once for all changes of that second", async () => {
    const memory = open();
    for (let completion = 1; completion <= 100; completion++) memory.note({ completion });
    await clock.advance(1_000);
    await memory.keep();
    expect((await open().recall()).completion).to.equal(100);
  });

  it("takes over what another process of the host has written", async () => {
    const [one, other] = [open(), open()];
    one.note({ epoch: 5, completion: 1 });
    other.note({ epoch: 4, completion: 9 });
    await one.keep();
    await other.keep();
    expect(await open().recall()).to.deep.include({ epoch: 5, completion: 9 });
    expect(await one.recall()).to.deep.include({ epoch: 5, completion: 9 });
  });

  it("forgets, in every process, what an operator accepts as lost, but no epoch", async () => {
    const [one, other] = [open(), open()];
    for (const memory of [one, other]) memory.note({ epoch: 5, completion: 90, submitted: 300, done: 200 });
    await one.keep();
    await other.keep();
    one.accept({ epoch: 2, completion: 10, submitted: 30, done: 20 });
    await one.keep();
    const accepted = { epoch: 5, completion: 10, submitted: 30, done: 20, accepted: 1 };
    expect(await other.recall()).to.deep.equal(accepted);
    other.note({ epoch: 1 });
    await other.keep();
    expect(await open().recall()).to.deep.equal(accepted);
  });

  for (const [what, content] of [
    ["is empty", ""],
    ["is no JSON", "{"],
    ["has a number that is none", '{"version":1,"epoch":"3"}'],
  ])
    it(`that ${what} causes one warning, and is written anew`, async () => {
      const first = open();
      first.note({ epoch: 1 });
      await first.keep();
      writeFileSync(path(), content ?? "");
      const memory = open();
      expect(await memory.recall()).to.deep.equal(nothing);
      await memory.recall();
      expect(log.lines.map(({ level }) => level)).to.deep.equal(["warn"]);
      memory.note({ epoch: 2 });
      await memory.keep();
      expect(JSON.parse(readFileSync(path(), "utf8"))).to.deep.include({
        version: 1,
        store: storeId,
        epoch: 2,
      });
    });

  it("that cannot be written delays nobody, and causes one warning", async () => {
    writeFileSync(directory.file("in-the-way"), "");
    const memory = new SeenFile({ stateDir: directory.file("in-the-way"), storeId, clock, log });
    memory.note({ epoch: 1 });
    await memory.keep();
    memory.note({ epoch: 2 });
    await memory.keep();
    expect((await memory.recall()).epoch).to.equal(2);
    expect(log.lines.map(({ level }) => level)).to.deep.equal(["warn"]);
  });
});
