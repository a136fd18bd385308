// Over real databases: who holds one is LevelDB's to say.
import { expect } from "chai";
import { readdir, writeFile } from "node:fs/promises";
import { systemClock } from "../../../../src/base/clock.ts";
import { isUlid } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { openLevelStore } from "../../../../src/storage/level/level-store.ts";
import type { ClaimedState, ClaimOptions } from "../../../../src/worker/life/state-directory.ts";
import {
  allocationsIn,
  allocationState,
  claimWorkerState,
  removeAllocation,
} from "../../../../src/worker/life/state-directory.ts";
import { writeRevoked } from "../../../../src/worker/life/worker-records.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import { workerId } from "../../../support/world-worker.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("the state directory of workers", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();

  async function claim(options: Partial<ClaimOptions> = {}): Promise<ClaimedState> {
    const claimed = await claimWorkerState({
      stateDir: directory.file("state"),
      workerId: undefined,
      isAllocation: false,
      openStore: (path) => openLevelStore({ path, holderName: "unit test", clock: systemClock }),
      clock: systemClock,
      random: systemRandom,
      ...options,
    });
    closeLater(() => claimed.store.close());
    return claimed;
  }

  it("gives the first worker a new id, and a directory by its name", async () => {
    const { workerId, store } = await claim();
    expect(store.location).to.equal(directory.file(`state/workers/${workerId}`));
    expect((await readdir(directory.file("state/workers"))).filter(isUlid)).to.deep.equal([workerId]);
  });

  it("keeps workers of fleets apart: nobody takes over their ids, and what is left of one is found and removed", async () => {
    const [one, other] = [workerId(1), workerId(2)] as const;
    expect(await allocationsIn(directory.file("state"))).to.deep.equal([]);
    const first = await claim({ workerId: one, isAllocation: true });
    await first.store.close();
    await claim({ workerId: other, isAllocation: true });
    expect((await claim()).workerId).not.to.be.oneOf([one, other]);
    const stateDir = directory.file("state");
    expect(await allocationsIn(stateDir)).to.deep.equal([one, other]);
    expect(allocationState(stateDir, one)).to.equal(first.store.location);
    await removeAllocation(stateDir, one);
    expect(await allocationsIn(stateDir)).to.deep.equal([other]);
  });

  it("gives a restarted worker the id that it had", async () => {
    const first = await claim();
    await first.store.close();
    expect((await claim()).workerId).to.equal(first.workerId);
  });

  it("gives each of many that run at once an id of its own, and all of them the same ones again", async () => {
    const start = async (): Promise<ClaimedState[]> => Promise.all(Array.from({ length: 6 }, () => claim()));
    const first = await start();
    const ids = first.map(({ workerId }) => workerId);
    expect(new Set(ids).size).to.equal(6);
    for (const { store } of first) await store.close();
    expect((await start()).map(({ workerId }) => workerId)).to.have.members(ids);
  });

  it("takes over what nobody holds, and leaves what somebody holds", async () => {
    const [held, free] = [await claim(), await claim()];
    await free.store.close();
    expect((await claim()).workerId).to.equal(free.workerId);
    const third = await claim();
    expect([held.workerId, free.workerId]).to.not.include(third.workerId);
  });

  it("does not take over the id of a worker that was revoked, unless it is asked for", async () => {
    const revoked = await claim();
    await writeRevoked(revoked.store, systemClock);
    await revoked.store.close();
    expect((await claim()).workerId).to.not.equal(revoked.workerId);
    expect((await claim({ workerId: revoked.workerId })).workerId).to.equal(revoked.workerId);
  });

  it("makes another id when a process that starts at the same time holds the new one first", async () => {
    const openStore: ClaimOptions["openStore"] = async (path) => {
      const open = (): ReturnType<typeof openStore> =>
        openLevelStore({ path, holderName: "unit test", clock: systemClock });
      if (taken.length === 0) {
        taken.push(path);
        const faster = await open();
        closeLater(() => faster.close());
      }
      return open();
    };
    const taken: string[] = [];
    const { store } = await claim({ openStore });
    expect(taken).to.have.length(1);
    expect(store.location).to.not.equal(taken[0]);
  });

  it("gives the id that is asked for, new or not, and none but that", async () => {
    const workerId = newWorkerId();
    await claim();
    const first = await claim({ workerId });
    expect(first.workerId).to.equal(workerId);
    await first.store.close();
    expect((await claim({ workerId })).workerId).to.equal(workerId);
  });

  it("refuses the id that is asked for while somebody holds it", async () => {
    const { workerId } = await claim();
    expect((await failureOf(claim({ workerId }))).code).to.equal("store_held");
  });

  it("refuses a damaged database instead of taking another id", async () => {
    const first = await claim();
    await first.store.close();
    await writeFile(`${first.store.location}/CURRENT`, "MANIFEST-999999\n");
    expect((await failureOf(claim())).code).to.equal("store_broken");
  });

  it("has no eyes for what is no worker's", async () => {
    const { store } = await claim();
    await writeFile(directory.file("state/workers/notes.txt"), "");
    await store.close();
    await claim();
    expect((await readdir(directory.file("state/workers"))).filter(isUlid)).to.have.length(1);
  });

  it("that cannot be made is refused by its name", async () => {
    await writeFile(directory.file("state"), "a file");
    const error = await failureOf(claim());
    expect([error.code, error.params["file"]]).to.deep.equal([
      "file_unwritable",
      directory.file("state/workers"),
    ]);
  });
});
