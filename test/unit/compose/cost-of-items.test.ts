// The cost of an item in things that can be counted, so that it cannot grow unnoticed: a real coordinator and a real worker with two
// slots over mutual TLS, real processes, and stores that count. No time is measured. Bounds are some times what was seen, and less than
// what an item cost when each had a commit or a frame of its own.
import { expect } from "chai";
import type { Transport } from "@connectrpc/connect";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { submitLines } from "../../../src/client/submit.ts";
import { pluginOf } from "../../../src/compose/plugins.ts";
import { LIMITS } from "../../../src/config/limits.ts";
import { mockManifest, parseManifest } from "../../../src/config/manifest.ts";
import type { Manifest } from "../../../src/config/manifest.ts";
import { taskOf } from "../../../src/config/task.ts";
import { WorkService } from "../../../src/gen/rollout/v1/work_pb.ts";
import { Exposition } from "../../../src/observe/metrics/exposition.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import type { Batch, CommitOutcome, Store } from "../../../src/storage/store.ts";
import { openClient } from "../../../src/transport/client.ts";
import type { Client, ClientOptions } from "../../../src/transport/client.ts";
import { Plugins } from "../../../src/worker/backends/plugins.ts";
import { newWorkerId } from "../../support/certificates.ts";
import { openOwnChildHost } from "../../support/child-host.ts";
import { useClosers } from "../../support/closers.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";
import { eventually } from "../../support/eventually.ts";
import { metricValues } from "../../support/metric-values.ts";
import { RecordingLogger } from "../../support/recording-logger.ts";
import { environmentFor } from "../../support/rollout-process.ts";
import { useTemporaryDirectory } from "../../support/temporary-directory.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import { startWorker } from "../../support/test-worker.ts";
import { seenRun, workerClient } from "../../support/worker-client.ts";
import { LIVENESS } from "../../support/world.ts";

const ITEMS = 2_000;
/** A process for each of them costs more than all that is counted here, and what it costs is the same for each. */
const COMMANDS = 500;
const SLOTS = 2;
const PAYLOAD_BYTES = 100;
/** Beats cost commits of their own: few, however long the machine takes. */
const BEAT_MS = 2_000;
/** A sync of the coordinator's disk, a slow one: what ends meanwhile is to go together, on a machine of any speed. */
const DISK_MS = 20;
const ANSWERING = `
  process.stdout.write('{"type":"ready"}\\n');
  require("node:readline").createInterface({ input: process.stdin }).on("line", (text) => {
    const { type, id, payload } = JSON.parse(text);
    if (type === "item") process.stdout.write(JSON.stringify({ type: "result", id, output: payload }) + "\\n");
  });`;

class CountingStore extends DelegatingStore {
  commits = 0;
  syncs = 0;
  bytes = 0;
  readonly #diskMs: number;

  constructor(inner: Store, diskMs = 0) {
    super(inner);
    this.#diskMs = diskMs;
  }

  override async commit(batch: Batch): Promise<CommitOutcome> {
    this.commits++;
    if (batch.durability === "sync") this.syncs++;
    for (const { key, value } of batch.puts) this.bytes += key.length + value.length;
    for (const key of batch.deletes) this.bytes += key.length;
    const outcome = await super.commit(batch);
    if (batch.durability === "sync" && this.#diskMs > 0) await sleep(systemClock, this.#diskMs);
    return outcome;
  }
}

/** Counts the frames of the session, both ways. */
class CountingTransport implements Transport {
  up = 0;
  down = 0;
  #inner: Transport | undefined;

  connect(options: ClientOptions): Client {
    const client = openClient(options);
    this.#inner = client.transport;
    return {
      transport: this,
      setCredentials: (credentials) => client.setCredentials(credentials),
      doubt: () => client.doubt(),
      close: () => client.close(),
    };
  }

  unary: Transport["unary"] = (...call) => this.#opened.unary(...call);

  stream: Transport["stream"] = async (method, signal, timeoutMs, header, input, values) => {
    if (method.parent.typeName !== WorkService.typeName)
      return this.#opened.stream(method, signal, timeoutMs, header, input, values);
    const sent = counted(input, () => this.up++);
    const answer = await this.#opened.stream(method, signal, timeoutMs, header, sent, values);
    return { ...answer, message: counted(answer.message, () => this.down++) };
  };

  get #opened(): Transport {
    if (this.#inner === undefined) throw new Error("the worker has connected");
    return this.#inner;
  }
}

async function* counted<T>(
  messages: AsyncIterable<T>,
  count: () => void,
): AsyncGenerator<T, void, undefined> {
  for await (const message of messages) {
    count();
    yield message;
  }
}

/** For one item. The ledger is the coordinator's store; up is from the worker. */
interface Cost {
  readonly ledgerCommits: number;
  readonly ledgerSyncs: number;
  readonly ledgerBytes: number;
  readonly workerCommits: number;
  readonly workerSyncs: number;
  readonly workerBytes: number;
  readonly framesUp: number;
  readonly framesDown: number;
  readonly starts: number;
}

const TO_SUBMIT = { priority: 0, clock: systemClock, random: systemRandom };

/** Commits and frames are for all that ends in 20 ms at once, of what takes its time in 200 ms: hundreds of items, or tens, on a slow machine some. */
const MOST: Readonly<Record<"mock" | "process" | "command", Cost>> = {
  mock: { ...commits(0.1), ledgerBytes: 900, workerBytes: 280, ...frames(0.1), starts: 0 },
  process: { ...commits(0.35), ledgerBytes: 850, workerBytes: 300, ...frames(0.4), starts: 0.01 },
  command: { ...commits(0.4), ledgerBytes: 800, workerBytes: 280, ...frames(0.6), starts: 1.02 },
};

function commits(
  each: number,
): Pick<Cost, "ledgerCommits" | "ledgerSyncs" | "workerCommits" | "workerSyncs"> {
  return { ledgerCommits: each, ledgerSyncs: each, workerCommits: each, workerSyncs: Math.min(each, 1) };
}

function frames(each: number): Pick<Cost, "framesUp" | "framesDown"> {
  return { framesUp: each, framesDown: each };
}

describe("an item costs", () => {
  const closeLater = useClosers();
  const directory = useTemporaryDirectory();

  for (const [kind, most] of Object.entries(MOST))
    it(`at most its limit: ${kind}, ${itemsOf(kind)} of them`, async () =>
      refuseOver(most, await costOf(manifestOf(kind), 1, itemsOf(kind))));

  it("at most its limit where two workers share the items", async () =>
    refuseOver(MOST.mock, await costOf(mockManifest(), 2, ITEMS)));

  function itemsOf(kind: string): number {
    return kind === "command" ? COMMANDS : ITEMS;
  }

  function refuseOver(most: Cost, cost: Cost): void {
    const over = Object.entries({ ...cost }).filter(([what, each]) => each > most[what as keyof Cost]);
    expect(over, `an item costs ${JSON.stringify(cost)}`).to.deep.equal([]);
  }

  function manifestOf(kind: string): Manifest {
    if (kind === "mock") return mockManifest();
    const command = JSON.stringify(kind === "process" ? [process.execPath, "-e", ANSWERING] : ["cat"]);
    const text = `name = "${kind}"\nversion = "1"\nbackend = "${kind}"\n[${kind}]\ncommand = ${command}\n`;
    return parseManifest(`${directory.path}/${kind}.toml`, text);
  }

  /** All items are submitted, executed, recorded and acknowledged. */
  async function costOf(manifest: Manifest, workers: number, items: number): Promise<Cost> {
    const cluster = await newTestCluster();
    const ledger = new CountingStore(cluster.store, DISK_MS);
    const [own, transports]: [CountingStore[], CountingTransport[]] = [[], []];
    const liveness = { ...LIVENESS, heartbeatIntervalMs: BEAT_MS };
    const listening = await startListeningCoordinator(cluster, { store: ledger, liveness });
    closeLater(() => listening.stop());
    const operator = await workerClient(listening, { role: "operator" });
    closeLater(operator.close);
    const { plugins, starts } = await open(manifest);
    await submitLines(operator.transport, payloads(items), { ...TO_SUBMIT, task: taskOf(manifest) });
    for (let started = 0; started < workers; started++) {
      const [store, transport] = [new CountingStore(new MemoryStore()), new CountingTransport()];
      own.push(store);
      transports.push(transport);
      const { worker } = await startWorker(cluster, {
        address: listening.server.address,
        ...{ slots: SLOTS, work: { plugins }, store, heartbeatIntervalMs: BEAT_MS },
        connect: (options) => transport.connect(options),
      });
      closeLater(() => worker.stop());
    }
    for (let done = 0; done < items;)
      done = await eventually(`more than ${done} results`, async () => {
        const run = await seenRun(operator.run);
        return run.done > done && run.done;
      });
    const each = (...counts: readonly number[]): number =>
      counts.reduce((sum, count) => sum + count, 0) / items;
    return {
      ledgerCommits: each(ledger.commits),
      ledgerSyncs: each(ledger.syncs),
      ledgerBytes: each(ledger.bytes),
      workerCommits: each(...own.map(({ commits }) => commits)),
      workerSyncs: each(...own.map(({ syncs }) => syncs)),
      workerBytes: each(...own.map(({ bytes }) => bytes)),
      framesUp: each(...transports.map(({ up }) => up)),
      framesDown: each(...transports.map(({ down }) => down)),
      starts: each(starts()),
    };
  }

  async function open(
    manifest: Manifest,
  ): Promise<{ readonly plugins: Plugins; readonly starts: () => number }> {
    const log = new RecordingLogger();
    const opened = await openOwnChildHost(`${directory.path}/records`, log);
    const { host, starter } = opened;
    closeLater(() => opened.close());
    const ports = {
      ...{ clock: systemClock, random: systemRandom, log, workerId: newWorkerId(), slots: SLOTS },
      maxOutputBytes: LIMITS.outputBytes,
      maxCheckpointBytes: LIMITS.checkpointBytes,
      maxStateBytes: LIMITS.stateBytes,
      ...{ checkpointIntervalMs: 60_000, startTimeoutMs: 120_000, children: host },
      directory: `${directory.path}/attempts`,
      environment: environmentFor(),
      onBroken: ({ name }: { readonly name: string }, reason: string): void => {
        throw new Error(`${name} is broken: ${reason}`);
      },
    };
    const plugin = pluginOf(manifest, ports, () => undefined);
    const plugins = new Plugins([plugin], (error) => {
      throw error;
    });
    closeLater(() => plugins.close());
    const starts = (): number => {
      const exposition = new Exposition();
      starter.addMetrics(exposition);
      const values = metricValues(exposition.text);
      return Object.entries(values).reduce(
        (sum, [name, count]) =>
          name.startsWith("rollout_worker_processes_started_total") ? sum + count : sum,
        0,
      );
    };
    return { plugins, starts };
  }
});

async function* payloads(count: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < count; at++)
    yield Buffer.from(`{"n":${at},"pad":"${"x".repeat(PAYLOAD_BYTES - 24)}"}`);
}
