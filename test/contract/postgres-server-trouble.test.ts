// A Postgres in trouble: without room for connections, read-only, with unsafe settings, with a session that is stopped, back from a
// crash without its latest commits.
import { expect } from "chai";
import pg from "pg";
import type { RunId } from "../../src/base/ids.ts";
import { StorageLease } from "../../src/coordinator/lead/lease.ts";
import type { Leadership } from "../../src/coordinator/lead/lease.ts";
import type { CommitOutcome, Store } from "../../src/storage/store.ts";
import { batchOf, bytesOf, EVERYTHING, putOf, textOf } from "../support/batch.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { query } from "../support/postgres-database.ts";
import { PostgresServer } from "../support/postgres-server.ts";
import { openTestStore } from "../support/postgres-store.ts";
import { rejectionOf } from "../support/rejection.ts";
import { startTransactionPooler } from "./postgres/transaction-pooler.ts";

const END_SESSIONS =
  "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'rollout'";

describe("Postgres: a server in trouble", () => {
  const closeLater = useClosers();
  let server: PostgresServer;
  let runId: RunId;
  before(async () => {
    server = await PostgresServer.start();
  });
  after(() => server.close());
  beforeEach(() => {
    runId = newRunId();
  });

  const open = async (url = server.url): Promise<Store> => {
    const store = await openTestStore(url, runId);
    closeLater(() => store.close());
    return store;
  };
  const restart = async (settings: Readonly<Record<string, string>> = {}): Promise<void> => {
    await server.halt("SIGQUIT");
    await server.start(settings);
  };
  const lead = async (store: Store, holder: string): Promise<Leadership> => {
    const lease = new StorageLease(store, holder);
    const outcome = await lease.take(await lease.read());
    if (outcome.kind !== "taken") throw new Error(`${holder} does not lead: ${outcome.kind}`);
    return outcome.leadership;
  };

  describe("with unsafe settings", () => {
    afterEach(() => restart());
    for (const setting of ["fsync", "full_page_writes"])
      it(`is refused with ${setting} off, and the message says what to do`, async () => {
        await restart({ [setting]: "off" });
        const error = await rejectionOf(openTestStore(server.url, runId));
        expect(error).to.have.property("code", "store_unusable");
        expect(error).to.have.property("message").that.includes(`${setting} = off`);
      });
  });

  describe("whose user may do no more than make a schema", () => {
    it("is enough for a run", async () => {
      await query(server.url, "CREATE ROLE modest LOGIN PASSWORD 'modest'");
      await query(server.url, "GRANT CREATE ON DATABASE postgres TO modest");
      const store = await open(
        Object.assign(new URL(server.url), { username: "modest", password: "modest" }).href,
      );
      expect((await lead(store, "a")).epoch).to.equal(0);
      expect(store.generation).to.match(/^\d+\/0/);
    });
  });

  describe("without room for another connection", () => {
    afterEach(() => restart());

    it("costs no leader its leadership and no batch, and a new client gets an error that says so", async () => {
      await restart({ max_connections: "12" });
      const store = await open();
      const lease = new StorageLease(store, "a");
      const claim = await lease.take(await lease.read());
      expect([claim.kind, (await lease.renew()).kind]).to.deep.equal(["taken", "renewed"]);
      const taken = await takeAllRoom(server.url);
      expect((await lease.renew()).kind).to.equal("renewed");
      expect(await store.commit(batchOf({ puts: [putOf("a", "1")] }))).to.deep.equal({ kind: "committed" });
      const values = await Promise.all(Array.from({ length: 9 }, () => store.get("a")));
      expect(new Set(values.map(textOf))).to.deep.equal(new Set(["1"]));
      expect(await rejectionOf(openTestStore(server.url))).to.have.property("code", "store_unreachable");
      await Promise.all(taken.map((client) => client.end()));
      await open();
    });
  });

  describe("that turns read-only", () => {
    afterEach(() => setForAll(server.url, "default_transaction_read_only", "off"));

    it("refuses to open a store, and commits of an open store wait until it takes writes again", async () => {
      const store = await open();
      await store.commit(batchOf({ puts: [putOf("a", "1")] }));
      await setForAll(server.url, "default_transaction_read_only", "on");
      expect(await rejectionOf(openTestStore(server.url))).to.have.property("code", "store_unreachable");
      const waits = store.commit(batchOf({ puts: [putOf("a", "2")], durability: "sync" }));
      await setForAll(server.url, "default_transaction_read_only", "off");
      expect(await waits).to.deep.equal({ kind: "committed" });
      expect(textOf(await store.get("a"))).to.equal("2");
    });
  });

  describe("whose administrator ends sessions", () => {
    it("loses no batch, and writes none twice", async () => {
      const store = await open();
      let count = 0;
      // Each expects what the one before it wrote.
      const next = (): Promise<CommitOutcome> => {
        const value = count === 0 ? null : bytesOf(`${count}`);
        return store.commit(
          batchOf({ puts: [putOf("count", `${++count}`)], expect: [{ key: "count", value }] }),
        );
      };
      for (let round = 0; round < 10; round++) {
        const commits = Array.from({ length: 10 }, next);
        await query(server.url, END_SESSIONS);
        expect(new Set((await Promise.all(commits)).map(({ kind }) => kind))).to.deep.equal(
          new Set(["committed"]),
        );
      }
      expect(textOf(await store.get("count"))).to.equal("100");
    });
  });

  describe("with a session that is stopped while it holds the epoch's row", () => {
    it("makes a claim wait until it sees all that the older leader wrote, and then fences that leader", async () => {
      const [older, newer] = [await open(), await open()];
      const { epochRow } = await lead(older, "older");
      await older.commit(batchOf({ puts: [putOf("contended", "0")] }));
      // Holds a row that the batch writes, so that the batch stands where it has locked the epoch's row and has written nothing.
      const blocker = await connected(server.url);
      closeLater(() => blocker.end());
      const [schema] = await schemas(server.url, runId);
      await blocker.query("BEGIN");
      await blocker.query(`SELECT 1 FROM ${schema}.kv WHERE key = 'contended' FOR UPDATE`);
      const batch = batchOf({
        puts: [putOf("contended", "1"), putOf("written", "")],
        expect: [epochRow],
      });
      const sent = older.commit({ ...batch, durability: "sync" });
      const [pid = 0] = await eventually("the batch waits for the row", () => waiting(server.url, 1));
      process.kill(pid, "SIGSTOP");
      closeLater(() => process.kill(pid, "SIGCONT"));
      await blocker.query("COMMIT");
      const claim = lead(newer, "newer");
      await eventually("the claim waits", () => waiting(server.url, 2));
      expect(textOf(await newer.get("contended")), "reading goes on").to.equal("0");
      process.kill(pid, "SIGCONT");
      expect((await claim).epoch).to.equal(1);
      expect(await sent).to.deep.equal({ kind: "committed" });
      expect(textOf(await newer.get("written"))).to.equal("");
      const late = await older.commit(batchOf({ puts: [putOf("late", "")], expect: [epochRow] }));
      expect(late).to.deep.equal({ kind: "conflict", key: epochRow.key });
    });
  });

  describe("back from a crash", () => {
    afterEach(() => restart());

    it("with all its commits is written to by the same leader, and no batch is there twice", async () => {
      const store = await open();
      const { epochRow } = await lead(store, "a");
      const commits = Array.from({ length: 20 }, (_, at) =>
        store.commit(
          batchOf({
            puts: [putOf(`k/${at}`, "")],
            expect: [epochRow],
            durability: "sync",
          }),
        ),
      );
      await restart();
      expect(new Set((await Promise.all(commits)).map(({ kind }) => kind))).to.deep.equal(
        new Set(["committed"]),
      );
      expect((await store.scan({ ...EVERYTHING, from: "k/", to: "k0" })).length).to.equal(20);
    });

    it("without a row of a candidate's own is written to by it all the same, and led by it", async () => {
      await restart({ wal_writer_delay: "10000", synchronous_commit: "off" });
      const store = await open();
      const announce = (): ReturnType<Store["commit"]> =>
        store.commit(batchOf({ puts: [putOf("own", "")], durability: "flush" }));
      expect((await store.commit(batchOf({ puts: [putOf("kept", "")], durability: "sync" }))).kind).to.equal(
        "committed",
      );
      expect((await announce()).kind).to.equal("committed");
      await restart();
      expect(await store.get("own")).to.equal(undefined);
      expect((await announce()).kind).to.equal("committed");
      const { epoch, epochRow } = await lead(store, "a");
      expect(epoch).to.equal(0);
      const turn = batchOf({ puts: [putOf("turn", "")], expect: [epochRow], durability: "sync" });
      expect((await store.commit(turn)).kind).to.equal("committed");
    });

    for (const way of ["on connections of its own", "behind a pooler that hides the crash"])
      it(`without the latest turns lets their leader write nothing more, ${way}`, async () => {
        // Nothing is written to the disk before a commit asks for it, and none does unless it says so.
        await restart({ wal_writer_delay: "10000", synchronous_commit: "off" });
        const pooler = way.startsWith("behind") ? await startTransactionPooler(server) : undefined;
        if (pooler !== undefined) closeLater(() => pooler.close());
        const store = await open(pooler?.url);
        const { epochRow } = await lead(store, "a");
        const turn = (key: string, durability: "sync" | "flush"): ReturnType<Store["commit"]> =>
          store.commit(batchOf({ puts: [putOf(key, "")], expect: [epochRow], durability }));
        expect((await turn("kept", "sync")).kind).to.equal("committed");
        expect((await turn("lost", "flush")).kind).to.equal("committed");
        await restart();
        const after = await turn("after", "sync");
        expect(after.kind === "unknown" && after.cause)
          .to.have.property("message")
          .that.includes("set back");
        expect((await turn("later", "flush")).kind).to.equal("unknown");
        // Batches that rest on nothing go on.
        expect((await store.commit(batchOf({ puts: [putOf("own", "")] }))).kind).to.equal("committed");
        const other = await open();
        const keys = (await other.scan(EVERYTHING)).map(({ key }) => key);
        expect(keys).to.include("kept").and.not.include.members(["lost"]);
        expect(keys).to.not.include.members(["after"]).and.not.include.members(["later"]);
        expect((await lead(other, "b")).epoch).to.equal(1);
      });
  });
});

async function connected(url: string): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url });
  client.on("error", () => undefined);
  await client.connect();
  return client;
}

/** Connections until the server has no room for more. */
async function takeAllRoom(url: string): Promise<pg.Client[]> {
  const taken: pg.Client[] = [];
  for (;;) {
    const client = await connected(url).catch(() => undefined);
    if (client === undefined) return taken;
    taken.push(client);
  }
}

/** For sessions that are there and those to come. */
async function setForAll(url: string, name: string, value: string): Promise<void> {
  const client = await connected(url);
  await client.query("SET default_transaction_read_only = off");
  await client.query(`ALTER SYSTEM SET ${name} = '${value}'`);
  await client.query("SELECT pg_reload_conf()");
  await client.end();
  await eventually(`${name} is ${value}`, async () => {
    const [row] = await query(url, `SELECT current_setting('${name}') AS value`);
    return row?.["value"] === value;
  });
}

async function schemas(url: string, runId: RunId): Promise<string[]> {
  const rows = await query(
    url,
    "SELECT nspname::text AS name FROM pg_namespace WHERE nspname LIKE '%' || $1",
    [runId.toLowerCase()],
  );
  return rows.map(({ name }) => String(name));
}

/** So many sessions of stores that wait for a lock, when there are as many. */
async function waiting(url: string, count: number): Promise<number[] | undefined> {
  const rows = await query(
    url,
    "SELECT pid FROM pg_stat_activity WHERE application_name = 'rollout' AND wait_event_type = 'Lock'",
  );
  return rows.length < count ? undefined : rows.map(({ pid }) => Number(pid));
}
