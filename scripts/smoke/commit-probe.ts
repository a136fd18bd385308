// When a Postgres of several hosts acknowledges commits again: one small commit after the other on each host, until one is answered. A
// server that waits for its standby does not answer, and a standby refuses.
import pg from "pg";
import { sleep, systemClock } from "../../src/base/clock.ts";

const PAUSE_MS = 50;
const ANSWER_MS = 2_000;

export class CommitProbe {
  readonly #urls: readonly string[];

  readonly #enough: AbortSignal;

  constructor(urls: readonly string[], enough: AbortSignal) {
    [this.#urls, this.#enough] = [urls, enough];
  }

  /** The moment at which a commit was acknowledged. */
  async acknowledged(): Promise<number> {
    const over = new AbortController();
    const either = AbortSignal.any([over.signal, this.#enough]);
    try {
      return await Promise.any(this.#urls.map((url) => tryUntil(url, either)));
    } finally {
      over.abort();
    }
  }
}

async function tryUntil(url: string, over: AbortSignal): Promise<number> {
  while (!over.aborted) {
    if (await hasCommitted(url)) return systemClock.monotonicMs();
    await sleep(systemClock, PAUSE_MS);
  }
  throw new Error("another host has answered");
}

async function hasCommitted(url: string): Promise<boolean> {
  const client = new pg.Client({
    connectionString: url,
    connectionTimeoutMillis: ANSWER_MS,
    query_timeout: ANSWER_MS,
  });
  // The statement rejects; a connection that breaks besides ends no process.
  client.on("error", () => undefined);
  try {
    await client.connect();
    await client.query("CREATE TABLE IF NOT EXISTS probe (moment timestamptz)");
    await client.query("INSERT INTO probe VALUES (clock_timestamp())");
    return true;
  } catch {
    return false;
  } finally {
    client.connection.stream.destroy();
  }
}
