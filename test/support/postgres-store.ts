// A store on the Postgres of the tests, each over tables of its own.
import { systemClock } from "../../src/base/clock.ts";
import type { RunId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { parsePostgresUrl } from "../../src/config/postgres-url.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openPostgresStore } from "../../src/storage/postgres/postgres-store.ts";
import type { PostgresStoreOptions } from "../../src/storage/postgres/postgres-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { newRunId } from "./certificates.ts";

/** `url` with its password. */
export function testStoreOptions(url: string, runId: RunId = newRunId()): PostgresStoreOptions {
  const parsed = parsePostgresUrl(url);
  if (parsed === undefined) throw new Error("the URL of the tests' Postgres is not understood");
  const password = async (): Promise<string | undefined> => parsed.password;
  const ports = { clock: systemClock, random: systemRandom, log: silentLogger };
  return { address: parsed.address, password, runId, ...ports };
}

/** The tables of a run that nobody else has, unless `runId` says whose. */
export function openTestStore(url: string, runId?: RunId): Promise<Store> {
  return openPostgresStore(testStoreOptions(url, runId));
}
