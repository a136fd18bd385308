// Everything that is said to Postgres, in one place: a test reads it. Only what a transaction-mode pooler lets through and what needs no
// session: no advisory lock, no LISTEN, no sequence, no trigger, no clock of the server.
import type { RunId } from "../../base/ids.ts";

/** One schema for each run, so that the end of a run is to drop it. */
export function schemaOf(runId: RunId): string {
  return `rollout_${runId.toLowerCase()}`;
}

/** The facts of a server, asked of each connection when it is made. */
export const FACTS = `
  SELECT pg_is_in_recovery() AS in_recovery,
         current_setting('transaction_read_only') AS read_only,
         current_setting('fsync') AS fsync,
         current_setting('full_page_writes') AS full_page_writes,
         current_setting('synchronous_commit') AS synchronous_commit,
         current_setting('synchronous_standby_names') AS standbys,
         (SELECT system_identifier FROM pg_control_system()) AS system,
         CASE WHEN pg_is_in_recovery() THEN '' ELSE pg_walfile_name(pg_current_wal_lsn()) END AS wal`;

export const BEGIN = "BEGIN";
export const BEGIN_FROZEN = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY";
/** Such a transaction sees what was there at its first question. */
export const FREEZE = "SELECT 1";
export const COMMIT = "COMMIT";
export const ROLLBACK = "ROLLBACK";
/** For this transaction: one whose process is paused in the middle of it gives its locks back. */
export const SET_TERMS =
  "SELECT set_config('synchronous_commit', $1, true), set_config('idle_in_transaction_session_timeout', '2000', true)";

/** For this transaction: whoever holds what it needs is waited for so long. */
export const LIMIT_WAIT = "SELECT set_config('lock_timeout', $1, true)";

/** Versions of the tables: each entry leads from the one before. None may be changed once it was released. */
export function migrations(schema: string): readonly (readonly string[])[] {
  return [
    [
      `CREATE TABLE ${schema}.kv (key bytea PRIMARY KEY, value bytea NOT NULL)
         WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.01)`,
      `CREATE TABLE ${schema}.writers (id text PRIMARY KEY, session int NOT NULL, turn bigint NOT NULL)
         WITH (fillfactor = 20, autovacuum_vacuum_scale_factor = 0.01)`,
    ],
  ];
}

export type Statements = ReturnType<typeof statementsFor>;

export function statementsFor(schema: string) {
  const [kv, meta, writers] = [`${schema}.kv`, `${schema}.meta`, `${schema}.writers`];
  return {
    findMeta: "SELECT to_regclass($1) AS found",
    createSchema: `CREATE SCHEMA IF NOT EXISTS ${schema}`,
    createMeta: `CREATE TABLE IF NOT EXISTS ${meta}
      (one int PRIMARY KEY CHECK (one = 1), schema_version int NOT NULL, ever_written boolean NOT NULL)`,
    insertMeta: `INSERT INTO ${meta} VALUES (1, 0, false) ON CONFLICT DO NOTHING`,
    lockMeta: `SELECT schema_version FROM ${meta} FOR UPDATE`,
    setVersion: `UPDATE ${meta} SET schema_version = $1`,
    readMeta: `SELECT schema_version, ever_written FROM ${meta}`,
    noteWritten: `UPDATE ${meta} SET ever_written = true WHERE NOT ever_written`,

    get: `SELECT value FROM ${kv} WHERE key = $1`,
    getMany: `SELECT key, value FROM ${kv} WHERE key = ANY($1::bytea[])`,
    scan: `SELECT key, value FROM ${kv} WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3`,
    scanWithin: `SELECT key, value FROM (
        SELECT key, value, sum(octet_length(key) + octet_length(value))
          OVER (ORDER BY key ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before
        FROM ${kv} WHERE key >= $1 AND key < $2 ORDER BY key LIMIT $3) AS page
      WHERE before IS NULL OR before <= $4 ORDER BY key`,

    insertWriter: `INSERT INTO ${writers} VALUES ($1, 0, 0) ON CONFLICT DO NOTHING`,
    /** Waits for what an earlier connection of this writer still does; after it, nothing of that can take effect any more. */
    takeOver: `UPDATE ${writers} SET session = session + 1
      WHERE id = $1 AND set_config('synchronous_commit', $2, true) IS NOT NULL RETURNING session, turn`,
    removeWriter: `DELETE FROM ${writers} WHERE id = $1`,
    /** Ids grow with time: rows of processes that were killed do not pile up. */
    trimWriters: `DELETE FROM ${writers} WHERE id NOT IN (SELECT id FROM ${writers} ORDER BY id DESC LIMIT 10000)`,
    /** Exactly one more: behind a pooler a server may crash and come back set back without any connection being lost. */
    countTurn: `UPDATE ${writers} SET turn = $1 WHERE id = $2 AND session = $3 AND turn = $1 - 1`,

    lockExpected: `SELECT key, value FROM ${kv} WHERE key = ANY($1::bytea[]) ORDER BY key FOR UPDATE`,
    /** Holds the place of keys that are expected to be absent: nobody else can put them before this transaction has ended. */
    holdAbsent: `INSERT INTO ${kv} SELECT key, '' FROM unnest($1::bytea[]) AS absent(key) ON CONFLICT DO NOTHING`,
    write: `WITH removed AS (DELETE FROM ${kv} WHERE key = ANY($1::bytea[]))
      INSERT INTO ${kv} SELECT * FROM unnest($2::bytea[], $3::bytea[])
      ON CONFLICT (key) DO UPDATE SET value = excluded.value`,

    /** Fence and writes as one autocommit statement: with no transaction open, a process that is paused holds no lock. */
    fencedTurn: { shared: fenced("SHARE", true), own: fenced("UPDATE", true) },
    fencedLease: { shared: fenced("SHARE", false), own: fenced("UPDATE", false) },
  };

  /**
   * $1 and $2: keys and values that are expected; $3 how many; $4 synchronous_commit; $5 keys to delete; $6 and $7 keys and values to
   * put; with `counted` $8 the turn, $9 the writer, $10 its session. `FOR KEY SHARE` would not wait for a change of the value. An
   * update of the same row in the statement needs the stronger lock from the start, or two of them could wait for each other.
   */
  function fenced(lock: "SHARE" | "UPDATE", counted: boolean): string {
    const holds = "(SELECT count(*) FROM fence) = $3::int";
    const lasts = "set_config('synchronous_commit', $4, true) IS NOT NULL";
    const turn = counted
      ? `UPDATE ${writers} SET turn = $8 WHERE id = $9 AND session = $10 AND turn = $8 - 1
            AND ${holds} AND ${lasts} RETURNING 1`
      : `SELECT 1 WHERE ${holds} AND ${lasts}`;
    return `
      WITH fence AS MATERIALIZED (
        SELECT expected.at FROM unnest($1::bytea[], $2::bytea[]) WITH ORDINALITY AS expected(key, value, at)
        JOIN ${kv} AS found ON found.key = expected.key AND found.value = expected.value FOR ${lock} OF found),
      turn AS (${turn}),
      removed AS (DELETE FROM ${kv} WHERE key = ANY($5::bytea[]) AND EXISTS (SELECT FROM turn)),
      written AS (
        INSERT INTO ${kv} SELECT * FROM unnest($6::bytea[], $7::bytea[]) WHERE EXISTS (SELECT FROM turn)
        ON CONFLICT (key) DO UPDATE SET value = excluded.value)
      SELECT (SELECT count(*) FROM turn) AS turns, (SELECT coalesce(string_agg(at::text, ','), '') FROM fence) AS held`;
  }
}
