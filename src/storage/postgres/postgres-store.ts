// The store on Postgres, for several processes on several machines. One connection writes, a few read, and one is kept for the lease, so that
// neither a commit that waits for its standby nor a page that is read can cost a leadership.
//
// Keeps true: what has to do with the lease keeps its order, on whichever connection it goes; all else has one writer.
import type { Clock } from "../../base/clock.ts";
import { newUlid } from "../../base/ids.ts";
import type { IncarnationId, RunId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { PostgresAddress } from "../../config/postgres-url.ts";
import type { Logger } from "../../observe/log.ts";
import { GroupCommit } from "../group-commit.ts";
import type { SyncTiming } from "../group-commit.ts";
import { LEASE_PREFIX } from "../keys.ts";
import { assertBatch, assertKey, assertOpen, assertRange } from "../store.ts";
import type { Batch, CommitOutcome, Entry, ScanRange, Store } from "../store.ts";
import { FrozenStore } from "./frozen-store.ts";
import { shapeOf } from "./group-plan.ts";
import { Hosts } from "./hosts.ts";
import { locationOf } from "./location.ts";
import { readMany, readOne, readRange, Readers } from "./readers.ts";
import { prepareSchema, readSchema } from "./schema.ts";
import type { SchemaState } from "./schema.ts";
import { schemaOf, statementsFor } from "./statements.ts";
import type { Statements } from "./statements.ts";
import { PostgresWriter } from "./writer.ts";

export interface PostgresStoreOptions {
  readonly address: PostgresAddress;
  /** Asked for each connection, so that a password that is changed is taken. */
  readonly password: () => Promise<string | undefined>;
  readonly runId: RunId;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** Told how long each write took that had to last. */
  readonly onSynced?: SyncTiming["onSynced"] | undefined;
}

/** A batch that is not answered for so long is looked for on another connection: its standby may be slow. */
const ANSWER_MS = 30_000;
/** The same of one that waits for no standby: a batch behind it, as a claim, waits too. */
const SILENCE_MS = 3_000;
/** From the loss of a connection, so that there is always another look. */
const PATIENCE_MS = 10_000;
/** A renewal is small, waits for no disk, and is tried again by itself. */
const LEASE_ANSWER_MS = 2_000;

/** Opens the run's tables, or makes them. Throws store_unreachable, store_unusable (with what to do) or store_newer. */
export async function openPostgresStore(options: PostgresStoreOptions): Promise<Store> {
  const parts = partsOf(options);
  const connection = await parts.hosts.connect();
  if (!connection.facts.hasStandby)
    options.log.info("the database has no synchronous standby: what is acknowledged is on one machine");
  try {
    return new PostgresStore(parts, await prepareSchema(connection, { ...options, ...parts }));
  } finally {
    await connection.close();
  }
}

/** The same for a look: undefined where there are no tables of this run, and none are made. */
export async function openExistingPostgresStore(options: PostgresStoreOptions): Promise<Store | undefined> {
  const parts = partsOf(options);
  const connection = await parts.hosts.connect();
  try {
    const state = await readSchema(connection, { ...options, ...parts });
    return state && new PostgresStore(parts, state);
  } finally {
    await connection.close();
  }
}

interface StoreParts extends Pick<PostgresStoreOptions, "clock" | "random" | "log" | "onSynced"> {
  readonly location: string;
  readonly schema: string;
  readonly statements: Statements;
  readonly hosts: Hosts;
}

function partsOf(options: PostgresStoreOptions): StoreParts {
  const { clock, random, log, runId, onSynced } = options;
  const [location, schema] = [locationOf(options), schemaOf(runId)];
  const hosts = new Hosts({ ...options, location });
  return { location, schema, statements: statementsFor(schema), hosts, clock, random, log, onSynced };
}

class PostgresStore implements Store {
  readonly location: string;
  readonly supports = { multiProcess: true };
  readonly #parts: StoreParts;
  readonly #readers: Readers;
  readonly #writer: PostgresWriter;
  readonly #leaseWriter: PostgresWriter;
  readonly #queue: GroupCommit;
  readonly #leaseQueue: GroupCommit;
  #everWritten: boolean;
  /** Batches of the common queue that have to do with the lease and are not answered yet. */
  #leaseBatches = 0;
  #closing: Promise<void> | undefined;

  constructor(parts: StoreParts, { everWritten }: SchemaState) {
    this.location = parts.location;
    this.#parts = parts;
    this.#everWritten = everWritten;
    this.#readers = new Readers(parts);
    const { clock, random, onSynced } = parts;
    const shared = {
      ...parts,
      wasWritten: () => this.#everWritten,
      onWritten: () => (this.#everWritten = true),
    };
    const id = newUlid<IncarnationId>(clock, random);
    const lease = { id: undefined, answerMs: LEASE_ANSWER_MS, silenceMs: LEASE_ANSWER_MS, patienceMs: 0 };
    this.#leaseWriter = new PostgresWriter({ ...shared, ...lease });
    this.#leaseQueue = new GroupCommit(this.#leaseWriter);
    const before = async (group: readonly Batch[]): Promise<void> => {
      if (group.some(concernsLease)) await this.#leaseQueue.drained();
    };
    const limits = { answerMs: ANSWER_MS, silenceMs: SILENCE_MS, patienceMs: PATIENCE_MS };
    this.#writer = new PostgresWriter({ ...shared, id, ...limits, before });
    this.#queue = new GroupCommit(this.#writer, onSynced && { clock, onSynced });
  }

  get everWritten(): boolean {
    return this.#everWritten;
  }

  get generation(): string {
    return this.#parts.hosts.facts?.generation ?? "";
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    assertOpen(this.#closing === undefined, this.location);
    assertKey(key);
    return readOne(this.#readers.ask, this.#parts.statements, key);
  }

  async getMany(keys: readonly string[]): Promise<readonly (Uint8Array | undefined)[]> {
    assertOpen(this.#closing === undefined, this.location);
    keys.forEach(assertKey);
    return readMany(this.#readers.ask, this.#parts.statements, keys);
  }

  async scan(range: ScanRange): Promise<Entry[]> {
    assertOpen(this.#closing === undefined, this.location);
    assertRange(range);
    return readRange(this.#readers.ask, this.#parts.statements, range);
  }

  async commit(batch: Batch): Promise<CommitOutcome> {
    assertOpen(this.#closing === undefined, this.location);
    assertBatch(batch);
    if (this.#leaseBatches === 0 && this.#everWritten && isRenewal(batch))
      return this.#leaseQueue.commit(batch);
    if (!concernsLease(batch)) return this.#queue.commit(batch);
    this.#leaseBatches++;
    return this.#queue.commit(batch).finally(() => this.#leaseBatches--);
  }

  /** Throws store_unreachable, and what the driver says. */
  async freeze(): Promise<Store> {
    assertOpen(this.#closing === undefined, this.location);
    const { hosts, statements } = this.#parts;
    return FrozenStore.begin(this, await hosts.connect(), statements);
  }

  close(): Promise<void> {
    this.#closing ??= this.#close();
    return this.#closing;
  }

  async #close(): Promise<void> {
    await Promise.all([this.#queue.drained(), this.#leaseQueue.drained()]);
    await Promise.all([this.#writer.close(), this.#leaseWriter.close(), this.#readers.close()]);
  }
}

function concernsLease({ puts, deletes, expect }: Batch): boolean {
  const isLease = (key: string): boolean => key.startsWith(LEASE_PREFIX);
  return (
    puts.some(({ key }) => isLease(key)) || deletes.some(isLease) || expect.some(({ key }) => isLease(key))
  );
}

/** Nothing but the lease, which is there: it need not wait for what else is written. */
function isRenewal(batch: Batch): boolean {
  const { puts, deletes, expect } = batch;
  const keys = [...puts.map(({ key }) => key), ...deletes, ...expect.map(({ key }) => key)];
  return shapeOf(batch).kind === "own" && keys.every((key) => key.startsWith(LEASE_PREFIX));
}
