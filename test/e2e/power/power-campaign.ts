// Power cuts on a real file system: a coordinator with its LevelDB on a disk, two workers, items submitted all the time, and images
// of the disk at random instants. A coordinator is started over each image, and must know each item and each result that was
// acknowledged before the image was taken.
import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { describeError } from "../../../src/base/errors.ts";
import { seededRandom } from "../../../src/base/random.ts";
import type { Random } from "../../../src/base/random.ts";
import { RolloutClient } from "../../../src/compose/rollout-client.ts";
import { holderFilePath } from "../../../src/storage/level/holder-file.ts";
import { Cluster } from "../../support/cluster.ts";
import { withLyingCalls } from "../../support/failing-system-calls.ts";
import { withDirectory } from "../../support/temporary-directory.ts";
import { Ext4Disk, withImage } from "./ext4-disk.ts";

export interface PowerOptions {
  readonly images: number;
  readonly seed: number;
  /** The disk answers each fsync without doing it: shows that what is looked for would be found. */
  readonly liesAboutSync?: boolean;
  readonly note?: (line: string) => void;
}

export interface PowerFigures {
  images: number;
  /** Summed over the images: what was acknowledged before each, and what of that is not in it. */
  submitted: number;
  lostItems: number;
  results: number;
  lostResults: number;
  /** Images over which no coordinator led. */
  unled: number;
}

const ITEMS_MAX = 40;
const PADDING_MAX = 2_000;
const APART_MS = 400;

export async function cutPower(options: PowerOptions): Promise<PowerFigures> {
  const figures = { images: 0, submitted: 0, lostItems: 0, results: 0, lostResults: 0, unled: 0 };
  await withDirectory(async (directory) => {
    const random = seededRandom(options.seed);
    const disk = await Ext4Disk.make(join(directory, "machine"));
    const cluster = await openCluster(join(directory, "cluster"), join(disk.path, "rollout.db"));
    try {
      const wrapper = options.liesAboutSync === true ? withLyingCalls(["fsync", "fdatasync"]) : [];
      await cluster.startCoordinator({ wrapper });
      await cluster.startWorkers(2);
      const client = await RolloutClient.connect({ config: cluster.file("rollout.toml") });
      const load = new Load(client, random);
      while (figures.images < options.images) {
        await sleep(systemClock, random.unit() * APART_MS);
        const [items, results] = [[...load.submitted], [...load.results]];
        const image = join(directory, "image");
        await disk.photograph(image);
        load.pause();
        await examine({ directory, image, cluster, items, results, figures, note: options.note });
        load.resume();
        options.note?.(`${figures.images} images: ${JSON.stringify(figures)}`);
      }
      await load.end();
      client.close();
    } finally {
      await cluster.end();
      await disk.remove();
    }
  });
  return figures;
}

/** Items that are submitted without end, and those of them that the coordinator has acknowledged. */
class Load {
  readonly submitted: string[] = [];
  readonly results: string[] = [];
  readonly #client: RolloutClient;
  readonly #random: Random;
  readonly #ends: Promise<unknown>;
  #mayGoOn = Promise.resolve();
  #goOn = (): void => {};
  #isOver = false;

  constructor(client: RolloutClient, random: Random) {
    this.#client = client;
    this.#random = random;
    this.#ends = Promise.allSettled([this.#submit(), this.#follow()]);
  }

  /** An image is looked at: the next one is taken of a disk that is written to again. */
  pause(): void {
    this.#mayGoOn = new Promise((resolve) => (this.#goOn = resolve));
  }

  resume(): void {
    this.#goOn();
  }

  async end(): Promise<void> {
    this.#isOver = true;
    // The iteration over results ends with its client.
    this.#client.close();
    await this.#ends;
  }

  async #submit(): Promise<void> {
    while (!this.#isOver) {
      const count = 1 + Math.floor(this.#random.unit() * ITEMS_MAX);
      const from = this.submitted.length;
      const padding = "x".repeat(this.#random.unit() * PADDING_MAX);
      const items = Array.from({ length: count }, (_, at) => `item ${from + at} ${padding}`);
      await this.#client.submit(items);
      this.submitted.push(...items);
      await sleep(systemClock, this.#random.unit() * 2 * ITEMS_MAX);
      await this.#mayGoOn;
    }
  }

  async #follow(): Promise<void> {
    for await (const { output } of this.#client.results({ follow: true }))
      this.results.push(JSON.parse(Buffer.from(output).toString()) as string);
  }
}

interface Examined {
  readonly directory: string;
  readonly image: string;
  readonly cluster: Cluster;
  readonly items: readonly string[];
  readonly results: readonly string[];
  readonly figures: PowerFigures;
  readonly note: PowerOptions["note"];
}

async function examine({
  directory,
  image,
  cluster,
  items,
  results,
  figures,
  note,
}: Examined): Promise<void> {
  const found = join(directory, "found");
  await withImage(image, join(directory, "restarted"), async (path) => {
    const database = join(path, "rollout.db");
    // It names a process that a machine that has started again would not have.
    await rm(holderFilePath(database), { force: true });
    const after = await openCluster(found, database, cluster);
    try {
      figures.images++;
      figures.submitted += items.length;
      figures.results += results.length;
      await after.startCoordinator();
      const client = await RolloutClient.connect({ config: after.file("rollout.toml") });
      const { done: doneThere } = await client.status();
      const there = new Set<string>();
      for await (const { output } of client.results())
        there.add(JSON.parse(Buffer.from(output).toString()) as string);
      if (there.size !== doneThere)
        throw new Error(`${there.size} results of ${doneThere} items that are done`);
      figures.lostResults += results.filter((result) => !there.has(result)).length;
      // An item that is submitted again and counts as new was not there.
      if (items.length > 0) figures.lostItems += (await client.submit(items)).added;
      client.close();
      await after.coordinator.stop();
    } catch (error) {
      if (after.coordinator.seen("coordinator_leading").length > 0) throw error;
      figures.unled++;
      note?.(`image ${figures.images} is led by nobody: ${describeError(error)}\n${after.describe()}`);
    } finally {
      await after.end();
      await rm(found, { recursive: true, force: true });
    }
  });
}

/** One that knows nothing yet, or another one's machine started again. */
async function openCluster(directory: string, database: string, before?: Cluster): Promise<Cluster> {
  await mkdir(directory, { recursive: true });
  const cluster = new Cluster(directory, {
    "storage.path": database,
    "worker.slots": 8,
    "mock.sleep": "1ms",
    ...(before && { run_id: before.runId, "transport.tls_dir": before.file("data/tls") }),
  });
  await cluster.configure({});
  return cluster;
}
