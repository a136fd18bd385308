import { expect } from "chai";
import { createClient } from "@connectrpc/connect";
import { AsyncQueue } from "../../../../src/base/async-queue.ts";
import { systemClock } from "../../../../src/base/clock.ts";
import { RolloutError } from "../../../../src/base/errors.ts";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { EnrolmentService } from "../../../../src/gen/rollout/v1/enrolment_pb.ts";
import { silentLogger } from "../../../../src/observe/log.ts";
import { openClient } from "../../../../src/transport/client.ts";
import { pemBlock } from "../../../../src/transport/tls/certificate-making.ts";
import { makeCertificateRequest } from "../../../../src/transport/tls/certificate-request.ts";
import { readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import type { Role } from "../../../../src/transport/tls/identity.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { LIVENESS } from "../../../support/world.ts";
import { eventually } from "../../../support/eventually.ts";
import { useLedCluster } from "../../../support/led-cluster.ts";
import { failureOf } from "../../../support/rejection.ts";
import { beatMessage } from "../../../support/worker-client.ts";

describe("the service of enrolment", () => {
  const led = useLedCluster();
  let csr: Uint8Array;

  beforeEach(async () => {
    ({ csr } = await makeCertificateRequest());
  });

  it("signs any worker's certificate for the bearer of a bundle, and says so in the log", async () => {
    const { enrolment, worker: bearer } = await led.join({ role: "enrolment" });
    const id = newWorkerId();
    const answer = await enrolment.signWorkerCertificate({ workerId: ulidToBytes(id), csr });
    const reading = readCertificatePem(pemBlock("CERTIFICATE", answer.certificate));
    expect(reading).to.have.nested.property("facts.identity").that.deep.equals({
      runId: led.listening.runId,
      role: "worker",
      id,
    });
    expect(Number(answer.validForMs)).to.equal(led.listening.ca.authority.lifetimes.workerMs);
    const [line] = led.listening.log.lines.filter(({ message }) => message === "worker certificate signed");
    expect(line?.fields).to.deep.equal({ worker_id: id, for: "enrolment", bearer: bearer.id });
  });

  it("signs a new certificate of its own for a worker", async () => {
    const { enrolment, worker } = await led.join();
    const answer = await enrolment.signWorkerCertificate({ workerId: ulidToBytes(worker.id), csr });
    expect(answer.certificate.length).to.be.greaterThan(0);
  });

  it("refuses a worker another worker's certificate, and leaves an audit line", async () => {
    const { enrolment } = await led.join();
    const request = { workerId: ulidToBytes(newWorkerId()), csr };
    expect((await failureOf(enrolment.signWorkerCertificate(request))).code).to.equal("permission_denied");
    expect(led.listening.audit.map(({ reason }) => reason)).to.deep.equal(["speaks_as_another"]);
  });

  it("refuses operators a worker's certificate", async () => {
    const { enrolment, worker } = await led.join({ role: "operator" });
    const request = { workerId: ulidToBytes(worker.id), csr };
    expect((await failureOf(enrolment.signWorkerCertificate(request))).code).to.equal("permission_denied");
  });

  async function reasonOf(request: { workerId: Uint8Array; csr: Uint8Array }): Promise<string | undefined> {
    const { enrolment } = await led.join({ role: "enrolment" });
    const error = await failureOf(enrolment.signWorkerCertificate(request));
    expect(error.code).to.equal("enrolment_refused");
    return error.params["reason"];
  }

  it("says what is wrong with a request", async () => {
    const workerId = ulidToBytes(newWorkerId());
    expect(await reasonOf({ workerId: new Uint8Array(4), csr })).to.equal("worker_id is not 16 bytes");
    expect(await reasonOf({ workerId, csr: new Uint8Array(9) })).to.equal("the request cannot be parsed");
  });

  it("says that it does not sign where certificates come from elsewhere", async () => {
    await led.restart({ sign: undefined });
    expect(await reasonOf({ workerId: ulidToBytes(newWorkerId()), csr })).to.equal(
      "the certificates of this run are not made by its coordinator",
    );
  });

  describe("by a bundle", () => {
    let bundle: string;

    beforeEach(() => (bundle = newWorkerId()));

    async function asked(id: string, by = bundle, role: Role = "enrolment"): Promise<string | undefined> {
      const caller = await led.join({ id: by, role });
      return codeOf(caller.enrolment.signWorkerCertificate({ workerId: ulidToBytes(id as WorkerId), csr }));
    }

    async function codeOf(call: Promise<unknown>): Promise<string | undefined> {
      return call.then(
        () => undefined,
        (error: unknown) => (error instanceof RolloutError ? error.code : String(error)),
      );
    }

    /** A worker that beats once. */
    async function live(): Promise<string> {
      const { beats, worker } = await led.join();
      await beats.beat({ beat: beatMessage(worker) });
      return worker.id;
    }

    it("gets nobody the id of a worker that lives, until that has failed; the worker itself renews", async () => {
      const id = await live();
      expect(await asked(id)).to.equal("worker_alive");
      expect(await asked(id, id, "worker")).to.equal(undefined);
      // A worker that falls silent, without a wait for all of the failure timeout.
      await led.restart({
        liveness: { ...LIVENESS, heartbeatIntervalMs: 20, coordinatorFailureTimeoutMs: 300 },
      });
      await eventually("it has failed", () => led.listening.events.of("worker_failed").length > 0);
      expect(await asked(id)).to.equal(undefined);
    });

    it("lets in as many workers as its quota says, each counted once, over restarts", async () => {
      await led.restart({ enrolmentQuota: 2 });
      const [first, second, third] = [newWorkerId(), newWorkerId(), newWorkerId()];
      expect(await asked(first)).to.equal(undefined);
      await led.restart({ enrolmentQuota: 2 });
      expect([await asked(first), await asked(second)]).to.deep.equal([undefined, undefined]);
      expect(await asked(third)).to.equal("enrolment_refused");
      await led.restart({ enrolmentQuota: 2 });
      expect([await asked(third), await asked(second)]).to.deep.equal(["enrolment_refused", undefined]);
      expect(await asked(third, newWorkerId()), "another bundle").to.equal(undefined);
    });

    it("is warned of once when a fifth of its quota is left, and of its lifetime", async () => {
      await led.restart({ enrolmentQuota: 5 });
      const ends = (): unknown[] =>
        led.listening.events.of("enrolment_ending").map(({ enrolled }) => enrolled);
      for (let enrolled = 1; enrolled <= 3; enrolled++) await asked(newWorkerId());
      expect(ends()).to.deep.equal([]);
      for (let enrolled = 4; enrolled <= 6; enrolled++) await asked(newWorkerId());
      expect(ends()).to.deep.equal([4]);

      const identity = { runId: led.cluster.runId, role: "enrolment", id: newWorkerId() } as const;
      const credentials = await led.cluster.ca.issue(identity, 60_000);
      const wallMs = (): number => systemClock.wallMs() + 50_000;
      await led.restart({ clock: { ...systemClock, wallMs } });
      const connection = openClient({
        ...{ address: led.listening.server.address, runId: led.cluster.runId, credentials },
        ...{ clock: systemClock, log: silentLogger },
      });
      led.closeLater(() => connection.close());
      const client = createClient(EnrolmentService, connection.transport);
      await client.signWorkerCertificate({ workerId: ulidToBytes(newWorkerId()), csr });
      const [event] = await eventually("a warning", () => {
        const events = led.listening.events.of("enrolment_ending");
        return events.length > 0 && events;
      });
      expect(event).to.include({ bundle_id: identity.id, enrolled: 1 });
      expect(event?.expires_in_ms).to.be.within(0, 12_000);
    });

    describe("that is revoked", () => {
      async function revoke(id: string, withWorkers = false): Promise<unknown> {
        const { run } = await led.join({ role: "operator" });
        const { enrolled, workersRevoked, isWorker } = await run.revoke({
          bearerId: id,
          withWorkers,
        });
        return { enrolled, workersRevoked, isWorker };
      }

      it("lets nobody in from the next call on, also after a restart; who has joined stays", async () => {
        const id = newWorkerId();
        const caller = await led.join({ id: bundle, role: "enrolment" });
        const ask = (): Promise<unknown> =>
          caller.enrolment.signWorkerCertificate({ workerId: ulidToBytes(newWorkerId()), csr });
        await ask();
        await asked(id);
        expect(await revoke(bundle)).to.deep.equal({ enrolled: 2, workersRevoked: 0, isWorker: false });
        expect(await codeOf(ask())).to.equal("certificate_refused");
        expect(await asked(newWorkerId())).to.equal("certificate_refused");
        await led.restart();
        expect(await asked(newWorkerId())).to.equal("certificate_refused");
        expect(led.listening.audit.at(-1)).to.deep.include({ reason: "certificate_revoked" });
        expect(await asked(id, id, "worker"), "it renews").to.equal(undefined);
        expect(await asked(newWorkerId(), newWorkerId()), "another bundle").to.equal(undefined);
      });

      it("takes its workers with it when that is asked for: their streams end, and their ids are gone for good", async () => {
        const { beats, worker } = await led.join();
        await asked(worker.id);
        const outgoing = new AsyncQueue<{ beat: ReturnType<typeof beatMessage> }>(8);
        outgoing.push({ beat: beatMessage(worker) });
        const answers = beats.beatStream(outgoing)[Symbol.asyncIterator]();
        await answers.next();
        const over = codeOf(answers.next());
        expect(await revoke(bundle, true)).to.deep.equal({ enrolled: 1, workersRevoked: 1, isWorker: false });
        expect(await over).to.be.oneOf(["certificate_refused", "coordinator_silent"]);
        expect(await codeOf(beats.beat({ beat: beatMessage(worker) }))).to.equal("certificate_refused");
        expect(await asked(worker.id, newWorkerId())).to.equal("certificate_revoked");
        expect(await revoke(worker.id)).to.deep.include({ isWorker: true });
      });
    });
  });
});
