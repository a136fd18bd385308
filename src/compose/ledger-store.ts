// The database of a run as the configuration names it: a directory of this machine, or a Postgres. A coordinator waits for a
// Postgres that is not there for the moment; a command says so and ends. The driver is loaded only where it is used: it would make each
// start slower.
import { readFile } from "node:fs/promises";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { failure, RolloutError } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import { backoffMs } from "../base/random.ts";
import type { Random } from "../base/random.ts";
import { systemReason } from "../base/system-reason.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import type { ResolvedConfig, StorageConfig } from "../config/resolve.ts";
import type { Logger } from "../observe/log.ts";
import { openLevelStore } from "../storage/level/level-store.ts";
import { locationOf } from "../storage/postgres/location.ts";
import type { PostgresStoreOptions } from "../storage/postgres/postgres-store.ts";
import type { Store } from "../storage/store.ts";
import { demandSecret, readThere } from "../transport/tls/credential-files.ts";
import { openAwaited } from "./store-holders.ts";
import type { Waiting } from "./store-holders.ts";

type PostgresConfig = NonNullable<StorageConfig["postgres"]>;

/** Rows of an item that come and go within it are never written to a table (docs/adr/0048). */
const WRITE_BUFFER_BYTES = 32 * 1024 * 1024;

export interface LedgerPorts {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** As messages name the database that is configured. */
export function storageName({ storage, runId }: Pick<ResolvedConfig, "storage" | "runId">): string {
  return storage.postgres === undefined ? storage.path : locationOf({ ...storage.postgres, runId });
}

export interface LedgerOpening extends LedgerPorts, Waiting {
  readonly holderName: string;
  /** Told how long each write took that had to last. */
  readonly onSynced?: (tookMs: number) => void;
}

/**
 * For a coordinator. Waits for a command that only looks into a directory, and for a Postgres for as long as it takes; undefined when
 * the signal came first. Throws store_… rows.
 */
export async function openLedgerStore(
  { storage, runId }: Pick<ResolvedConfig, "storage" | "runId">,
  opening: LedgerOpening,
): Promise<Store | undefined> {
  const { holderName, clock, log, onSynced } = opening;
  if (storage.postgres === undefined) {
    const { path } = storage;
    const options = { path, holderName, clock, log, onSynced, writeBufferBytes: WRITE_BUFFER_BYTES };
    return openAwaited(() => openLevelStore(options), opening);
  }
  const options = await postgresOptions(storage.postgres, runId, opening);
  const { openPostgresStore } = await import("../storage/postgres/postgres-store.ts");
  return openReached(() => openPostgresStore({ ...options, onSynced }), opening);
}

/** For a command that looks at a run's tables on a Postgres; undefined where there are none. Throws store_… rows. */
export async function openExistingLedger(
  storage: PostgresConfig,
  runId: RunId,
  ports: LedgerPorts,
): Promise<Store | undefined> {
  const { openExistingPostgresStore } = await import("../storage/postgres/postgres-store.ts");
  return openExistingPostgresStore(await postgresOptions(storage, runId, ports));
}

const RETRIES = { baseMs: 500, ceilingMs: 2_000 } as const;

/** Tries again while the server cannot be reached, and says so once. */
async function openReached(
  open: () => Promise<Store>,
  { clock, random, tell, signal }: LedgerOpening,
): Promise<Store | undefined> {
  for (let tries = 1; !signal.aborted; tries++) {
    try {
      const store = await open();
      if (tries > 1) tell("the database answers");
      return store;
    } catch (error) {
      if (!(error instanceof RolloutError) || error.code !== "store_unreachable") throw error;
      if (tries === 1) tell(`${error.message}; it is tried again until it answers`);
    }
    await sleep(clock, backoffMs(RETRIES, tries, random), signal);
  }
  return undefined;
}

async function postgresOptions(
  { address, password, passwordFile }: PostgresConfig,
  runId: RunId,
  { clock, random, log }: LedgerPorts,
): Promise<PostgresStoreOptions> {
  const read = async (): Promise<string | undefined> =>
    passwordFile === undefined ? password() : readPassword(passwordFile);
  // A wrong file is named at the start; later it is one of the reasons for which there is no connection.
  await read();
  if (address.tls.kind === "verified" && address.tls.caFile !== undefined)
    await readThere({ file: address.tls.caFile, what: "the CA of the database's server", advice: CA_ADVICE });
  return { address, password: read, runId, clock, random, log };
}

const CA_ADVICE = "correct sslrootcert in storage.url";

/** Throws not_trusted, tls_key_exposed and tls_file_unreadable. */
async function readPassword(file: string): Promise<string> {
  await demandTrusted(file);
  await demandSecret(file);
  try {
    return (await readFile(file, "utf8")).replace(/\r?\n$/, "");
  } catch (error) {
    const naming = { file, what: "the database's password", advice: "correct storage.password_file" };
    throw failure("tls_file_unreadable", { ...naming, reason: systemReason(error) }, error);
  }
}
