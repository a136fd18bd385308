// Results of BullMQ, followed by its own events, while a worker process executes no-ops; Redis syncs each write.
import { Awaited } from "./followed.ts";
import type { Followed } from "./followed.ts";
import { program, redisFor } from "./peers/contenders.ts";
import { installed, payloadOf } from "./peers/role.ts";
import { Staff } from "./peers/staff.ts";

interface Queue {
  add(name: string, data: object, options: { readonly jobId: string }): Promise<unknown>;
  close(): Promise<void>;
}

interface QueueEvents {
  waitUntilReady(): Promise<unknown>;
  on(event: "completed", heard: (job: { readonly jobId: string }) => void): void;
  close(): Promise<void>;
}

interface BullMq {
  readonly Queue: new (name: string, options: object) => Queue;
  readonly QueueEvents: new (name: string, options: object) => QueueEvents;
}

const QUEUE = "items";

/** No figures where it cannot be had, for a reason that is noted. */
export async function withBullMq<Figure>(
  use: (followed: Followed) => Promise<readonly Figure[]>,
  note: (line: string) => void,
): Promise<readonly Figure[]> {
  const redis = redisFor("always", note);
  if ("skipped" in redis) {
    note(`BullMQ is skipped: ${redis.skipped}`);
    return [];
  }
  const server = await redis.start();
  const staff = new Staff();
  try {
    await staff.startWorkers(program("bullmq"), [redis.directory, String(server.port)], 1);
    const bullmq = installed(redis.directory, "bullmq") as BullMq;
    const connection = { host: "127.0.0.1", port: server.port };
    const queue = new bullmq.Queue(QUEUE, { connection });
    const events = new bullmq.QueueEvents(QUEUE, { connection });
    await events.waitUntilReady();
    const awaited = new Awaited();
    events.on("completed", ({ jobId }) => awaited.tell(jobId));
    let items = 0;
    const submit = (): Promise<number> => {
      const jobId = `item-${++items}`;
      const known = awaited.wait(jobId);
      return Promise.all([known, queue.add("item", payloadOf(items), { jobId })]).then(([atMs]) => atMs);
    };
    const result = await use({ submit });
    await Promise.all([queue.close(), events.close()]);
    return result;
  } finally {
    await staff.end();
    await server.close();
  }
}
