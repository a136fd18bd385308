import { readdir } from "node:fs/promises";
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import type { RunId } from "../../../src/base/ids.ts";
import { openLedgerStore } from "../../../src/compose/ledger-store.ts";
import { silentLogger } from "../../../src/observe/log.ts";
import type { Store } from "../../../src/storage/store.ts";
import { batchOf } from "../../support/batch.ts";
import { useClosers } from "../../support/closers.ts";
import { eventually } from "../../support/eventually.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";

const MIB = 2 ** 20;

describe("the database of a run in a directory", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();

  it("holds 32 MiB of writes in memory before it makes a table of them, no less and no more", async () => {
    const path = directory.file("db");
    const storage = { path, postgres: undefined, onRollback: "halt" } as const;
    const waiting = { tell: () => undefined, signal: new AbortController().signal };
    const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
    const opening = { holderName: "test", ...ports, ...waiting };
    const store = await openLedgerStore({ storage, runId: "" as RunId }, opening);
    if (store === undefined) throw new Error("it is opened");
    closeLater(() => store.close());
    const tables = async (): Promise<number> =>
      (await readdir(path)).filter((name) => name.endsWith(".ldb")).length;
    await write(store, 0, 28);
    expect(await tables()).to.equal(0);
    await write(store, 28, 40);
    await eventually("a table", async () => (await tables()) > 0);
  });

  /** A MiB for each number. */
  async function write(store: Store, from: number, to: number): Promise<void> {
    for (let number = from; number < to; number++) {
      const puts = [{ key: `row/${number}`, value: Buffer.alloc(MIB, number) }];
      expect(await store.commit(batchOf({ puts }))).to.deep.equal({ kind: "committed" });
    }
  }
});
