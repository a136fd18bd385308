// The tables of a run: made, and brought from version to version. Several processes may do so at once; one that comes second finds
// it done. A transaction of somebody else's that holds these tables is waited for, and named after a while.
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import { describeError, failure, RolloutError } from "../../base/errors.ts";
import { backoffMs } from "../../base/random.ts";
import type { Random } from "../../base/random.ts";
import type { Connection, Parameter, Row } from "./connection.ts";
import { adviceFor } from "./hosts.ts";
import { isHeldUp, isHopeless, isMadeMeanwhile } from "./outcomes.ts";
import { BEGIN, COMMIT, LIMIT_WAIT, migrations, ROLLBACK } from "./statements.ts";
import type { Statements } from "./statements.ts";

export interface SchemaOptions {
  readonly schema: string;
  readonly statements: Statements;
  readonly location: string;
  readonly clock: Clock;
  readonly random: Random;
}

export interface SchemaState {
  readonly everWritten: boolean;
}

const ANSWER_MS = 30_000;
const TRIES_MAX = 20;
/** In one try: a statement that waits holds up all that come behind it, so it steps back and comes again. */
const LOCK_WAIT_MS = 2_000;
/** In all. A coordinator that starts tries on after it, and says so. */
const PATIENCE_MS = 10_000;
const RETRIES = { baseMs: 10, ceilingMs: 200 } as const;

/** Undefined when there are no tables of this run yet. Changes nothing. Throws store_newer, store_unreachable, and what the driver says. */
export async function readSchema(
  connection: Connection,
  options: SchemaOptions,
): Promise<SchemaState | undefined> {
  try {
    return await waitingBriefly(connection, () => readState(connection, options));
  } catch (error) {
    throw isHeldUp(error) ? heldUp(error, options) : cutOff(error, connection, options);
  }
}

async function readState(connection: Connection, options: SchemaOptions): Promise<SchemaState | undefined> {
  const { schema, statements } = options;
  const found = await ask(connection, statements.findMeta, [`${schema}.meta`]);
  if (found === undefined || found["found"] === null) return undefined;
  const row = await ask(connection, statements.readMeta);
  if (row === undefined) return undefined;
  refuseNewer(row, options);
  return versionOf(row) === 0 ? undefined : { everWritten: row["ever_written"] === "t" };
}

/** The tables as this version has them. Throws store_newer, store_unusable, store_unreachable, and what the driver says. */
export async function prepareSchema(connection: Connection, options: SchemaOptions): Promise<SchemaState> {
  const { clock } = options;
  const startedMs = clock.monotonicMs();
  for (let tries = 1; ; tries++) {
    try {
      await migrate(connection, options);
      const state = await waitingBriefly(connection, () => readState(connection, options));
      if (state !== undefined) return state;
    } catch (error) {
      if (isHopeless(error) && !isMadeMeanwhile(error)) throw unusable(error, options);
      if (isHeldUp(error) && clock.monotonicMs() - startedMs >= PATIENCE_MS) throw heldUp(error, options);
      if (connection.isLost) throw cutOff(error, connection, options);
      if (!isMadeMeanwhile(error) || tries >= TRIES_MAX) throw error;
    }
    await sleep(clock, backoffMs(RETRIES, tries, options.random));
  }
}

async function migrate(connection: Connection, options: SchemaOptions): Promise<void> {
  const { schema, statements } = options;
  const steps = migrations(schema);
  const found = await waitingBriefly(connection, () => findVersion(connection, options));
  if (found === steps.length) return;
  await waitingBriefly(connection, async () => {
    await ask(connection, statements.createSchema);
    await ask(connection, statements.createMeta);
    await ask(connection, statements.insertMeta);
    // From here on the others wait.
    const locked = await ask(connection, statements.lockMeta);
    if (locked !== undefined) refuseNewer(locked, options);
    const version = versionOf(locked);
    for (const step of steps.slice(version)) for (const statement of step) await ask(connection, statement);
    await ask(connection, statements.setVersion, [steps.length]);
  });
}

/** One transaction, in which no lock is waited for longer than briefly. */
async function waitingBriefly<Result>(connection: Connection, work: () => Promise<Result>): Promise<Result> {
  await ask(connection, BEGIN);
  try {
    await ask(connection, LIMIT_WAIT, [String(LOCK_WAIT_MS)]);
    const result = await work();
    await ask(connection, COMMIT);
    return result;
  } catch (error) {
    if (!connection.isLost) await ask(connection, ROLLBACK);
    throw error;
  }
}

/** 0 where there are no tables. A user who may not make any can still use those that are there. */
async function findVersion(connection: Connection, options: SchemaOptions): Promise<number> {
  const found = await ask(connection, options.statements.findMeta, [`${options.schema}.meta`]);
  if (found === undefined || found["found"] === null) return 0;
  const row = await ask(connection, options.statements.readMeta);
  if (row !== undefined) refuseNewer(row, options);
  return versionOf(row);
}

async function ask(
  connection: Connection,
  text: string,
  values: readonly Parameter[] = [],
): Promise<Row | undefined> {
  return (await connection.ask(text, values, ANSWER_MS)).rows[0];
}

function versionOf(row: Row | undefined): number {
  const version = row?.["schema_version"];
  return typeof version === "string" ? Number(version) : 0;
}

function refuseNewer(row: Row, { schema, location: path }: SchemaOptions): void {
  const [found, known] = [versionOf(row), migrations(schema).length];
  if (found > known) throw failure("store_newer", { path, key: `${schema}.meta`, found, known });
}

function heldUp(error: unknown, { location: path, schema }: SchemaOptions): Error {
  const reason = `another transaction holds the tables of ${schema}; pg_locks and pg_stat_activity say which`;
  return failure("store_unreachable", { path, reason }, error);
}

/** A connection that has ended meanwhile is one that cannot be had: another one may be. */
function cutOff(error: unknown, { isLost }: Connection, { location: path }: SchemaOptions): unknown {
  if (!isLost || error instanceof RolloutError) return error;
  return failure("store_unreachable", { path, reason: describeError(error) }, error);
}

function unusable(error: Parameters<typeof adviceFor>[0], { location: path }: SchemaOptions): Error {
  return failure("store_unusable", { path, reason: describeError(error), advice: adviceFor(error) }, error);
}
