// Backups over a real listener, of a database on disk: one at a time, and none that was cut off is taken for a whole one.
import type { Client } from "@connectrpc/connect";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { backUpRun } from "../../../src/compose/back-up-run.ts";
import type { OperatorService } from "../../../src/gen/rollout/v1/run_pb.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import { openLevelStore } from "../../../src/storage/level/level-store.ts";
import { claimStore } from "../../../src/storage/store-identity.ts";
import type { Store } from "../../../src/storage/store.ts";
import { batchOf, EVERYTHING } from "../../support/batch.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { failureOf } from "../../support/rejection.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import type { ListeningCoordinator } from "../../support/test-coordinator.ts";
import { workerClient } from "../../support/worker-client.ts";

type Calls = Client<typeof OperatorService>;

/** Rows that no reader has read are far more than what a connection holds. */
const ROWS = 400;
const ROW_BYTES = 32 * 1_024;

describe("backing up a run", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();
  let listening: ListeningCoordinator;
  let store: Store;
  let calls: Calls;

  const open = async (name: string): Promise<Store> => {
    const path = directory.file(name);
    const opened = await openLevelStore({ path, holderName: "test", clock: systemClock });
    closeLater(() => opened.close());
    return opened;
  };
  const backUp = (by: Calls = calls): Promise<{ rows: number; bytes: number }> =>
    backUpRun({
      ...{ calls: by, directory: directory.file("backup"), address: "here" },
      ...{ signal: new AbortController().signal, clock: systemClock, log: silentLogger },
    });

  beforeEach(async () => {
    store = await open("db");
    const cluster = { ...(await newTestCluster()), store };
    await claimStore(store, { runId: cluster.runId, clock: systemClock, random: systemRandom });
    const value = new Uint8Array(ROW_BYTES).fill(7);
    const puts = Array.from({ length: ROWS }, (_, at) => ({ key: `zeros/${at}`, value }));
    await store.commit(batchOf({ puts }));
    listening = await startListeningCoordinator(cluster);
    closeLater(() => listening.stop());
    const operator = await workerClient(listening, { role: "operator" });
    closeLater(operator.close);
    calls = operator.run;
  });

  it("has every row as it was at one moment", async () => {
    const before = await store.scan(EVERYTHING);
    const meddling: Calls = {
      ...calls,
      async *backUp(...request) {
        for await (const page of calls.backUp(...request)) {
          await store.commit(batchOf({ puts: [{ key: "zeros/new", value: new Uint8Array() }] }));
          await store.commit(batchOf({ deletes: [`zeros/${ROWS - 1}`] }));
          yield page;
        }
      },
    };
    expect((await backUp(meddling)).rows).to.equal(before.length);
    expect(await (await open("backup")).scan(EVERYTHING)).to.deep.equal(before);
  });

  it("runs once at a time, and again when the one before has ended", async () => {
    const leaving = new AbortController();
    const first = calls.backUp({}, { signal: leaving.signal })[Symbol.asyncIterator]();
    await first.next();
    expect(await failureOf(backUp())).to.include({ code: "overloaded" });
    leaving.abort();
    await first.next().catch(() => undefined);
    await eventually("the next one is taken", () =>
      backUp().then(
        () => true,
        () => false,
      ),
    );
  });

  it("leaves, when it is cut off, a copy that nobody leads with, and can be begun anew", async () => {
    let pages = 0;
    const mortal: Calls = {
      ...calls,
      async *backUp(...request) {
        for await (const page of calls.backUp(...request)) {
          yield page;
          if (++pages === 2) await listening.stop();
        }
      },
    };
    expect((await failureOf(backUp(mortal))).row.retry).to.not.equal("never");
    const half = await open("backup");
    expect((await half.scan(EVERYTHING)).length).to.be.within(1, ROWS - 1);
    const { runId } = listening;
    const claim = claimStore(half, { runId, clock: systemClock, random: systemRandom });
    expect(await failureOf(claim)).to.include({ code: "store_corrupt" });
    await half.close();

    const next = await startListeningCoordinator(listening);
    closeLater(() => next.stop());
    const operator = await workerClient(next, { role: "operator" });
    closeLater(operator.close);
    await backUp(operator.run);
    const whole = await open("backup");
    expect((await whole.scan(EVERYTHING)).length).to.equal((await store.scan(EVERYTHING)).length);
  });

  it("fails when the coordinator has not said that all rows were sent", async () => {
    const silent: Calls = {
      ...calls,
      async *backUp(...request) {
        for await (const page of calls.backUp(...request)) if (page.keys.length > 0) yield page;
      },
    };
    expect(await failureOf(backUp(silent))).to.include({ code: "coordinator_silent" });
  });
});
