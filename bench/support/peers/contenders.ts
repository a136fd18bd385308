// The contenders: rollout on its own database and on Postgres, and the queues that its users would take instead, each set up for speed with
// results that are kept. No queue is a dependency: one that cannot be had is named with the reason.
import { join } from "node:path";
import { systemClock } from "../../../src/base/clock.ts";
import { inNewDatabase, query } from "../../../test/support/postgres-database.ts";
import type { PostgresServer } from "../../../test/support/postgres-server.ts";
import { MeasuredRun } from "../measured-run.ts";
import type { Contender, Measured, Scene } from "./contender.ts";
import { CONCURRENCY } from "./role.ts";
import { askLine, installedPackage, programOnPath, startServer } from "./server.ts";
import type { Server } from "./server.ts";
import { Staff } from "./staff.ts";

const GRAPHILE = { name: "graphile-worker", version: "0.18.0" };
const BULLMQ = { name: "bullmq", version: "6.7.0", beside: ["ioredis@5.9.2"] };
const NATS = { name: "nats", version: "2.29.3" };

const KEPT = "SELECT count(*) AS kept FROM results";

/** Results that were kept behind those of all items of their queue that were added before. */
function keptInOrder(keys: number): string {
  const before = `max(n) OVER (PARTITION BY n % ${keys} ORDER BY at ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)`;
  return `SELECT count(*) AS kept FROM (SELECT n, ${before} AS before FROM results) AS kept WHERE before IS NULL OR n > before`;
}

type Note = (line: string) => void;

export type Candidate = Contender | { readonly name: string; readonly skipped: string };

interface RolloutOptions {
  /** Without it, it has a database of its own. */
  readonly server?: PostgresServer | undefined;
  /** Over how many keys its items go; none unless said. */
  readonly keys?: number;
  /** Size of the state that each key keeps. */
  readonly stateBytes?: number;
  /** Told of what its run has left, before it is removed. */
  readonly onEnd?: (run: MeasuredRun, items: number) => void;
}

export function rollout(name: string, options: RolloutOptions = {}): Contender {
  const { server } = options;
  return {
    name,
    async stage(items, use) {
      if (server === undefined)
        return useRun(items, options, { postgres: undefined, servers: new Map() }, use);
      const servers = new Map([["Postgres", server.pid]]);
      return inNewDatabase(server.url, (postgres) => useRun(items, options, { postgres, servers }, use));
    },
  };
}

interface Database {
  readonly postgres: string | undefined;
  readonly servers: ReadonlyMap<string, number>;
}

async function useRun(
  items: number,
  { keys = 0, stateBytes = 0, onEnd }: RolloutOptions,
  { postgres, servers }: Database,
  use: (scene: Scene) => Promise<Measured>,
): Promise<Measured> {
  const run = await MeasuredRun.start({ postgres });
  const staff = new Staff();
  try {
    const { address, runId, tlsDir, pid } = run.coordinator;
    const words = [address, runId, tlsDir, String(items), String(keys)];
    const producer = await staff.startProducer(program("rollout"), words);
    const state = stateBytes === 0 ? [] : ["--mock-state", `${stateBytes}B`];
    const done = async (): Promise<number> => (await run.status()).done;
    const measured = await use({
      ...{ servers: new Map([["coordinator", pid], ...servers]), producer },
      produce: () => staff.produce(),
      async startWorkers(count) {
        const pids = Array.from({ length: count }, () => run.startWorker(CONCURRENCY, ...state));
        await run.until(({ workers }) => workers.ready === count);
        return pids;
      },
      async untilDone(count) {
        await run.until((status) => status.done >= count);
        return systemClock.monotonicMs();
      },
      countResults: done,
    });
    onEnd?.(run, items);
    return measured;
  } finally {
    await staff.end();
    await run.stop();
  }
}

/** Its results are rows of a table beside its own. With `keys` each of them has a named queue, whose order is looked at. */
export function graphile(server: PostgresServer, note: Note, keys = 0): Candidate {
  const found = installedPackage(GRAPHILE, note);
  if ("skipped" in found) return found;
  return {
    name: found.name,
    stage: (items, use) =>
      inNewDatabase(server.url, async (url) => {
        await query(url, "CREATE TABLE results (n int PRIMARY KEY, result jsonb NOT NULL, at bigserial)");
        const args = [found.directory, url, String(items), String(keys)];
        return useStaff("graphile", args, { name: "Postgres", pid: server.pid }, use, async () => {
          const [row] = await query(url, keys === 0 ? KEPT : keptInOrder(keys));
          return Number(row?.["kept"]);
        });
      }),
  };
}

/** A Redis for it: each write is synced, or all of a second together. */
export function redisFor(
  appendfsync: "always" | "everysec",
  note: Note,
): { readonly directory: string; readonly start: () => Promise<Server> } | { readonly skipped: string } {
  const redis = programOnPath("redis-server");
  if (redis === undefined) return { skipped: "PATH has no redis-server" };
  const found = installedPackage(BULLMQ, note);
  if ("skipped" in found) return { skipped: found.skipped };
  const argsFor = (port: number): string[] => [
    ...["--bind", "127.0.0.1", "--port", String(port), "--save", ""],
    ...["--appendonly", "yes", "--appendfsync", appendfsync],
  ];
  return { directory: found.directory, start: () => startServer(redis, argsFor) };
}

export function bullMq(appendfsync: "always" | "everysec", note: Note): Candidate {
  const name = `BullMQ, appendfsync ${appendfsync}`;
  const redis = redisFor(appendfsync, note);
  if ("skipped" in redis) return { name, ...redis };
  return {
    name,
    stage: (items, use) =>
      withServer(redis.start, ({ pid, port }) =>
        useStaff(
          "bullmq",
          [redis.directory, String(port), String(items)],
          { name: "Redis", pid },
          use,
          async () => {
            // ":100000"
            const completed = await askLine(port, "ZCARD bull:items:completed");
            return Number(completed.slice(1));
          },
        ),
      ),
  };
}

/** Synced each two minutes, as it is by default. */
export function jetStream(note: Note): Candidate {
  const name = "NATS JetStream";
  const nats = programOnPath("nats-server");
  if (nats === undefined) return { name, skipped: "PATH has no nats-server" };
  const found = installedPackage(NATS, note);
  if ("skipped" in found) return { name, skipped: found.skipped };
  const argsFor = (port: number, directory: string): string[] => [
    ...["--addr", "127.0.0.1", "--port", String(port), "--jetstream", "--store_dir", directory],
  ];
  return {
    name,
    stage: (items, use) =>
      withServer(
        () => startServer(nats, argsFor),
        ({ pid, port }) => {
          const args = [found.directory, String(port), String(items)];
          return useStaff("jetstream", args, { name: "NATS", pid }, use, (staff) => staff.countResults());
        },
      ),
  };
}

async function withServer(
  start: () => Promise<Server>,
  use: (server: Server) => Promise<Measured>,
): Promise<Measured> {
  const started = await start();
  try {
    return await use(started);
  } finally {
    await started.close();
  }
}

async function useStaff(
  peer: string,
  args: readonly string[],
  server: { readonly name: string; readonly pid: number },
  use: (scene: Scene) => Promise<Measured>,
  countResults: (staff: Staff) => Promise<number>,
): Promise<Measured> {
  const staff = new Staff();
  try {
    return await use({
      servers: new Map([[server.name, server.pid]]),
      producer: await staff.startProducer(program(peer), args),
      produce: () => staff.produce(),
      startWorkers: (count) => staff.startWorkers(program(peer), args, count),
      untilDone: (count) => staff.untilDone(count),
      countResults: () => countResults(staff),
    });
  } finally {
    await staff.end();
  }
}

export function program(peer: string): string {
  return join(import.meta.dirname, `${peer}-program.ts`);
}
