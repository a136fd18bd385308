// Answers of a Postgres that are not the good one, put on the wire by a proxy: failures that may be tried again, a warning, silence.
import { expect } from "chai";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import type { RunId } from "../../src/base/ids.ts";
import { openPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import type { CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, bytesOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import type { PostgresDatabase } from "../support/postgres-database.ts";
import { hastyClock } from "../support/hasty-clock.ts";
import { startPostgresProxy } from "./postgres/proxy.ts";
import type { PostgresProxy } from "./postgres/proxy.ts";
import type { Fate } from "./postgres/relay.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";

/** Batches of the two forms in which the store writes: one statement, and where a key is to be absent a transaction. */
const FORMS = {
  "one statement": batchOf({
    puts: [putOf("n", "2")],
    expect: [{ key: "n", value: bytesOf("1") }],
    durability: "sync",
  }),
  "a transaction": batchOf({
    puts: [putOf("new", "2"), putOf("n", "2")],
    expect: [
      { key: "new", value: null },
      { key: "n", value: bytesOf("1") },
    ],
    durability: "sync",
  }),
};

describe("Postgres: answers that are not the good one", () => {
  const database = usePostgresDatabase();
  const closeLater = useClosers();
  let proxy: PostgresProxy;
  let store: Store;
  let direct: Store;
  let runId: RunId;
  beforeEach(async () => {
    runId = newRunId();
    proxy = await startPostgresProxy(database.url);
    closeLater(() => proxy.close());
    direct = await openTestStore(database.url, runId);
    closeLater(() => direct.close());
    store = await openTestStore(proxy.url, runId);
    closeLater(() => store.close());
    await store.commit(batchOf({ puts: [putOf("n", "1")] }));
  });

  for (const code of ["40001", "40P01", "55P03", "57014"])
    for (const [form, batch] of Object.entries(FORMS))
      it(`${form} that the server fails with ${code} is tried again from its beginning, and written once`, async () => {
        let [tries, seen] = [0, 0];
        // Each statement of it fails once, one after the other.
        proxy.decide(() =>
          seen++ === tries && tries++ < 6 ? ((seen = 0), { kind: "fail", code }) : undefined,
        );
        expect(await store.commit(batch)).to.deep.equal({ kind: "committed" });
        expect(tries).to.be.greaterThan(0);
        expect(textOf(await direct.get("n"))).to.equal("2");
        expect(await store.commit(batch)).to.include({ kind: "conflict" });
      });

  it("a failure that stays is an outcome that is unknown, and nothing is written", async () => {
    proxy.decide(({ commits }) => (commits ? { kind: "fail", code: "42501" } : undefined));
    expect((await store.commit(FORMS["one statement"])).kind).to.equal("unknown");
    proxy.decide();
    expect(textOf(await direct.get("n"))).to.equal("1");
  });

  it("a commit with a warning that it is not replicated is unknown, and so is all that leader writes after it", async () => {
    const lease = new StorageLease(store, "a");
    const claim = await lease.take(await lease.read());
    if (claim.kind !== "taken") throw new Error("nobody else claims");
    const { epochRow } = claim.leadership;
    const turn = (key: string): Promise<CommitOutcome> =>
      store.commit(
        batchOf({
          puts: [putOf(key, "")],
          expect: [epochRow],
          durability: "sync",
        }),
      );
    let warned = false;
    proxy.decide(({ commits }) =>
      commits && !warned ? ((warned = true), { kind: "warn", code: "01000" }) : undefined,
    );
    const outcomes = await Promise.all([turn("first"), turn("second")]);
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["unknown", "unknown"]);
    expect((await turn("third")).kind).to.equal("unknown");
    expect(await direct.get("third")).to.equal(undefined);
    const successor = new StorageLease(direct, "b");
    expect((await successor.take(await successor.read())).kind).to.equal("taken");
  });

  it("a process that is paused in the middle of a transaction gives back what it holds, and then finds who has followed", async () => {
    const older = new StorageLease(store, "older");
    const claim = await older.take(await older.read());
    if (claim.kind !== "taken") throw new Error("nobody else claims");
    const { epochRow } = claim.leadership;
    const woken = Promise.withResolvers<undefined>();
    proxy.decide(({ text }) => {
      if (text !== "COMMIT") return undefined;
      proxy.freeze();
      return { kind: "hold", until: woken.promise };
    });
    const absent = { key: "new", value: null };
    const paused = store.commit(batchOf({ puts: [putOf("new", "")], expect: [epochRow, absent] }));
    await eventually("it holds the epoch's row", async () => (await lockHolders(database)) > 0);
    const newer = new StorageLease(direct, "newer");
    expect((await newer.take(await newer.read())).kind).to.equal("taken");
    proxy.decide();
    woken.resolve(undefined);
    proxy.thaw();
    expect(await paused).to.deep.equal({ kind: "conflict", key: epochRow.key });
    expect(await direct.get("new")).to.equal(undefined);
  });

  it("a server that is silent for too long makes the outcome unknown, the lease's too, and nothing comes late", async () => {
    const options = {
      ...testStoreOptions(proxy.url, runId),
      clock: hastyClock(20),
    };
    const hasty = await openPostgresStore(options);
    closeLater(() => hasty.close());
    const lease = new StorageLease(hasty, "a");
    expect((await lease.take(await lease.read())).kind).to.equal("taken");
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    proxy.freeze();
    proxy.refuse(true);
    const outcomes = await Promise.all([hasty.commit(FORMS["one statement"]), lease.renew()]);
    expect(outcomes.map(({ kind }) => kind)).to.deep.equal(["unknown", "unclear"]);
    proxy.refuse(false);
    proxy.thaw();
    expect(await hasty.commit(batchOf({ puts: [putOf("other", "")] }))).to.deep.equal({ kind: "committed" });
    await direct.commit(batchOf({ puts: [putOf("n", "3")] }));
    await hasty.commit(batchOf({ durability: "sync" }));
    expect(textOf(await direct.get("n"))).to.equal("3");
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
  });

  for (const code of ["40001", "53300", "57P03"])
    it(`a commit whose answer is lost is written once, though the server first fails with ${code} when it is looked for`, async () => {
      const fates: Fate[] = [
        { kind: "cut", at: "after" },
        { kind: "fail", code },
      ];
      proxy.decide(({ commits }) => (commits ? fates.shift() : undefined));
      expect(await store.commit(FORMS["one statement"])).to.deep.equal({ kind: "committed" });
      expect(fates).to.deep.equal([]);
    });

  it("bytes that the server shows in their older form are the same bytes", async () => {
    const name = new URL(database.url).pathname.slice(1);
    await database.query(`ALTER DATABASE ${name} SET bytea_output = 'escape'`);
    const every = Uint8Array.from({ length: 256 }, (_, at) => at);
    const older = await openTestStore(database.url, runId);
    try {
      await older.commit(batchOf({ puts: [{ key: "every\\x", value: every }, putOf("x", "\\x41")] }));
      expect(Buffer.from((await older.get("every\\x")) ?? [])).to.deep.equal(Buffer.from(every));
      const shown = (await older.scan(EVERYTHING)).map(({ key, value }) => [key, value.length]);
      expect(shown).to.deep.equal([
        ["every\\x", 256],
        ["n", 1],
        ["x", 4],
      ]);
    } finally {
      await older.close();
      await database.query(`ALTER DATABASE ${name} RESET bytea_output`);
    }
  });

  it("reads that hang, as many as there are, keep neither a commit nor a renewal", async () => {
    const lease = new StorageLease(store, "a");
    expect((await lease.take(await lease.read())).kind).to.equal("taken");
    const answered = Promise.withResolvers<undefined>();
    proxy.decide(({ text }) =>
      text.startsWith("SELECT") ? { kind: "hold", until: answered.promise } : undefined,
    );
    const reads = Promise.all(Array.from({ length: 9 }, () => store.get("n")));
    expect(await store.commit(FORMS["one statement"])).to.deep.equal({ kind: "committed" });
    expect(await lease.renew()).to.deep.equal({ kind: "renewed" });
    answered.resolve(undefined);
    expect(new Set((await reads).map(textOf)).size).to.equal(1);
  });

  for (const at of ["before", "request", "late", "during", "answer", "after"] as const)
    for (const [form, batch] of Object.entries(FORMS))
      it(`${form} whose connection is cut at "${at}" is written once, and answered so`, async () => {
        const cut = Promise.withResolvers<undefined>();
        let cuts = 0;
        proxy.decide(({ commits }) =>
          commits && cuts++ === 0 ? { kind: "cut", at, until: cut.promise } : undefined,
        );
        expect(await store.commit(batch)).to.deep.equal({ kind: "committed" });
        expect(cuts).to.be.greaterThan(0);
        await direct.commit(batchOf({ puts: [putOf("n", "3")] }));
        cut.resolve(undefined);
        await store.commit(batchOf({}));
        expect(textOf(await direct.get("n")), "it does not come again").to.equal("3");
      });
});

/** Sessions in the middle of a transaction. */
async function lockHolders(database: PostgresDatabase): Promise<number> {
  const rows = await database.query(
    "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'",
  );
  return rows.length;
}
