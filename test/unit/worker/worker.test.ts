// The whole worker against a real coordinator over mutual TLS, both in this process.
import { expect } from "chai";
import { systemClock } from "../../../src/base/clock.ts";
import { failure } from "../../../src/base/errors.ts";
import type { Random } from "../../../src/base/random.ts";
import { systemRandom } from "../../../src/base/random.ts";
import { Sight } from "../../../src/coordinator/sight/sight.ts";
import type { CoordinatorState, WorkerRow } from "../../../src/coordinator/turn/state.ts";
import { WORKER_CREDENTIALS_KEY, WORKER_EPOCHS_KEY } from "../../../src/storage/keys.ts";
import { MemoryStore } from "../../../src/storage/memory/memory-store.ts";
import { claimStore } from "../../../src/storage/store-identity.ts";
import type { Batch, CommitOutcome, Store } from "../../../src/storage/store.ts";
import type { Credentials } from "../../../src/transport/tls/identity.ts";
import { Plugins } from "../../../src/worker/backends/plugins.ts";
import type { Plugin } from "../../../src/worker/backends/versions.ts";
import type { DrainRequest } from "../../../src/worker/life/drain.ts";
import {
  readOwnCredentials,
  readSeenEpochs,
  writeOwnCredentials,
} from "../../../src/worker/life/worker-records.ts";
import { newRunId, newUri, newWorkerId, TestAuthority } from "../../support/certificates.ts";
import { useClosers } from "../../support/closers.ts";
import { DelegatingStore } from "../../support/delegating-store.ts";
import { eventually } from "../../support/eventually.ts";
import { fixedPlugins } from "../../support/fixed-plugins.ts";
import { HeldBackend } from "../../support/held-backend.ts";
import { LIVENESS } from "../../support/world.ts";
import type { RecordingLogger } from "../../support/recording-logger.ts";
import { failureOf } from "../../support/rejection.ts";
import { startTcpProxy } from "../../support/tcp-proxy.ts";
import type {
  CoordinatorTestOptions,
  ListeningCoordinator,
  TestCluster,
} from "../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../support/test-coordinator.ts";
import type { StartedWorker, WorkerTestOptions } from "../../support/test-worker.ts";
import { startWorker } from "../../support/test-worker.ts";

/** Waits are there, and short. */
const hasty: Random = { unit: () => 0.001, bytes: (count) => systemRandom.bytes(count) };

const inSeconds = (seconds: number): DrainRequest => ({
  cause: "sigterm",
  deadlineMs: systemClock.monotonicMs() + seconds * 1_000,
});

describe("a worker", () => {
  const closeLater = useClosers();
  let cluster: TestCluster;
  let listening: ListeningCoordinator;

  beforeEach(async () => {
    cluster = await newTestCluster();
    await listen();
  });

  async function listen(options: CoordinatorTestOptions & { port?: number } = {}): Promise<void> {
    const started = await startListeningCoordinator(cluster, options);
    closeLater(() => started.stop());
    listening = started;
  }

  async function start(options: Partial<WorkerTestOptions> = {}): Promise<StartedWorker> {
    const started = await startWorker(cluster, { address: listening.server.address, ...options });
    closeLater(() => started.worker.stop());
    return started;
  }

  /** Resolves when the coordinator has heard a beat of this incarnation in this state. */
  function heard(started: StartedWorker, state = "Ready"): Promise<unknown> {
    return eventually(`a beat in ${state}`, () => beatsHeard(started).includes(state));
  }

  const beatsHeard = ({ worker }: StartedWorker): string[] =>
    listening.events
      .of("worker_heartbeat")
      .filter(({ incarnation }) => incarnation === worker.incarnation)
      .map(({ state }) => state);

  const statesHeard = (started: StartedWorker): string[] =>
    beatsHeard(started).filter((state, at, states) => state !== states[at - 1]);

  const warnings = (log: RecordingLogger): string[] =>
    log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);

  it("enrols, joins as Init, and becomes Ready when it was heard", async () => {
    const started = await start();
    await heard(started);
    expect(statesHeard(started)).to.deep.equal(["Init", "Ready"]);
    expect(listening.events.of("worker_registered")).to.deep.equal([
      { worker_id: started.id, incarnation: started.worker.incarnation, slots: 2, plugins: [] },
    ]);
    expect([warnings(started.log), started.fatal]).to.deep.equal([[], []]);
  });

  /** A certificate that is there from the beginning. */
  async function ownCertificate(): Promise<Pick<WorkerTestOptions, "workerId" | "credentials">> {
    const workerId = newWorkerId();
    const credentials = await cluster.ca.issue({ runId: cluster.runId, role: "worker", id: workerId });
    return { workerId, credentials: { kind: "own", credentials } };
  }

  it("joins with a certificate from elsewhere, and never enrols", async () => {
    await heard(await start(await ownCertificate()));
    expect(listening.log.lines.filter(({ message }) => message.includes("signed"))).to.deep.equal([]);
  });

  describe("whose certificate does not do any more", () => {
    const DAY_MS = 24 * 60 * 60 * 1_000;

    /** A certificate on disk that nobody would renew for a day. */
    async function withCertificate(credentials: Credentials): Promise<Store> {
      const store = new MemoryStore();
      await claimStore(store, { runId: cluster.runId, clock: systemClock, random: systemRandom });
      await writeOwnCredentials(store, { credentials, renewAtWallMs: systemClock.wallMs() + DAY_MS });
      return store;
    }

    it("gets a new one when it is refused, and joins by it", async () => {
      const uris = [newUri(cluster.runId, "worker")];
      const expired = await cluster.ca.forge({ uris, notBeforeMs: -2 * DAY_MS, notAfterMs: -DAY_MS });
      const started = await start({ store: await withCertificate(expired), random: hasty });
      await heard(started);
      expect((await readOwnCredentials(started.store))?.credentials).to.not.deep.equal(expired);
    });

    it("gets a new one when the coordinator has another CA, of which the bundle knows", async () => {
      const workerId = newWorkerId();
      const old = await cluster.ca.issue({ runId: cluster.runId, role: "worker", id: workerId });
      await listening.stop();
      cluster = { ...cluster, ca: await TestAuthority.make() };
      await listen();
      await heard(await start({ workerId, store: await withCertificate(old), random: hasty }));
    });
  });

  it("says that it is at risk from when it is told, and does not take it back", async () => {
    let state: CoordinatorState | undefined;
    await listening.stop();
    await listen({ inspect: (seen) => (state = seen) });
    const started = await start();
    expect(started.worker.unready).to.equal("no coordinator knows it yet");
    await heard(started);
    await eventually("it is ready", () => started.worker.unready === undefined);
    const isAtRisk = (): boolean | undefined => state?.workers.get(started.id)?.isAtRisk;
    expect(isAtRisk()).to.equal(false);
    started.worker.sayAtRisk();
    started.worker.sayAtRisk();
    await eventually("the coordinator knows", () => isAtRisk() === true);
    expect(started.log.lines.filter(({ message }) => message.includes("taken away"))).to.have.length(1);
  });

  it("says what troubles its plugins, and when it has left only what it has left for", async () => {
    let state: CoordinatorState | undefined;
    await listening.stop();
    await listen({ inspect: (seen) => (state = seen) });
    const backend = Object.assign(new HeldBackend(), { trouble: () => "no server answers" });
    const [plugins, others] = [fixedPlugins(backend), fixedPlugins(backend)];
    const started = await start({ work: { plugins, prefetch: 1 } });
    const broken = await start({ work: { plugins: others, prefetch: 1 } });
    await Promise.all([heard(started), heard(broken)]);
    const troubles = (): unknown[] => [started, broken].map(({ id }) => state?.workers.get(id)?.trouble);
    expect(troubles()).to.deep.equal(["no server answers", "no server answers"]);
    expect(started.worker.unready).to.equal("no server answers");
    others.sayBroken("mock", "1", "no server");
    for (const { worker } of [started, broken]) await worker.drain(inSeconds(15));
    expect(troubles()).to.deep.equal(["", "the backend of mock is broken: no server"]);
  });

  it("says what each version of its plugins runs, and how many are open at once where there are two", async () => {
    await listening.stop();
    let state: CoordinatorState | undefined;
    await listen({ inspect: (seen) => (state = seen) });
    const versionOf = (version: string): Plugin => ({
      ...{ name: "infer", version, taskDigest: Buffer.alloc(32, version) },
      open: () => new HeldBackend(),
    });
    const plugins = new Plugins([versionOf("1")], () => undefined);
    const started = await start({ work: { plugins } });
    await heard(started);
    const row = (): WorkerRow | undefined => state?.workers.get(started.id);
    const said = (): unknown[] => [
      row()?.plugins.map(({ version, taskDigest }) => [version, taskDigest?.[0]]),
      row()?.loadedVersions,
    ];
    expect(said()).to.deep.equal([[["1", 0x31]], undefined]);
    const stored = row()?.stored;
    plugins.add(versionOf("2"));
    await eventually("it is told", () => row()?.loadedVersions === 2);
    const both = [
      ["1", 0x31],
      ["2", 0x32],
    ];
    expect(said()).to.deep.equal([both, 2]);
    expect(row()?.stored, "the version is written").not.to.deep.equal(stored);
  });

  it("says how far its drain is, and nothing of it when it has left", async () => {
    const sight = new Sight(systemClock);
    await listening.stop();
    await listen({ sight });
    const started = await start();
    await heard(started);
    await started.worker.drain(inSeconds(15));
    const steps = sight
      .remembered()
      .entries.flatMap((entry) => (entry.kind === "transition" ? [entry.transition] : []))
      .filter(({ chart, actor }) => chart === "spot-drain" && actor === started.id);
    expect(steps.map(({ from }) => from.split(".")[0])).to.deep.equal(["Idle", "Draining"]);
    expect(steps.at(-1)?.to).to.equal("Idle");
  });

  it("is a newer incarnation after each start, and the chart begins anew", async () => {
    const first = await start();
    await heard(first);
    await first.worker.stop();
    const second = await start({ store: first.store, workerId: first.id });
    await heard(second);
    expect(second.worker.incarnation > first.worker.incarnation).to.equal(true);
    expect(listening.events.of("worker_superseded")).to.have.length(1);
    expect(statesHeard(second)).to.deep.equal(["Init", "Ready"]);
  });

  it("does not take the store of another run", async () => {
    const first = await start();
    await first.worker.stop();
    const other = { ...cluster, runId: newRunId() };
    const starting = startWorker(other, { address: listening.server.address, store: first.store });
    expect((await failureOf(starting)).code).to.equal("store_other_run");
  });

  it("that was started again elsewhere ends with the row that says so, once", async () => {
    const first = await start();
    await heard(first);
    const copy = new MemoryStore(await first.store.scan({ from: "!", to: "\u007f", limit: 100 }));
    const second = await start({ store: copy, workerId: first.id });
    await eventually("the older one ends", () => first.ended.length > 0);
    await heard(second);
    expect(first.ended.map(({ code }) => code)).to.deep.equal(["worker_superseded"]);
    expect(second.ended).to.deep.equal([]);
  });

  describe("finds a coordinator again", () => {
    async function restart(): Promise<void> {
      const { port } = listening.server;
      await listening.stop();
      await listen({ port });
    }

    it("that was restarted at its address, with a line for the loss and one for the return", async () => {
      const started = await start();
      await heard(started);
      await restart();
      await heard(started);
      expect(listening.events.of("worker_registered")).to.deep.equal([]);
      await eventually(
        "the end of the trouble",
        () => started.log.lines.at(-1)?.message === "connected again",
      );
      const said = warnings(started.log);
      expect(new Set(said).size).to.equal(said.length);
      expect(said[0]).to.equal("the coordinator closed the stream; trying again");
    });

    it("that was not there when it started, with a line for all its tries", async () => {
      const { address, port } = listening.server;
      await listening.stop();
      const early = await start({ random: hasty });
      await eventually("trouble", () => warnings(early.log).length > 0);
      await listen({ port });
      await heard(early);
      expect(warnings(early.log)).to.deep.equal([`nothing listens at ${address}; trying again`]);
    });

    it("or says in its log and as an event which address it tries, and for how long, when there is none any more", async () => {
      const { address } = listening.server;
      const started = await start({ random: hasty, selfFenceTimeoutMs: 40, failureTimeoutMs: 50 });
      await heard(started);
      await listening.stop();
      const [event] = await eventually("an event", () => {
        const events = started.events.of("coordinator_unreachable");
        return events.length > 0 && events;
      });
      expect(event).to.include({ worker_id: started.id, address });
      expect(event?.for_ms).to.be.at.least(200);
      expect(
        warnings(started.log).some((line) => line.includes(`no coordinator was reached at ${address}`)),
      ).to.equal(true);
    });

    it("and has the epoch of the new one on its disk", async () => {
      const started = await start();
      await heard(started);
      await restart();
      await heard(started);
      await eventually(
        "epoch 1 is written",
        async () => (await readSeenEpochs(started.store))[0]?.epoch === 1,
      );
    });

    it("by another stream, when everything on the one that it has is swallowed", async () => {
      const proxy = await startTcpProxy(listening.server.port);
      closeLater(() => proxy.close());
      const patience = { selfFenceTimeoutMs: 100, failureTimeoutMs: 150 };
      const started = await start({ address: proxy.address, ...patience });
      await heard(started);
      proxy.cut();
      await eventually("the stream is given up", () =>
        warnings(started.log).includes("the coordinator does not answer; trying again"),
      );
      expect(warnings(started.log)).to.include("self-fenced: no answer from a coordinator");
    });
  });

  describe("refuses a coordinator of a lower epoch", () => {
    /** The ledger as it was before the last leader: a copy that was put back. */
    async function setBack(): Promise<void> {
      const { port } = listening.server;
      const old = await cluster.store.scan({ from: "!", to: "\u007f", limit: 100 });
      await listening.stop();
      for (let leader = 0; leader < 3; leader++) {
        await listen({ port });
        if (leader < 2) await listening.stop();
      }
      cluster = { ...cluster, store: new MemoryStore(old) };
    }

    it("also after a restart, says so once, and tells it what it has seen", async () => {
      await setBack();
      const started = await start();
      await heard(started);
      await started.worker.stop();
      expect((await readSeenEpochs(started.store))[0]?.epoch).to.equal(3);
      const { port } = listening.server;
      await listening.stop();
      await listen({ port });
      expect(listening.coordinator.epoch).to.equal(1);

      const again = await start({ store: started.store, workerId: started.id });
      await eventually("it refuses", () => warnings(again.log).length > 0);
      expect(warnings(again.log)).to.deep.equal([
        "an answer was refused: epoch 1 is lower than 3, which was seen; trying again",
      ]);
      expect(statesHeard(again)).to.deep.equal(["Init"]);
    });
  });

  describe("that drains", () => {
    it("says Draining and then Gone, and returns when that was heard", async () => {
      const started = await start();
      await heard(started);
      await started.worker.drain(inSeconds(15));
      expect(statesHeard(started)).to.deep.equal(["Init", "Ready", "Draining", "Gone"]);
      expect(listening.events.of("worker_deregistered")).to.deep.equal([
        { worker_id: started.id, incarnation: started.worker.incarnation },
      ]);
      expect(started.events.events.map(({ topic }) => topic)).to.deep.equal([
        "drain_started",
        "drain_completed",
      ]);
      expect(started.events.of("drain_started")[0]).to.include({ cause: "sigterm" });
      expect(warnings(started.log)).to.deep.equal([]);
    });

    it("before it ever was connected returns at once", async () => {
      await listening.stop();
      const started = await start();
      await started.worker.drain(inSeconds(15));
      expect(warnings(started.log)).to.include("left without an answer: no coordinator heard the goodbye");
      expect(started.events.of("drain_completed")).to.have.length(1);
    });

    it("returns when nobody answers, and can then be stopped at once", async () => {
      const proxy = await startTcpProxy(listening.server.port);
      closeLater(() => proxy.close());
      const started = await start({ address: proxy.address, failureTimeoutMs: 60_000 });
      await heard(started);
      proxy.cut();
      await started.worker.drain(inSeconds(15));
      await started.worker.stop();
      expect(warnings(started.log)).to.include("left without an answer: no coordinator heard the goodbye");
      expect(statesHeard(started)).to.deep.equal(["Init", "Ready"]);
    });
  });

  describe("that is stopped", () => {
    it("while it still looks for a coordinator ends at once", async () => {
      await listening.stop();
      const started = await start();
      await started.worker.stop();
      expect(started.fatal).to.deep.equal([]);
    });

    it("as soon as it has started leaves nothing behind", async () => {
      const started = await start(await ownCertificate());
      await started.worker.stop();
      await started.store.close();
      expect([started.fatal, listening.events.of("worker_heartbeat")]).to.deep.equal([[], []]);
    });

    for (const [what, key] of [
      ["an epoch", WORKER_EPOCHS_KEY],
      ["its certificate", WORKER_CREDENTIALS_KEY],
    ] as const)
      it(`while it writes down ${what} waits for that, and does nothing after it`, async () => {
        const inner = new MemoryStore();
        const writing = Promise.withResolvers<undefined>();
        const written = Promise.withResolvers<undefined>();
        const commit = async (batch: Batch): Promise<CommitOutcome> => {
          if (!batch.puts.some((put) => put.key === key)) return inner.commit(batch);
          writing.resolve(undefined);
          await written.promise;
          return inner.commit(batch);
        };
        const started = await start({ store: withCommit(inner, commit) });
        await writing.promise;
        let stopped = false;
        const stopping = started.worker.stop().then(() => (stopped = true));
        await heard(await start());
        expect(stopped).to.equal(false);
        written.resolve(undefined);
        await stopping;
        await inner.close();
        // All beats on their way have arrived when somebody else has joined.
        await heard(await start());
        const count = beatsHeard(started).length;
        await heard(await start());
        expect(beatsHeard(started)).to.have.length(count);
        expect(started.fatal).to.deep.equal([]);
      });

    it("without a goodbye is found to be silent, and fails", async () => {
      const { port } = listening.server;
      await listening.stop();
      const liveness = { ...LIVENESS, heartbeatIntervalMs: 20, clockSkewBudgetMs: 30 };
      await listen({ port, liveness: { ...liveness, coordinatorFailureTimeoutMs: 300 } });
      const started = await start();
      await heard(started);
      await started.worker.stop();
      await eventually("worker_failed", () => listening.events.of("worker_failed").length === 1);
      expect(listening.events.of("worker_deregistered")).to.deep.equal([]);
    });
  });

  it("whose store breaks ends with the store's own reason", async () => {
    const inner = new MemoryStore();
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });
    const store = withCommit(inner, async (batch) =>
      batch.puts.some(({ key }) => key === WORKER_EPOCHS_KEY)
        ? { kind: "unknown", cause }
        : inner.commit(batch),
    );
    const started = await start({ store });
    await eventually("it is fatal", () => started.fatal.length > 0);
    expect(started.fatal[0]).to.equal(cause);
  });
});

/** The store, but for its commits. */
function withCommit(inner: Store, commit: Store["commit"]): Store {
  return Object.assign(new DelegatingStore(inner), { commit });
}
