import { mkdir, readdir, writeFile } from "node:fs/promises";
import { basename } from "node:path";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { newUlid } from "../../../src/base/ids.ts";
import type { Epoch, IncarnationId } from "../../../src/base/ids.ts";
import { openOwnStore } from "../../../src/compose/own-store.ts";
import { Role } from "../../../src/coordinator/lead/role.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { Store } from "../../../src/storage/store.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

describe("the database of a coordinator's role", () => {
  const directory = useTemporaryDirectory();
  const log = new RecordingLogger();

  const open = (): Promise<Store> =>
    openOwnStore({
      ...{ stateDir: directory.path, holderName: "rollout coordinator run" },
      ...{ clock: systemClock, random: systemRandom, log },
    });
  const names = async (): Promise<string[]> => (await readdir(directory.file("coordinators"))).sort();

  /** As a process would that leads with it, or with the incarnation's, and then ends so. */
  async function ledIn(store: Store, epoch: number, ending: "resigned" | "fenced" | "killed"): Promise<void> {
    const role = await roleIn(store);
    await role.claim("free", { weight: 1, isItsTurn: true, hasQuorum: true });
    await role.lead(epoch as Epoch, {
      startLeading() {},
      abortFenced() {},
      resignLease: () => Promise.resolve(),
    });
    if (ending === "resigned") await role.resign();
    if (ending === "fenced") await role.lose({ reason: "a test", seenEpoch: epoch + 1, by: "01X" });
    await role.close();
    await store.close();
  }

  const roleIn = (ownStore: Store): Promise<Role> =>
    Role.take({
      ...{ ownStore, clock: systemClock, random: systemRandom, log: silentLogger },
      ...{ incarnation: newUlid<IncarnationId>(systemClock, systemRandom), onFatal: () => {} },
    });

  async function saidByNext(): Promise<string | undefined> {
    const store = await open();
    const role = await roleIn(store);
    await role.close();
    await store.close();
    return role.former;
  }

  it("is the same for all starts, also where an earlier version has made one for each start", async () => {
    for (const letter of ["A", "C", "B"])
      await mkdir(directory.file(`coordinators/01M7S07YN${letter}XFGXNEKQ4T8R1M0J`), { recursive: true });
    const made = await names();
    for (let start = 0; start < 2; start++) {
      const store = await open();
      expect(basename(store.location)).to.equal(made[2]);
      await store.close();
    }
    expect(await names()).to.deep.equal(made.slice(2));
    expect(log.lines).to.deep.equal([]);
  });

  for (const [ending, said] of [
    ["fenced", "was fenced at epoch 5 by coordinator 01X, which leads at epoch 6"],
    ["killed", "was killed while it led at epoch 5"],
  ] as const)
    it(`tells of the last leadership, which was ${ending}, and not of one that had ended beside it before`, async () => {
      const [first, beside, standby] = [await open(), await open(), await open()];
      await ledIn(beside, 0, "resigned");
      await standby.close();
      await ledIn(first, 5, ending);
      expect(await saidByNext()).to.equal(said);
      expect(await names()).to.deep.equal([basename(first.location)]);
      expect(await saidByNext()).to.equal(said);
    });

  it("goes on with the removal of another one in the midst of which a process died", async () => {
    await ledIn(await open(), 3, "resigned");
    const [kept = ""] = await names();
    const removed = directory.file("coordinators/01M7S07YNAXFGXNEKQ4T8R1M0J");
    await mkdir(`${removed}.removed`);
    await writeFile(`${removed}.lock`, "");
    expect(await saidByNext()).to.equal("resigned at epoch 3");
    expect(await names()).to.deep.equal([kept]);
  });

  it("is a second one beside a live coordinator", async () => {
    const first = await open();
    const second = await open();
    expect(second.location).to.not.equal(first.location);
    await first.close();
    const third = await open();
    expect(third.location).to.equal(first.location);
    await third.close();
    await second.close();
    expect(await names()).to.have.length(2);
    expect(await saidByNext()).to.equal(undefined);
    expect(await names()).to.have.length(1);
  });

  it("is made anew, with a warning once, where the one before cannot be opened", async () => {
    const damaged = directory.file("coordinators/01M7S07YNAXFGXNEKQ4T8R1M0J");
    await mkdir(damaged, { recursive: true });
    await writeFile(`${damaged}/notes.txt`, "of somebody else");
    for (let start = 0; start < 2; start++) {
      const store = await open();
      expect(store.location).to.not.equal(damaged);
      await store.close();
    }
    expect(await names()).to.have.length(2);
    expect(log.lines.map(({ level }) => level)).to.deep.equal(["warn"]);
  });
});
