// A store on Postgres beyond the contract: when its connections are taken away, when its server was set back, and beside others.
import { expect } from "chai";
import pg from "pg";
import { assert } from "../../src/base/assert.ts";
import { openExistingPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import { schemaOf, statementsFor } from "../../src/storage/postgres/statements.ts";
import type { CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, bytesOf, putOf, textOf } from "../support/batch.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";
import { failureOf } from "../support/rejection.ts";

const END_ALL = `SELECT pg_terminate_backend(pid), pg_sleep(0.02) FROM pg_stat_activity
  WHERE application_name = 'rollout' AND datname = current_database()`;
const WAITING = `SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()`;
const COMMITTED: CommitOutcome = { kind: "committed" };

describe("a store on Postgres (postgres_lease)", () => {
  const database = usePostgresDatabase();
  const closeLater = useClosers();
  const runId = newRunId();
  const schema = schemaOf(runId);
  let store: Store;

  beforeEach(async () => {
    await database.query(`DROP SCHEMA IF EXISTS ${schema} CASCADE`);
    store = await openTestStore(database.url, runId);
    closeLater(() => store.close());
  });

  const put = (key: string, value = "1"): Promise<CommitOutcome> =>
    store.commit(batchOf({ puts: [putOf(key, value)] }));

  it("has one row, also when the statement that makes it arrives once more behind its first turns", async () => {
    await put("a");
    const { insertWriter } = statementsFor(schema);
    const rows = `SELECT id, turn FROM ${schema}.writers ORDER BY id DESC, turn`;
    const [before] = await database.query(rows);
    const id = String(before?.["id"]);
    await database.query(insertWriter, [id]);
    const found = await database.query(rows);
    expect(found.filter((row) => row["id"] === id)).to.deep.equal([before]);
  });

  it("goes on, and loses and repeats nothing, when its connections are ended between commits and in them", async () => {
    expect(await put("counter", "0")).to.deep.equal(COMMITTED);
    const over = new AbortController();
    closeLater(() => over.abort());
    const ending = (async () => {
      while (!over.signal.aborted) await database.query(END_ALL);
    })();
    for (let round = 0; round < 100; round++) {
      const outcome = await store.commit(
        batchOf({
          puts: [putOf("counter", `${round + 1}`)],
          expect: [{ key: "counter", value: bytesOf(`${round}`) }],
        }),
      );
      expect(outcome).to.deep.equal(COMMITTED);
    }
    over.abort();
    await ending;
    expect(textOf(await store.get("counter"))).to.equal("100");
  });

  /** As a leader's turns are: it rests on a row that it does not change. */
  const turn = (key: string, fence: string): Promise<CommitOutcome> =>
    store.commit(batchOf({ puts: [putOf(key, "1")], expect: [{ key: "fence", value: bytesOf(fence) }] }));

  it("writes nothing more that rests on what was lost when its server has fewer commits than it was answered", async () => {
    await put("fence", "1");
    await turn("a", "1");
    await database.query(`UPDATE ${schema}.writers SET turn = 1`);
    const outcome = await turn("b", "1");
    expect(outcome).to.have.property("kind", "unknown");
    expect(outcome).to.have.nested.property("cause.code", "store_write_failed");
    expect(outcome).to.have.nested.property("cause.message").that.includes("number 1, and 2 were answered");
    await database.query(`UPDATE ${schema}.writers SET turn = 2`);
    expect(await turn("c", "1")).to.have.property("kind", "unknown");
    expect(await store.getMany(["b", "c"])).to.deep.equal([undefined, undefined]);
  });

  it("goes on with what rests on nothing, and with the turns of a later claim, when its server knows nothing of it", async () => {
    await put("fence", "1");
    await turn("a", "1");
    await database.query(`DELETE FROM ${schema}.writers`);
    expect(await turn("b", "1"))
      .to.have.nested.property("cause.message")
      .that.includes("knows nothing of this writer");
    expect(await put("fence", "2")).to.deep.equal(COMMITTED);
    expect(await turn("c", "2")).to.deep.equal(COMMITTED);
    expect(await turn("d", "1")).to.have.property("kind", "unknown");
    expect(await store.getMany(["b", "d"])).to.deep.equal([undefined, undefined]);
  });

  it("overwrites its row when somebody else had overwritten it", async () => {
    await put("a");
    await database.query(`UPDATE ${schema}.writers SET session = session + 1`);
    expect(await put("b")).to.deep.equal(COMMITTED);
    expect(textOf(await store.get("b"))).to.equal("1");
  });

  /** In a transaction of its own, to hold locks as another process does. */
  async function beginElsewhere(): Promise<pg.Client> {
    const other = new pg.Client({ connectionString: database.url });
    await other.connect();
    closeLater(() => other.end());
    await other.query("BEGIN");
    return other;
  }

  const isWaited = (): Promise<true> =>
    eventually("it waits", async () => {
      const rows = await database.query(WAITING);
      return rows.length > 0;
    });

  it("waits for a claim that is on its way, and writes nothing if that has taken the epoch", async () => {
    await put("epoch", "7");
    const fenced = (): Promise<CommitOutcome> =>
      store.commit(batchOf({ puts: [putOf("late", "1")], expect: [{ key: "epoch", value: bytesOf("7") }] }));
    for (const [verb, expected] of [
      ["ROLLBACK", COMMITTED],
      ["COMMIT", { kind: "conflict", key: "epoch" }],
    ] as const) {
      const other = await beginElsewhere();
      await other.query(`UPDATE ${schema}.kv SET value = '8' WHERE key = 'epoch'`);
      const waiting = fenced();
      await isWaited();
      await other.query(verb);
      expect(await waiting).to.deep.equal(expected);
    }
  });

  it("holds a claim up until what it has begun to write is committed, so that what a claim sees is final", async () => {
    await put("epoch", "7");
    await put("held");
    const other = await beginElsewhere();
    await other.query(`SELECT FROM ${schema}.kv WHERE key = 'held' FOR UPDATE`);
    const waiting = store.commit(
      batchOf({ puts: [putOf("held", "2")], expect: [{ key: "epoch", value: bytesOf("7") }] }),
    );
    await isWaited();
    const claimant = await openTestStore(database.url, runId);
    closeLater(() => claimant.close());
    let isClaimed = false;
    const claim = claimant
      .commit(batchOf({ puts: [putOf("epoch", "8")], expect: [{ key: "epoch", value: bytesOf("7") }] }))
      .finally(() => (isClaimed = true));
    await eventually("both wait", async () => {
      const rows = await database.query(WAITING);
      return rows.length > 1;
    });
    expect(isClaimed).to.equal(false);
    await other.query("ROLLBACK");
    expect(await Promise.all([waiting, claim])).to.deep.equal([COMMITTED, COMMITTED]);
    expect(textOf(await claimant.get("held"))).to.equal("2");
  });

  it("renews the lease beside a commit that waits", async () => {
    await put("held");
    await store.commit(batchOf({ puts: [putOf("lease/x", "1")] }));
    const other = await beginElsewhere();
    await other.query(`SELECT FROM ${schema}.kv WHERE key = 'held' FOR UPDATE`);
    let isAnswered = false;
    const waiting = put("held", "2").finally(() => (isAnswered = true));
    await isWaited();
    const renewal = await store.commit(
      batchOf({ puts: [putOf("lease/x", "2")], expect: [{ key: "lease/x", value: bytesOf("1") }] }),
    );
    expect(renewal).to.deep.equal(COMMITTED);
    expect(isAnswered).to.equal(false);
    await other.query("ROLLBACK");
    expect(await waiting).to.deep.equal(COMMITTED);
  });

  it("keeps operations on the lease in order, on whichever connection they go", async () => {
    const commits: Promise<CommitOutcome>[] = [];
    await store.commit(batchOf({ puts: [putOf("lease/x", "0")] }));
    for (let at = 0; at < 60; at++) {
      const puts = [putOf("lease/x", `${at + 1}`), ...(at % 3 === 0 ? [putOf("epoch", `${at}`)] : [])];
      commits.push(store.commit(batchOf({ puts, expect: [{ key: "lease/x", value: bytesOf(`${at}`) }] })));
    }
    expect(new Set((await Promise.all(commits)).map(({ kind }) => kind))).to.deep.equal(
      new Set(["committed"]),
    );
  });

  it("lets one of several processes have a place that each expects to be absent", async () => {
    const others = await Promise.all([1, 2, 3].map(() => openTestStore(database.url, runId)));
    for (const other of others) closeLater(() => other.close());
    for (let round = 0; round < 5; round++) {
      const outcomes = await Promise.all(
        others.map((other, at) =>
          other.commit(
            batchOf({
              puts: [putOf(`place/${round}`, `${at}`)],
              expect: [
                { key: `place/${round}`, value: null },
                { key: `never/${round}`, value: null },
              ],
            }),
          ),
        ),
      );
      expect(outcomes.map(({ kind }) => kind).sort()).to.deep.equal(["committed", "conflict", "conflict"]);
    }
    expect(await store.scan({ from: "never/", to: "never0", limit: 9 })).to.deep.equal([]);
  });

  it("takes a snapshot of one moment, and answers many reads at once from it", async () => {
    await put("a", "old");
    const frozen = await store.freeze?.();
    assert(frozen !== undefined, "it can be frozen");
    await store.commit(batchOf({ puts: [putOf("a", "new"), putOf("b", "new")] }));
    const warnings: Error[] = [];
    const onWarning = (warning: Error): void => void warnings.push(warning);
    process.on("warning", onWarning);
    closeLater(() => process.off("warning", onWarning));
    const found = await Promise.all([
      ...["a", "b"].map(async (key) => textOf(await frozen.get(key))),
      frozen.scan({ from: "a", to: "c", limit: 9 }).then(({ length }) => length),
    ]);
    expect(found).to.deep.equal(["old", undefined, 1]);
    await frozen.close();
    expect(textOf(await store.get("a"))).to.equal("new");
    expect(warnings).to.deep.equal([]);
  });

  it("is opened by several processes at once, of which one makes its tables", async () => {
    const another = newRunId();
    const stores = await Promise.all([1, 2, 3, 4].map(() => openTestStore(database.url, another)));
    expect(new Set(stores.map(({ generation }) => generation)).size).to.equal(1);
    expect(stores[0]?.generation).to.match(/^\d+\/[0-9A-F]{8}$/);
    await Promise.all(stores.map((one) => one.close()));
  });

  it("makes no table when it is only read", async () => {
    const another = newRunId();
    expect(await openExistingPostgresStore(testStoreOptions(database.url, another))).to.equal(undefined);
    const found = await database.query(`SELECT FROM pg_namespace WHERE nspname = '${schemaOf(another)}'`);
    expect(found).to.deep.equal([]);
  });

  it("is refused when a newer rollout has written it", async () => {
    await database.query(`UPDATE ${schema}.meta SET schema_version = 99`);
    const error = await failureOf(openTestStore(database.url, runId));
    expect(error).to.include({ code: "store_newer" });
    expect(error.params).to.include({ found: "99", known: "1" });
  });

  it("shows no password in any error", async () => {
    const options = testStoreOptions(database.url, runId);
    const secret = "correct horse battery";
    const error = await failureOf(
      openTestStore(database.url.replace(/:[^:@]*@/, `:${encodeURIComponent(secret)}@`)),
    );
    expect(error).to.include({ code: "store_unusable" });
    expect(JSON.stringify([error, error.message, error.hint, store.location, options])).to.not.include(
      secret,
    );
    expect(store.location).to.match(/^postgres:\/\/\w+@127\.0\.0\.1:\d+\/\w+ \(schema rollout_\w+\)$/);
  });

  it("names what each host answered when none can be reached", async () => {
    const { address, ...options } = testStoreOptions("postgres://u:p@127.0.0.1:1,127.0.0.1:2/d");
    const error = await failureOf(openExistingPostgresStore({ ...options, address }));
    expect(error).to.include({ code: "store_unreachable" });
    expect(error.message).to.match(/127\.0\.0\.1:1: .*ECONNREFUSED.*; 127\.0\.0\.1:2: /);
  });
});
