// Checkpoints of partitions in a bucket, at a server that others have written: loaded by a worker that joins, with the secret in nobody's words,
// and a run that goes on when the server has gone.
import { readdirSync } from "node:fs";
import { expect } from "chai";
import { withCluster } from "../support/cluster.ts";
import type { WorkerProcess } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { runUntil } from "../support/run-observer.ts";
import { S3_BUCKET, S3_USER, startS3Server } from "../support/s3-server.ts";

/** So many that a worker which joins gets some of them, whatever its id. */
const KEYS = 32;
/** The server takes any secret of a user whom it knows. */
const SECRET = "never-to-be-read-by-anybody";
const env = { AWS_ACCESS_KEY_ID: S3_USER.accessKeyId, AWS_SECRET_ACCESS_KEY: SECRET };

describe("checkpoints of partitions in a bucket", () => {
  it("are loaded by a worker that joins, and the run goes on when the bucket's server is gone", async () => {
    const settings = {
      "mock.state": "50B",
      "keys.total_partitions": KEYS,
      "keys.checkpoint_interval": "200ms",
    };
    await withCluster(settings, async (cluster) => {
      const server = await startS3Server(cluster.file("s3"));
      try {
        await cluster.configure({ "keys.checkpoint_store": `${server.endpoint}/${S3_BUCKET}/prefix` });
        await cluster.startCoordinator();
        const first = await cluster.startWorker({ env });
        const submit = (n: number, ...flags: string[]): Promise<unknown> =>
          cluster.submit(
            Array.from({ length: KEYS }, (_, k) => ({ k, n })),
            ...["--key-field", "k", ...flags],
          );
        await submit(1);
        const isWritten = (): boolean =>
          readdirSync(cluster.file("s3"), { recursive: true }).some((name) =>
            String(name).includes(cluster.runId),
          );
        await eventually("a checkpoint stands in the bucket", isWritten);
        await eventually("the coordinator knows of one for each partition with keys", async () => {
          const { stdout } = await cluster.run("partitions", "--json");
          const lines = stdout.split("\n").filter((line) => line !== "");
          const all = lines.map(
            (line) => JSON.parse(line) as { keys: number; checkpoint_offset: number | null },
          );
          return all.every(({ keys, checkpoint_offset: offset }) => keys === 0 || offset !== null);
        });
        const second = await cluster.startWorker({ env });
        const worker_id = await second.id();
        const loaded = await cluster.coordinator.event("partition_loaded", { worker_id });
        expect(loaded).to.include({ loaded: loaded.loaded + loaded.replayed });

        await server.close();
        await submit(2);
        await eventually(
          "a worker has said that it writes none",
          () => troublesOf(first) + troublesOf(second) > 0,
        );
        await submit(3, "--seal");
        const { done } = await runUntil(cluster, ({ state }) => state === "complete");
        expect(done).to.equal(3 * KEYS);
        expect(Math.max(troublesOf(first), troublesOf(second)), "warnings of one worker").to.equal(1);
        expect(cluster.describe()).to.not.include(SECRET);
      } finally {
        await server.close().catch(() => undefined);
      }
    });
  });
});

function troublesOf({ log }: WorkerProcess): number {
  return log.filter(({ message }) => message.startsWith("checkpoints of partitions cannot be kept")).length;
}
