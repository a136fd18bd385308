// Commands that mend a run's tables on a Postgres while nobody leads there, two at once.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { openUnled } from "../../src/compose/unled-store.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import { silentLogger } from "../../src/observe/log.ts";
import type { Store } from "../../src/storage/store.ts";
import { batchOf, putOf, textOf } from "../support/batch.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";
import { failureOf } from "../support/rejection.ts";

describe("tables on a Postgres that nobody leads with", () => {
  const database = usePostgresDatabase();
  const closeLater = useClosers();

  async function opened(runId: ReturnType<typeof newRunId>): Promise<Store> {
    const { address } = testStoreOptions(database.url);
    const password = (): string => decodeURIComponent(new URL(database.url).password);
    const storage = { address, password, passwordFile: undefined };
    const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
    const found = await openUnled({ storage, runId, ttlMs: 100, ...ports });
    if (found.kind !== "free") throw new Error(`it is ${found.kind}`);
    closeLater(() => found.store.close());
    return found.store;
  }

  it("are written by one of two commands that have read the same row, and the other command gets a conflict", async () => {
    const runId = newRunId();
    const store = await openTestStore(database.url, runId);
    closeLater(() => store.close());
    await store.commit(batchOf({ puts: [putOf("meta/list", "a")] }));
    const [one, other] = [await opened(runId), await opened(runId)];
    const add = async (to: Store, word: string): Promise<unknown> => {
      const list = textOf(await to.get("meta/list")) ?? "";
      return () => to.commit(batchOf({ puts: [putOf("meta/list", `${list} ${word}`)] }));
    };
    const [first, second] = (await Promise.all([
      add(one, "b"),
      add(other, "c"),
    ])) as (() => Promise<unknown>)[];
    expect(await first?.()).to.deep.equal({ kind: "committed" });
    const error = await failureOf(second?.() ?? Promise.resolve());
    expect(error).to.include({ code: "store_held" });
    expect(error.message).to.include("another command, which has written meta/list");
    expect(textOf(await store.get("meta/list"))).to.equal("a b");
  });

  it("are not written any more when a coordinator has begun to lead", async () => {
    const runId = newRunId();
    const store = await openTestStore(database.url, runId);
    closeLater(() => store.close());
    const mending = await opened(runId);
    await new StorageLease(store, "a").claim();
    const error = await failureOf(mending.commit(batchOf({ puts: [putOf("meta/list", "a")] })));
    expect(error).to.include({ code: "store_held" });
    expect(await store.get("meta/list")).to.equal(undefined);
  });
});
