// Three workers, then four, then three again, under load. The one that dies has results which its last checkpoints do not have, and one of
// these is torn: its partitions go to the others, which load what they can, and are sent the rest. The states that were kept are the
// evidence: each counts the items of its key that have succeeded.
import { readdirSync, truncateSync } from "node:fs";
import { expect } from "chai";
import { partitionDigits } from "../../src/base/partition.ts";
import { keyStateRecord } from "../../src/coordinator/keys/key-records.ts";
import { STATES_PREFIX } from "../../src/storage/keys.ts";
import { withCluster } from "../support/cluster.ts";
import type { Cluster, WorkerProcess } from "../support/cluster.ts";
import { eventually } from "../support/eventually.ts";
import { readRows, runUntil } from "../support/run-observer.ts";

const KEYS = 48;
const ROUNDS = 4;

interface PartitionLine {
  readonly partition: number;
  readonly worker: string | null;
  readonly keys: number;
  readonly checkpoint_offset: number | null;
}

interface Loaded {
  readonly worker_id: string;
  readonly partition: number;
  readonly offset: number;
  readonly loaded: number;
  readonly replayed: number;
}

async function partitionsOf(cluster: Cluster): Promise<PartitionLine[]> {
  const { stdout } = await cluster.run("partitions", "--json");
  const lines = stdout.split("\n").filter((line) => line !== "");
  return lines.map((line) => JSON.parse(line) as PartitionLine);
}

function loadedIn(cluster: Cluster): Loaded[] {
  const events = cluster.coordinator.events.filter(({ topic }) => topic === "partition_loaded");
  return events as unknown as Loaded[];
}

describe("witnesses", () => {
  it("partition_failover_loads_checkpoint", async () => {
    const settings = {
      ...{ "worker.slots": 2, "mock.sleep": "3ms", "mock.state": "200B", "keys.total_partitions": 16 },
      ...{ "keys.checkpoint_store": "./checkpoints", "keys.checkpoint_interval": "300ms" },
    };
    await withCluster(settings, async (cluster) => {
      await cluster.startCoordinator();
      const workers = await cluster.startWorkers(3);
      let items = 0;
      const submit = async (...flags: string[]): Promise<void> => {
        const values = Array.from({ length: KEYS * ROUNDS }, (_, n) => ({ k: n % KEYS, n: items + n }));
        items += values.length;
        await cluster.submit(values, "--key-field", "k", ...flags);
      };
      const finished = (): Promise<unknown> => runUntil(cluster, ({ done }) => done === items);
      const areWritten = async (): Promise<boolean> =>
        (await partitionsOf(cluster)).every(({ keys, checkpoint_offset: at }) => keys === 0 || at !== null);
      await submit();
      await finished();
      await eventually("each partition has a checkpoint", areWritten);

      // A fourth one joins, and has read the checkpoints of its partitions before it is given their items without states.
      await submit();
      const joined = await cluster.startWorker();
      const joinedId = await joined.id();
      await eventually("the one that joined has loaded", () =>
        loadedIn(cluster).some(({ worker_id, loaded }) => worker_id === joinedId && loaded > 0),
      );
      await finished();
      await eventually("each partition has a checkpoint", areWritten);

      const { victim, id } = await fullestOf(cluster, workers);
      // It has results on the coordinator's disk that no checkpoint has.
      await submit();
      await runUntil(cluster, ({ done }) => done > items - KEYS * (ROUNDS - 1));
      await victim.kill();
      const before = loadedIn(cluster).length;
      const own = (await partitionsOf(cluster)).filter(({ worker, keys }) => worker === id && keys > 0);
      expect(own.length, "partitions of the one that dies").to.be.greaterThan(1);
      const torn = tear(cluster, id, own[0]?.partition ?? -1);
      expect(torn, "checkpoints that were torn").to.be.greaterThan(0);
      await submit("--seal");
      const { done, failed } = await runUntil(cluster, ({ state }) => state === "complete");
      expect({ done, failed }).to.deep.equal({ done: items, failed: 0 });

      const moved = new Map<number, Loaded>();
      // The last item may have ended before the last partition was loaded.
      await eventually("each partition of the one that died is loaded by another one", () => {
        for (const event of loadedIn(cluster).slice(before))
          if (event.worker_id !== id) moved.set(event.partition, event);
        return own.every(({ partition }) => moved.has(partition));
      });
      const found = own.flatMap(({ partition }) => moved.get(partition) ?? []);
      expect(moved.get(own[0]?.partition ?? -1)?.loaded, "states of the torn checkpoint").to.equal(0);
      expect(sum(found.map(({ loaded }) => loaded)), "states from checkpoints").to.be.greaterThan(0);
      expect(sum(found.map(({ replayed }) => replayed)), "states from the ledger").to.be.greaterThan(0);
      const others = [...workers.filter((worker) => worker !== victim), joined];
      expect(sum(others.map(warningsOf)), "warnings of the torn checkpoint").to.equal(1);

      const { keys } = await runUntil(cluster, () => true);
      expect(keys?.statesSaved, "assignments without a state").to.be.greaterThan(
        keys?.statesSent ?? Infinity,
      );

      await cluster.coordinator.stop();
      const states = await readRows(cluster.file("data/rollout.db"), STATES_PREFIX, keyStateRecord);
      const counted = states.map(({ state }) => Number.parseInt(Buffer.from(state).toString(), 10));
      expect(counted, "items that the state of each key has counted").to.deep.equal(
        Array.from({ length: KEYS }, () => items / KEYS),
      );
    });
  });
});

/** The worker with the most partitions that have keys. */
async function fullestOf(
  cluster: Cluster,
  workers: readonly WorkerProcess[],
): Promise<{ readonly victim: WorkerProcess; readonly id: string }> {
  const partitions = (await partitionsOf(cluster)).filter(({ keys }) => keys > 0);
  const candidates = await Promise.all(workers.map(async (victim) => ({ victim, id: await victim.id() })));
  const count = (id: string): number => partitions.filter(({ worker }) => worker === id).length;
  const [fullest] = candidates.toSorted((one, other) => count(other.id) - count(one.id));
  if (fullest === undefined) return expect.fail();
  return fullest;
}

/** Cuts off the end of a worker's checkpoints of a partition. Returns how many there are. */
function tear(cluster: Cluster, worker: string, partition: number): number {
  const directory = cluster.file(`checkpoints/${cluster.runId}`);
  const names = readdirSync(directory).filter((name) => name.startsWith(`${partitionDigits(partition)}-`));
  const own = names.filter((name) => name.includes(worker));
  for (const name of own) truncateSync(`${directory}/${name}`, 40);
  return own.length;
}

function warningsOf({ log }: WorkerProcess): number {
  // One that its worker has replaced since it was named is not used either: for another reason.
  return log.filter(({ reason }) => reason === "the checksum does not match").length;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((one, other) => one + other, 0);
}
