// graphile-worker with its local queue and its batches of completions, as its documentation sets it up for speed. It keeps no results: the
// task writes them into a table, many with one INSERT, before its job counts as done.
// With keys each has a named queue. The local queue is off then: with it items of one named queue run at the same time.
// Arguments: `producer` or `worker`, where it is installed, the URL of the database, how many items, over how many keys (0: none).
import pg from "pg";
import { systemClock } from "../../../src/base/clock.ts";
import { CONCURRENCY, inParallel, installed, keyOf, payloadOf, produce, resultOf, work } from "./role.ts";

interface Utilities {
  migrate(): Promise<void>;
  addJobs(
    specs: readonly { readonly identifier: string; readonly payload: object; readonly queueName?: string }[],
  ): Promise<unknown>;
}

interface Graphile {
  readonly makeWorkerUtils: (options: object) => Promise<Utilities>;
  readonly run: (options: object) => Promise<{
    readonly events: { on(event: "job:success", heard: () => void): void };
  }>;
  readonly Logger: new (factory: () => () => void) => object;
}

const TASK = "item";
const ADDED_AT_ONCE = 2_000;
const ADDING_AT_ONCE = 2;
const INSERTS_AT_ONCE = 2;
const INSERT = "INSERT INTO results SELECT * FROM unnest($1::int[], $2::jsonb[])";

const [role, directory = "", connectionString = "", count = "0", keyCount = "0"] = process.argv.slice(2);
const { makeWorkerUtils, run, Logger } = installed(directory, "graphile-worker") as Graphile;
const keys = Number(keyCount);
const logger = new Logger(() => () => undefined);
if (role === "producer") await enqueueJobs(Number(count));
else await executeJobs();

async function enqueueJobs(jobs: number): Promise<void> {
  const utilities = await makeWorkerUtils({ connectionString, logger });
  await utilities.migrate();
  const specs = (from: number): { identifier: string; payload: object }[] =>
    Array.from({ length: Math.min(ADDED_AT_ONCE, jobs - from) }, (_, at) => ({
      ...{ identifier: TASK, payload: payloadOf(from + at) },
      ...(keys > 0 && { queueName: keyOf(from + at, keys) }),
    }));
  const calls = Array.from({ length: Math.ceil(jobs / ADDED_AT_ONCE) }, (_, batch) => () => {
    return utilities.addJobs(specs(batch * ADDED_AT_ONCE));
  });
  await produce(() => inParallel(calls, keys > 0 ? 1 : ADDING_AT_ONCE));
}

async function executeJobs(): Promise<void> {
  const pool = new pg.Pool({ connectionString, max: INSERTS_AT_ONCE + 1 });
  let waiting: { readonly n: number; readonly kept: () => void }[] = [];
  let inserting = 0;
  const insert = async (): Promise<void> => {
    if (inserting >= INSERTS_AT_ONCE || waiting.length === 0) return;
    inserting++;
    const batch = waiting;
    waiting = [];
    const numbers = batch.map(({ n }) => n);
    await pool.query(INSERT, [numbers, numbers.map((n) => JSON.stringify(resultOf(n)))]);
    for (const { kept } of batch) kept();
    inserting--;
    systemClock.nextTurn(() => void insert());
  };
  const keep = ({ n }: { readonly n: number }): Promise<void> =>
    new Promise((kept) => {
      waiting.push({ n, kept });
      if (waiting.length === 1) systemClock.nextTurn(() => void insert());
    });
  const localQueue = { size: 2 * CONCURRENCY };
  const batched = { localQueue, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const speed = { ...(keys === 0 && batched), concurrentJobs: CONCURRENCY };
  const { events } = await run({
    ...{ connectionString, logger, noHandleSignals: true, pollInterval: 2_000 },
    ...{ preset: { worker: speed }, concurrency: CONCURRENCY, taskList: { [TASK]: keep } },
  });
  const done = work();
  events.on("job:success", () => done());
}
