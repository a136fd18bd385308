// The worker's certificate against a real coordinator over mutual TLS.
import { expect } from "chai";
import { systemClock } from "../../../../src/base/clock.ts";
import { failure } from "../../../../src/base/errors.ts";
import { epoch } from "../../../../src/base/ids.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import type { Random } from "../../../../src/base/random.ts";
import { ACCESS } from "../../../../src/coordinator/rpc/leader.ts";
import type { SignWorkerRequest } from "../../../../src/coordinator/rpc/enrolment-service.ts";
import { EnrolmentService } from "../../../../src/gen/rollout/v1/enrolment_pb.ts";
import { MemoryStore } from "../../../../src/storage/memory/memory-store.ts";
import type { Store } from "../../../../src/storage/store.ts";
import { startTestServer } from "../../../support/test-server.ts";
import { readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import type { Credentials } from "../../../../src/transport/tls/identity.ts";
import type { CertificateOptions } from "../../../../src/worker/life/certificate.ts";
import { Certificate } from "../../../../src/worker/life/certificate.ts";
import { EpochGuard } from "../../../../src/worker/link/epoch-guard.ts";
import { readOwnCredentials, writeOwnCredentials } from "../../../../src/worker/life/worker-records.ts";
import { newIdentity, newUri, newWorkerId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";
import { eventually } from "../../../support/eventually.ts";
import { RecordingLogger } from "../../../support/recording-logger.ts";
import { failureOf, rejectionOf } from "../../../support/rejection.ts";
import { startTcpProxy } from "../../../support/tcp-proxy.ts";
import type { ListeningCoordinator, TestCluster } from "../../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";

const DAY_MS = 24 * 60 * 60 * 1_000;
/** Waits are there, and short. */
const hasty: Random = { unit: () => 0.001, bytes: (count) => systemRandom.bytes(count) };

describe("the certificate of a worker", () => {
  const closeLater = useClosers();
  let cluster: TestCluster;
  let listening: ListeningCoordinator;
  /** The coordinator says it of each certificate that it signs. */
  let validForMs: number;
  let workerId: WorkerId;
  let store: Store;
  let log: RecordingLogger;
  let renewed: Credentials[];
  let fatal: unknown[];
  let guard: EpochGuard;
  /** Requests that were signed. */
  let requests: string[];

  beforeEach(async () => {
    cluster = await newTestCluster();
    validForMs = DAY_MS;
    requests = [];
    const sign: SignWorkerRequest = async (csr, id) => {
      requests.push(Buffer.from(csr).toString("hex"));
      const outcome = await cluster.ca.authority.signWorkerRequest(csr, cluster.runId, id);
      return outcome.kind === "signed" ? { ...outcome, validForMs } : outcome;
    };
    listening = await startListeningCoordinator(cluster, { sign });
    closeLater(() => listening.stop());
    [workerId, store, log] = [newWorkerId(), new MemoryStore(), new RecordingLogger()];
    [renewed, fatal] = [[], []];
    guard = new EpochGuard([], async () => undefined);
  });

  function open(options: Partial<CertificateOptions> = {}): Certificate {
    const certificate = new Certificate({
      address: listening.server.address,
      runId: cluster.runId,
      workerId,
      store,
      guard: { admit: (envelope) => guard.admit(envelope) },
      failureTimeoutMs: 4_000,
      enrolment: () => cluster.ca.issue(newIdentity(cluster.runId, "enrolment")),
      clock: systemClock,
      random: hasty,
      log,
      onRenewed: (credentials) => void renewed.push(credentials),
      onFatal: (error) => void fatal.push(error),
      ...options,
    });
    closeLater(() => certificate.stop());
    return certificate;
  }

  async function obtain(certificate: Certificate): Promise<Credentials | undefined> {
    await certificate.load();
    return certificate.obtain();
  }

  const warnings = (): string[] =>
    log.lines.filter(({ level }) => level === "warn").map(({ message }) => message);

  /** By whom certificates were asked for, in order. */
  const signedFor = (): unknown[] =>
    listening.log.lines
      .filter(({ message }) => message === "worker certificate signed")
      .map(({ fields }) => fields["for"]);

  const noBundle = (): Promise<never> =>
    Promise.reject(
      failure("tls_file_unreadable", {
        what: "the bundle",
        file: "f",
        reason: "not there",
        advice: "make it",
      }),
    );

  /** A certificate on disk, as an earlier process left it. */
  async function leave(credentials: Credentials, renewInMs: number): Promise<void> {
    await writeOwnCredentials(store, { credentials, renewAtWallMs: systemClock.wallMs() + renewInMs });
  }

  function issued(): Promise<Credentials> {
    return cluster.ca.issue({ runId: cluster.runId, role: "worker", id: workerId });
  }

  describe("is asked for with the bundle", () => {
    it("by a new worker, and is on disk before it is used", async () => {
      const onDisk: unknown[] = [];
      const onRenewed = (credentials: Credentials): void => {
        onDisk.push(readOwnCredentials(store).then((own) => own?.credentials === undefined || credentials));
      };
      const credentials = await obtain(open({ onRenewed }));
      const reading = readCertificatePem(credentials?.certificatePem ?? "");
      expect(reading).to.have.nested.property("facts.identity.id", workerId);
      expect(await Promise.all(onDisk)).to.deep.equal([credentials]);
      expect((await readOwnCredentials(store))?.credentials).to.deep.equal(credentials);
      expect(signedFor()).to.deep.equal(["enrolment"]);
    });

    it("again when it was refused", async () => {
      await leave(await issued(), DAY_MS);
      const certificate = open();
      const first = await obtain(certificate);
      certificate.replace();
      const [second] = await eventually("a new one", () => renewed.length > 0 && renewed);
      expect(second).to.not.deep.equal(first);
      expect(signedFor()).to.deep.equal(["enrolment"]);
    });

    it("by one request, however often it is asked, and by the next process too: an answer may be lost", async () => {
      const { storeId } = listening.coordinator;
      guard = new EpochGuard([{ storeId, epoch: epoch(1) }], async () => undefined);
      const first = open();
      void obtain(first);
      await eventually("two answers that are not taken", () => requests.length >= 2);
      await first.stop();
      guard = new EpochGuard([], async () => undefined);
      const next = open();
      await obtain(next);
      expect(new Set(requests).size).to.equal(1);
    });

    it("once, however many ask at the same time", async () => {
      const certificate = open();
      await certificate.load();
      certificate.replace();
      certificate.replace();
      await certificate.obtain();
      expect(signedFor()).to.deep.equal(["enrolment"]);
    });

    it("for as long as it takes, with one line for the trouble", async () => {
      const { port, address } = listening.server;
      await listening.stop();
      const obtaining = obtain(open());
      await eventually("trouble", () => warnings().length > 0);
      listening = await startListeningCoordinator(cluster, { port });
      closeLater(() => listening.stop());
      expect(await obtaining).to.not.equal(undefined);
      expect(warnings()).to.deep.equal([`nothing listens at ${address}; trying again`]);
    });

    it("and nobody is there for long: it says at which address, and for how long", async () => {
      const { address } = listening.server;
      await listening.stop();
      const absences: number[] = [];
      const certificate = open({ failureTimeoutMs: 20, onAbsent: (forMs) => void absences.push(forMs) });
      const obtaining = obtain(certificate);
      const [first = 0] = await eventually("it says so", () => absences.length > 0 && absences);
      expect(first).to.be.at.least(80);
      expect(warnings().some((line) => line.includes(`no coordinator was reached at ${address}`))).to.equal(
        true,
      );
      await certificate.stop();
      expect(await obtaining).to.equal(undefined);
    });

    it("in vain where the coordinator says no to it: the worker ends with its reason", async () => {
      await listening.stop();
      listening = await startListeningCoordinator(cluster, { sign: undefined });
      closeLater(() => listening.stop());
      expect((await failureOf(obtain(open()))).code).to.equal("enrolment_refused");
    });

    it("in vain where the bundle itself is refused: the worker that has nothing else ends, and names it", async () => {
      const other = await newTestCluster();
      const foreign = await other.ca.issue(newIdentity(cluster.runId, "enrolment"));
      const { certificatePem } = cluster.ca.authority;
      const enrolment = (): Promise<Credentials> => Promise.resolve({ ...foreign, caPem: certificatePem });
      const error = await failureOf(obtain(open({ enrolment })));
      expect(error.code).to.equal("enrolment_refused");
      expect(error.message).to.match(/refuses the certificate of the bundle \(enrolment 01\w+\)/);
    });

    it("in vain where it was revoked together with the certificate that there is: the worker ends, and names both", async () => {
      const bundle = newIdentity(cluster.runId, "enrolment");
      await leave(await issued(), DAY_MS);
      listening.server.revoke([workerId, bundle.id]);
      const certificate = open({ enrolment: () => cluster.ca.issue(bundle) });
      await obtain(certificate);
      certificate.replace();
      await eventually("its end", () => fatal.length > 0);
      const [error] = fatal;
      expect(error).to.include({ code: "enrolment_refused" });
      expect(String(error)).to.contain(
        `it refuses this worker's certificate and that of the bundle (enrolment ${bundle.id}): they were revoked`,
      );
    });

    it("in vain where there is none: said at once, and not waited for", async () => {
      const error = await failureOf(obtain(open({ enrolment: noBundle })));
      expect(error.code).to.equal("tls_file_unreadable");
    });
  });

  describe("is not taken", () => {
    it("from a leader older than one that was met: the next leader is waited for", async () => {
      const { storeId } = listening.coordinator;
      guard = new EpochGuard([{ storeId, epoch: epoch(1) }], async () => undefined);
      const obtaining = obtain(open());
      await eventually("trouble", () => warnings().length > 0);
      expect(warnings()).to.deep.equal([
        "an answer was refused: epoch 0 is lower than 1, which was seen; trying again",
      ]);
      expect(await readOwnCredentials(store)).to.equal(undefined);
      const { port } = listening.server;
      await listening.stop();
      listening = await startListeningCoordinator(cluster, { port });
      closeLater(() => listening.stop());
      expect(await obtaining).to.not.equal(undefined);
    });

    it("from a coordinator that names no epoch, as those of 0.1: it says what to upgrade", async () => {
      const { port } = listening.server;
      await listening.stop();
      const old = await startTestServer(cluster, {
        listenAddr: `127.0.0.1:${port}`,
        routes: (router) =>
          void router.service(EnrolmentService, {
            signWorkerCertificate: async ({ csr }) => {
              const outcome = await cluster.ca.authority.signWorkerRequest(csr, cluster.runId, workerId);
              return outcome.kind === "signed" ? { certificate: outcome.certificate } : {};
            },
          }),
        access: ACCESS,
      });
      closeLater(() => old.close(0));
      const certificate = open();
      const obtaining = obtain(certificate);
      await eventually("trouble", () => warnings().length > 0);
      expect(warnings()[0]).to.contain("the coordinator has to be upgraded before its workers");
      await certificate.stop();
      expect([await obtaining, await readOwnCredentials(store)]).to.deep.equal([undefined, undefined]);
    });
  });

  it("is used when the epoch of its signer is on disk", async () => {
    const disk = Promise.withResolvers<undefined>();
    const met: unknown[] = [];
    guard = new EpochGuard([], (seen) => {
      met.push(...seen);
      return disk.promise;
    });
    const obtaining = obtain(open());
    await eventually("the epoch was met", () => met.length > 0);
    expect(await readOwnCredentials(store)).to.equal(undefined);
    disk.resolve(undefined);
    expect(await obtaining).to.not.equal(undefined);
  });

  describe("that is on disk", () => {
    it("is used again, and nothing is asked for", async () => {
      const credentials = await issued();
      await leave(credentials, DAY_MS);
      expect(await obtain(open())).to.deep.equal(credentials);
      expect(signedFor()).to.deep.equal([]);
    });

    it("needs no bundle, not even for a new one", async () => {
      await leave(await issued(), -1);
      const certificate = open({ enrolment: noBundle });
      await obtain(certificate);
      await eventually("a new one", () => renewed.length > 0);
      expect(signedFor()).to.deep.equal(["worker"]);
    });
  });

  describe("is renewed with itself", () => {
    it("at half of its life, again and again, without anybody asking", async () => {
      validForMs = 60;
      await obtain(open({ enrolment: () => cluster.ca.issue(newIdentity(cluster.runId, "enrolment")) }));
      await eventually("three renewals", () => renewed.length >= 4);
      expect(signedFor().slice(0, 4)).to.deep.equal(["enrolment", "worker", "worker", "worker"]);
      const keys = renewed.map(({ keyPem }) => keyPem);
      expect(new Set(keys).size).to.equal(keys.length);
    });

    it("not before", async () => {
      await obtain(open());
      const own = await readOwnCredentials(store);
      expect((own?.renewAtWallMs ?? 0) - systemClock.wallMs()).to.be.within(DAY_MS / 2 - 60_000, DAY_MS / 2);
    });

    it("or with the bundle, when it has expired while nobody was there", async () => {
      const uris = [newUri(cluster.runId, "worker")];
      await leave(await cluster.ca.forge({ uris, notBeforeMs: -2 * DAY_MS, notAfterMs: -DAY_MS }), -1);
      await obtain(open());
      await eventually("a new one", () => renewed.length > 0);
      expect(signedFor()).to.deep.equal(["enrolment"]);
      expect(warnings()).to.have.length(1);
      expect(warnings()[0]).to.contain("refused this certificate");
    });

    it("as soon as a bundle is there, when it is refused and there was none", async () => {
      const uris = [newUri(cluster.runId, "worker")];
      await leave(await cluster.ca.forge({ uris, notBeforeMs: -2 * DAY_MS, notAfterMs: -DAY_MS }), -1);
      let asked = 0;
      const enrolment: CertificateOptions["enrolment"] = () =>
        ++asked < 3 ? noBundle() : cluster.ca.issue(newIdentity(cluster.runId, "enrolment"));
      await obtain(open({ enrolment }));
      await eventually("a new one", () => renewed.length > 0);
      expect(asked).to.equal(3);
    });

    it("later, when it is the coordinator's turn to be wrong: a certificate that is good is not thrown away", async () => {
      const { port } = listening.server;
      await listening.stop();
      const other = { ...(await newTestCluster()), runId: cluster.runId };
      const stranger = await startListeningCoordinator(other, { port });
      await leave(await issued(), -1);
      await obtain(open({ enrolment: noBundle }));
      await eventually("trouble", () => warnings().some((line) => line.includes("not this run's")));
      await stranger.stop();
      listening = await startListeningCoordinator(cluster, { port });
      closeLater(() => listening.stop());
      await eventually("a new one", () => renewed.length > 0);
      expect(signedFor()).to.deep.equal(["worker"]);
    });

    it("or with the bundle of a new CA, when the coordinator has one", async () => {
      const { port } = listening.server;
      await leave(await issued(), -1);
      await listening.stop();
      const other = { ...(await newTestCluster()), runId: cluster.runId };
      listening = await startListeningCoordinator(other, { port });
      closeLater(() => listening.stop());
      await obtain(open({ enrolment: () => other.ca.issue(newIdentity(cluster.runId, "enrolment")) }));
      const [fresh] = await eventually("a new one", () => renewed.length > 0 && renewed);
      expect(fresh?.caPem).to.equal(other.ca.authority.certificatePem);
    });
  });

  describe("that cannot be written to disk is not used", () => {
    const cause = failure("store_write_failed", { path: "memory", reason: "a test" });

    beforeEach(() => {
      store = new MemoryStore();
      store.commit = async () => ({ kind: "unknown", cause });
    });

    it("by a new worker: it ends with the store's reason", async () => {
      expect(await rejectionOf(obtain(open()))).to.equal(cause);
      expect(renewed).to.deep.equal([]);
    });

    it("at a renewal, which is the end of the process", async () => {
      const whole = new MemoryStore();
      store = whole;
      await leave(await issued(), -1);
      store.commit = async () => ({ kind: "unknown", cause });
      await obtain(open());
      await eventually("it is fatal", () => fatal.length > 0);
      expect([fatal, renewed]).to.deep.equal([[cause], []]);
    });
  });

  it("is not waited for when the worker stops, not even on a silent link", async () => {
    const proxy = await startTcpProxy(listening.server.port);
    closeLater(() => proxy.close());
    proxy.cut();
    const certificate = open({ address: proxy.address });
    const obtaining = obtain(certificate);
    await certificate.load();
    await certificate.stop();
    expect(await obtaining).to.equal(undefined);
    expect([renewed, log.lines]).to.deep.equal([[], []]);
  });
});
