import { expect } from "chai";
import { ulidToBytes } from "../../../../src/base/ids.ts";
import { pemBlock } from "../../../../src/transport/tls/certificate-making.ts";
import { readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import { makeCertificateRequest } from "../../../../src/transport/tls/certificate-request.ts";
import type { Role } from "../../../../src/transport/tls/identity.ts";
import { newWorkerId } from "../../../support/certificates.ts";
import { useClosers } from "../../../support/closers.ts";
import { failureOf } from "../../../support/rejection.ts";
import type { CoordinatorTestOptions, ListeningCoordinator } from "../../../support/test-coordinator.ts";
import { newTestCluster, startListeningCoordinator } from "../../../support/test-coordinator.ts";
import { workerClient } from "../../../support/worker-client.ts";
import type { WorkerClient } from "../../../support/worker-client.ts";

describe("the service of enrolment", () => {
  const closeLater = useClosers();
  let listening: ListeningCoordinator;
  let csr: Uint8Array;

  beforeEach(async () => {
    ({ csr } = await makeCertificateRequest());
  });

  async function start(options: CoordinatorTestOptions = {}): Promise<void> {
    listening = await startListeningCoordinator(await newTestCluster(), options);
    closeLater(() => listening.stop());
  }

  async function join(role: Role): Promise<WorkerClient> {
    const joined = await workerClient(listening, { role });
    closeLater(joined.close);
    return joined;
  }

  it("signs any worker's certificate for the bearer of a bundle, and says so in the log", async () => {
    await start();
    const { enrolment, worker: bearer } = await join("enrolment");
    const id = newWorkerId();
    const answer = await enrolment.signWorkerCertificate({ workerId: ulidToBytes(id), csr });
    const reading = readCertificatePem(pemBlock("CERTIFICATE", answer.certificate));
    expect(reading).to.have.nested.property("facts.identity").that.deep.equals({
      runId: listening.runId,
      role: "worker",
      id,
    });
    expect(Number(answer.validForMs)).to.equal(listening.ca.authority.lifetimes.workerMs);
    const [line] = listening.log.lines.filter(({ message }) => message === "worker certificate signed");
    expect(line?.fields).to.deep.equal({ worker_id: id, for: "enrolment", bearer: bearer.id });
  });

  it("signs a worker's own for it", async () => {
    await start();
    const { enrolment, worker } = await join("worker");
    const answer = await enrolment.signWorkerCertificate({ workerId: ulidToBytes(worker.id), csr });
    expect(answer.certificate.length).to.be.greaterThan(0);
  });

  it("does not sign another worker's for a worker, and leaves an audit line", async () => {
    await start();
    const { enrolment } = await join("worker");
    const request = { workerId: ulidToBytes(newWorkerId()), csr };
    expect((await failureOf(enrolment.signWorkerCertificate(request))).code).to.equal("permission_denied");
    expect(listening.audit.map(({ reason }) => reason)).to.deep.equal(["speaks_as_another"]);
  });

  it("does not sign for operators", async () => {
    await start();
    const { enrolment, worker } = await join("operator");
    const request = { workerId: ulidToBytes(worker.id), csr };
    expect((await failureOf(enrolment.signWorkerCertificate(request))).code).to.equal("permission_denied");
  });

  async function reasonOf(request: { workerId: Uint8Array; csr: Uint8Array }): Promise<string | undefined> {
    const { enrolment } = await join("enrolment");
    const error = await failureOf(enrolment.signWorkerCertificate(request));
    expect(error.code).to.equal("enrolment_refused");
    return error.params["reason"];
  }

  it("says what is wrong with a request", async () => {
    await start();
    const workerId = ulidToBytes(newWorkerId());
    expect(await reasonOf({ workerId: new Uint8Array(4), csr })).to.equal("worker_id is not 16 bytes");
    expect(await reasonOf({ workerId, csr: new Uint8Array(9) })).to.equal("the request cannot be parsed");
  });

  it("says that it does not sign where certificates come from elsewhere", async () => {
    await start({ sign: undefined });
    expect(await reasonOf({ workerId: ulidToBytes(newWorkerId()), csr })).to.equal(
      "the certificates of this run are not made by its coordinator",
    );
  });
});
