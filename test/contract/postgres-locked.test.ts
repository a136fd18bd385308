// Tables of a run that another transaction holds while they are opened: to be made, or to be looked at.
import { expect } from "chai";
import pg from "pg";
import type { RunId } from "../../src/base/ids.ts";
import { openExistingPostgresStore, openPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import { schemaOf } from "../../src/storage/postgres/statements.ts";
import { newRunId } from "../support/certificates.ts";
import { useClosers } from "../support/closers.ts";
import { eventually } from "../support/eventually.ts";
import { usePostgresDatabase } from "../support/postgres-database.ts";
import { openTestStore, testStoreOptions } from "../support/postgres-store.ts";
import { failureOf } from "../support/rejection.ts";
import { systemClock } from "../../src/base/clock.ts";
import type { Clock } from "../../src/base/clock.ts";

/** By it ten seconds of patience are over in one; the server's own times are as they are. */
const HASTY: Clock = { ...systemClock, monotonicMs: () => 10 * systemClock.monotonicMs() };
/** By it they are over in a hundred. */
const PATIENT: Clock = { ...systemClock, monotonicMs: () => systemClock.monotonicMs() / 10 };

const WAITING = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";

describe("a Postgres whose tables another transaction holds", () => {
  const database = usePostgresDatabase();
  const closeLater = useClosers();
  let runId: RunId;

  beforeEach(() => {
    runId = newRunId();
  });

  /** A session that has done this and does not commit. */
  async function holding(...statements: string[]): Promise<pg.Client> {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    // Its database may be removed before it.
    client.on("error", () => undefined);
    closeLater(() => client.end().catch(() => undefined));
    for (const statement of ["BEGIN", ...statements]) await client.query(statement);
    return client;
  }

  const waiting = async (): Promise<number> => (await database.query(`SELECT 1 ${WAITING}`)).length;

  it("is polled while the tables are made, and the tables are made when that transaction has ended", async () => {
    const holder = await holding(`CREATE SCHEMA ${schemaOf(runId)}`);
    const opening = openPostgresStore({ ...testStoreOptions(database.url, runId), clock: PATIENT });
    closeLater(async () => (await opening).close());
    // Each step is a transaction of its own.
    const begun = new Set<unknown>();
    await eventually("it has stepped back, and waits again", async () => {
      for (const row of await database.query(`SELECT xact_start ${WAITING}`))
        begun.add(String(row["xact_start"]));
      return begun.size > 1;
    });
    await holder.query("ROLLBACK");
    expect((await opening).everWritten).to.equal(false);
  });

  it("is reported as unreachable when the connection ends while rollout waits", async () => {
    await holding(`CREATE SCHEMA ${schemaOf(runId)}`);
    const failing = failureOf(openTestStore(database.url, runId));
    const [waiter] = await eventually("it waits", async () => {
      const rows = await database.query(`SELECT pid ${WAITING}`);
      return rows.length > 0 && rows;
    });
    await database.query("SELECT pg_terminate_backend($1)", [waiter?.["pid"]]);
    expect((await failing).code).to.equal("store_unreachable");
  });

  it("is named in the error when that transaction does not end, for making the tables and for reading them", async () => {
    await holding(`CREATE SCHEMA ${schemaOf(runId)}`);
    const options = { ...testStoreOptions(database.url, runId), clock: HASTY };
    const other = newRunId();
    await (await openTestStore(database.url, other)).close();
    await holding(`LOCK TABLE ${schemaOf(other)}.meta IN ACCESS EXCLUSIVE MODE`);
    const failures = await Promise.all([
      failureOf(openPostgresStore(options)),
      failureOf(openPostgresStore({ ...options, runId: other })),
      failureOf(openExistingPostgresStore({ ...options, runId: other })),
    ]);
    for (const [at, { code, params }] of failures.entries()) {
      expect(code).to.equal("store_unreachable");
      expect(params["reason"]).to.contain(
        `another transaction holds the tables of ${schemaOf(at === 0 ? runId : other)}`,
      );
    }
    await eventually("none of them waits any more", async () => (await waiting()) === 0);
  });
});
