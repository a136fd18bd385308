// A database host that vanishes without a word: what was sent to it is never answered, nor are new connections to it. There is another way
// to the server.
import { expect } from "chai";
import { systemClock } from "../../src/base/clock.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import type { Store } from "../../src/storage/store.ts";
import { batchOf, putOf, textOf } from "../support/batch.ts";
import { useClosers } from "../support/closers.ts";
import { pace } from "../support/pace.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { urlOfHosts } from "../support/postgres-pair.ts";
import { startPostgresProxy } from "./postgres/proxy.ts";
import type { PostgresProxy } from "./postgres/proxy.ts";
import { openTestStore } from "../support/postgres-store.ts";

/** Less than the half minute that a commit which waits for its standby may take. */
const FEW_SECONDS_MS = 15_000;
/** Less than the silence that tells that a host is gone. */
const AT_ONCE_MS = 2_500;

describe("Postgres: a host that vanishes", () => {
  const database = usePostgresDatabase();
  const closeLater = useClosers();
  let proxy: PostgresProxy;
  let store: Store;
  beforeEach(async () => {
    proxy = await startPostgresProxy(database.url);
    closeLater(() => proxy.close());
    const ports = [proxy.url, database.url].map((url) => Number(new URL(url).port));
    store = await openTestStore(urlOfHosts(database.url, ...ports));
    closeLater(() => store.close());
    await store.commit(batchOf({ puts: [putOf("n", "1")] }));
    await store.commit(batchOf({ puts: [putOf("own", "")] }));
    await readMuch();
  });

  const readMuch = (): Promise<(Uint8Array | undefined)[]> =>
    Promise.all(Array.from({ length: 9 }, () => store.get("n")));

  it("costs a reader a few seconds, once for all its connections", async () => {
    proxy.freeze();
    expect(await durationOf(async () => void expect(textOf(await store.get("n"))).to.equal("1"))).to.be.below(
      FEW_SECONDS_MS,
    );
    const later = await durationOf(async () => {
      expect(new Set((await readMuch()).map(textOf))).to.deep.equal(new Set(["1"]));
    });
    expect(later).to.be.below(AT_ONCE_MS * pace());
  });

  it("delays a claim behind a flushed row of the candidate, and many reads, by a few seconds", async () => {
    const lease = new StorageLease(store, "a");
    const ground = await lease.read();
    proxy.freeze();
    const duration = await durationOf(async () => {
      const reads = readMuch();
      const flushed = store.commit(batchOf({ puts: [putOf("own", "2")], durability: "flush" }));
      const claim = lease.take(ground);
      expect(await flushed).to.deep.equal({ kind: "committed" });
      expect((await claim).kind).to.equal("taken");
      expect(new Set((await reads).map(textOf))).to.deep.equal(new Set(["1"]));
    });
    expect(duration).to.be.below(FEW_SECONDS_MS);
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
  });
});

async function durationOf(use: () => Promise<void>): Promise<number> {
  const startMs = systemClock.monotonicMs();
  await use();
  return systemClock.monotonicMs() - startMs;
}
