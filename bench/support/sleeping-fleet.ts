// A coordinator over a real database and workers that sleep for each item, all of the product and over mutual TLS, in this one
// process: what is measured is who gets what when, not what it costs.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import type { Client as Calls } from "@connectrpc/connect";
import { assert } from "../../src/base/assert.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import type { IncarnationId, RunId, WorkerId } from "../../src/base/ids.ts";
import { newUlid } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { Coordinator } from "../../src/coordinator/coordinator.ts";
import { ACCESS } from "../../src/coordinator/rpc/leader.ts";
import { OperatorService } from "../../src/gen/rollout/v1/run_pb.ts";
import { NoopEmitter } from "../../src/observe/events.ts";
import { silentLogger } from "../../src/observe/log.ts";
import { openLevelStore } from "../../src/storage/level/level-store.ts";
import { MemoryStore } from "../../src/storage/memory/memory-store.ts";
import type { Store } from "../../src/storage/store.ts";
import { openClient } from "../../src/transport/client.ts";
import { startServer } from "../../src/transport/server.ts";
import type { RunningServer } from "../../src/transport/server.ts";
import { openAuthority } from "../../src/transport/tls/authority.ts";
import type { Credentials, Identity } from "../../src/transport/tls/identity.ts";
import { Plugins } from "../../src/worker/backends/plugins.ts";
import { Worker } from "../../src/worker/worker.ts";

const LIVENESS = {
  heartbeatIntervalMs: 500,
  clockSkewBudgetMs: 250,
  coordinatorFailureTimeoutMs: 5_000,
  removeAfterMs: 60_000,
};
const SELF_FENCE_MS = 4_000;
const [clock, random, log] = [systemClock, systemRandom, silentLogger];
const onFatal = (error: unknown): void => assert(false, `the fleet broke: ${String(error)}`);

interface Parts {
  readonly runId: RunId;
  readonly directory: string;
  readonly store: Store;
  readonly coordinator: Coordinator;
  readonly server: RunningServer;
  readonly issue: (role: Identity["role"], id: string) => Promise<Credentials>;
  readonly run: Calls<typeof OperatorService>;
  readonly closeClient: () => void;
}

export class SleepingFleet {
  readonly #parts: Parts;
  readonly #workers: Worker[] = [];

  private constructor(parts: Parts) {
    this.#parts = parts;
  }

  static async start({ steals }: { readonly steals: boolean }): Promise<SleepingFleet> {
    const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
    const runId = newUlid<RunId>(clock, random);
    const store = await openLevelStore({ path: join(directory, "db"), holderName: "bench", clock });
    const { authority } = await openAuthority({ tlsDir: join(directory, "tls"), clock, random });
    const issue = (role: Identity["role"], id: string): Promise<Credentials> =>
      authority.issue({ identity: { runId, role, id } });
    const coordinator = await Coordinator.start({
      ...{ runId, store, clock, random, log, onFatal, steals },
      incarnation: newUlid<IncarnationId>(clock, random),
      ownStore: new MemoryStore(),
      liveness: LIVENESS,
      workersMax: 10,
      budgets: { maxAttempts: 3, maxLost: 5 },
      inboxMax: 1_000,
      events: new NoopEmitter(),
      sign: undefined,
      advertisedAddress: "127.0.0.1:0",
      abortFenced: ({ reason }) => assert(false, reason),
    });
    const server = await startServer({
      listenAddr: "127.0.0.1:0",
      credentials: await issue("coordinator", newUlid(clock, random)),
      routes: coordinator.routes,
      access: ACCESS,
      log,
      audit: () => {},
      clock,
    });
    const credentials = await issue("operator", newUlid(clock, random));
    const client = openClient({ address: server.address, runId, credentials, clock, log });
    const run = createClient(OperatorService, client.transport);
    const closeClient = (): void => client.close();
    return new SleepingFleet({ runId, directory, store, coordinator, server, issue, run, closeClient });
  }

  /** A worker with one slot that has been welcomed. */
  async join({ itemMs, prefetch }: { readonly itemMs: number; readonly prefetch: number }): Promise<void> {
    const { runId, server, issue, run } = this.#parts;
    const workerId = newUlid<WorkerId>(clock, random);
    const execute = async ({ payload }: { readonly payload: Uint8Array }) => {
      await sleep(clock, itemMs);
      return { kind: "success", output: payload } as const;
    };
    const backend = { execute, close: () => Promise.resolve() };
    const worker = await Worker.start({
      ...{ runId, workerId, clock, random, log, onFatal },
      store: new MemoryStore(),
      address: server.address,
      credentials: { kind: "own", credentials: await issue("worker", workerId) },
      slots: 1,
      work: {
        plugins: new Plugins([{ name: "mock", version: "1", open: () => backend }], onFatal),
        prefetch,
      },
      heartbeatIntervalMs: LIVENESS.heartbeatIntervalMs,
      selfFenceTimeoutMs: SELF_FENCE_MS,
      failureTimeoutMs: LIVENESS.coordinatorFailureTimeoutMs,
      events: new NoopEmitter(),
      onEnded: onFatal,
    });
    this.#workers.push(worker);
    while ((await run.listWorkers({})).workers.length < this.#workers.length) await sleep(clock, 5);
  }

  async submit(items: number): Promise<void> {
    const { run } = this.#parts;
    const lines = Array.from({ length: items }, (_, at) => ({ payload: Buffer.from(`{"n":${at}}`) }));
    const [submissionId, taskDigest] = [new Uint8Array(16).fill(1), new Uint8Array(32)];
    await run.submit({ submissionId, batchNumber: 1n, taskDigest, items: lines });
  }

  async done(): Promise<number> {
    return (await this.#parts.run.getRun({})).run?.done ?? 0;
  }

  async stop(): Promise<void> {
    const { closeClient, coordinator, server, store, directory } = this.#parts;
    await Promise.all(this.#workers.map((worker) => worker.stop()));
    closeClient();
    coordinator.endStreams();
    await server.close(1_000);
    await coordinator.stop();
    await store.close();
    rmSync(directory, { recursive: true, force: true });
  }
}
