// A run over a Postgres on which somebody keeps a transaction open: no version of a row that is replaced or deleted meanwhile can be
// removed. Measured is how long the leader's statements take as time goes by, by the server's own log.
import { join } from "node:path";
import pg from "pg";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { MeasuredRun } from "../../../bench/support/measured-run.ts";
import { PostgresServer } from "../../support/postgres-server.ts";
import { medianOf, NOTED, StatementTimes } from "./statement-times.ts";
import type { StatementKind } from "./statement-times.ts";

export interface Interval {
  readonly seconds: number;
  readonly done: number;
  /** Median milliseconds at the server, and how many were looked at. */
  readonly medians: ReadonlyMap<StatementKind, { readonly ms: number; readonly seen: number }>;
}

const WORKERS = 2;
const SLOTS = 16;
/** Items that the run needs for a second, more than it can do with these workers. */
const ITEMS_PER_S = 800;
const PAYLOAD_BYTES = 100;
const SETTLE_MS = 5_000;

/** Gives each interval as it is over. */
export async function* runWithHeldXmin(durationMs: number, intervalMs: number): AsyncGenerator<Interval> {
  const server = await PostgresServer.start({ settings: NOTED });
  const times = new StatementTimes(join(server.directory, "log"));
  const run = await MeasuredRun.start({ postgres: server.url });
  const holder = new pg.Client({ connectionString: server.url });
  try {
    await run.submit(Math.ceil((durationMs / 1_000) * ITEMS_PER_S), PAYLOAD_BYTES);
    let done = 0;
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS, "--mock-sleep", "50ms");
    await run.until((status) => (done = status.done) > 0);
    await sleep(systemClock, SETTLE_MS);
    await holder.connect();
    await holder.query("BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT count(*) FROM pg_class");
    times.take();
    const beganMs = systemClock.monotonicMs();
    for (let elapsedMs = 0; elapsedMs < durationMs;) {
      await sleep(systemClock, intervalMs);
      elapsedMs = systemClock.monotonicMs() - beganMs;
      await run.until((status) => (done = status.done) > 0);
      const medians = [...times.take()].map(
        ([kind, each]) => [kind, { ms: medianOf(each), seen: each.length }] as const,
      );
      yield { seconds: Math.round(elapsedMs / 1_000), done, medians: new Map(medians) };
    }
  } finally {
    await holder.end().catch(() => undefined);
    await run.stop();
    await server.close();
  }
}
