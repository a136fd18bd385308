// BullMQ, whose jobs stay in Redis with what they returned.
// Arguments: `producer` or `worker`, where it is installed, the port of Redis, how many items.
import { CONCURRENCY, inParallel, installed, payloadOf, produce, resultOf, work } from "./role.ts";

interface Queue {
  waitUntilReady(): Promise<unknown>;
  addBulk(jobs: readonly { readonly name: string; readonly data: object }[]): Promise<unknown>;
}

interface Worker {
  waitUntilReady(): Promise<unknown>;
  on(event: "completed", heard: () => void): void;
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly Worker: new (
    name: string,
    execute: (job: { readonly data: { readonly n: number } }) => Promise<object>,
    options: object,
  ) => Worker;
}

const QUEUE = "items";
const ADDED_AT_ONCE = 1_000;
const ADDING_AT_ONCE = 4;
/** Longer than a run: no job is taken for lost. */
const LOCK_MS = 600_000;

const [role, directory = "", port = "0", count = "0"] = process.argv.slice(2);
const { Queue, Worker } = installed(directory, "bullmq") as BullMq;
const connection = { host: "127.0.0.1", port: Number(port) };
if (role === "producer") await enqueueJobs(Number(count));
else await executeJobs();

async function enqueueJobs(jobs: number): Promise<void> {
  const queue = new Queue(QUEUE, { connection });
  await queue.waitUntilReady();
  const batch = (from: number): { name: string; data: object }[] =>
    Array.from({ length: Math.min(ADDED_AT_ONCE, jobs - from) }, (_, at) => ({
      ...{ name: "item", data: payloadOf(from + at) },
    }));
  const calls = Array.from({ length: Math.ceil(jobs / ADDED_AT_ONCE) }, (_, at) => () => {
    return queue.addBulk(batch(at * ADDED_AT_ONCE));
  });
  await produce(() => inParallel(calls, ADDING_AT_ONCE));
}

async function executeJobs(): Promise<void> {
  const execute = ({ data }: { readonly data: { readonly n: number } }): Promise<object> =>
    Promise.resolve(resultOf(data.n));
  const worker = new Worker(QUEUE, execute, { connection, concurrency: CONCURRENCY, lockDuration: LOCK_MS });
  await worker.waitUntilReady();
  const done = work();
  worker.on("completed", () => done());
}
