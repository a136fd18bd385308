import { expect } from "chai";
import { chmod, readFile, stat, unlink, writeFile } from "node:fs/promises";
import { systemClock } from "../../../../src/base/clock.ts";
import type { Clock } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import { openAuthority } from "../../../../src/transport/tls/authority.ts";
import { LIFETIMES } from "../../../../src/transport/tls/lifetimes.ts";
import { loadBundle } from "../../../../src/transport/tls/bundle.ts";
import { readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import type { CertificateFacts } from "../../../../src/transport/tls/certificate-reading.ts";
import { loadCredentials } from "../../../../src/transport/tls/credential-files.ts";
import {
  enrolmentFile,
  keepHostCredentials,
  operatorFiles,
} from "../../../../src/transport/tls/host-credentials.ts";
import type { HostCredentials } from "../../../../src/transport/tls/host-credentials.ts";
import { newRunId } from "../../../support/certificates.ts";
import { failureOf } from "../../../support/rejection.ts";
import { useTemporaryDirectory } from "../../../support/temporary-directory.ts";

describe("the coordinator's host", () => {
  const directory = useTemporaryDirectory();
  const runId = newRunId();
  let offsetMs = 0;
  const clock: Clock = { ...systemClock, wallMs: () => systemClock.wallMs() + offsetMs };

  beforeEach(() => {
    offsetMs = 0;
  });

  async function keep(
    changes: { hosts?: string[]; coordinatorAddr?: string[] } = {},
  ): Promise<HostCredentials> {
    const tlsDir = directory.path;
    const { authority } = await openAuthority({ tlsDir, clock, random: systemRandom });
    const hosts = ["127.0.0.1", "localhost"];
    const coordinatorAddr = ["127.0.0.1:50051"];
    return keepHostCredentials({
      authority,
      tlsDir,
      runId,
      hosts,
      coordinatorAddr,
      clock,
      random: systemRandom,
      ...changes,
    });
  }

  function factsOf(pem: string): CertificateFacts {
    const reading = readCertificatePem(pem);
    if (reading.kind === "refused") throw new Error(reading.why);
    return reading.facts;
  }

  const texts = (): Promise<string[]> =>
    Promise.all(
      ["coordinator.pem", "coordinator.key.pem", "operator.pem", "operator.key.pem", "enrolment.pem"].map(
        (name) => readFile(directory.file(name), "utf8"),
      ),
    );

  it("gets all its certificates at first boot, each with a mode of its own", async () => {
    const { coordinator, coordinatorChanged } = await keep();
    expect(coordinatorChanged).to.equal(true);
    expect(factsOf(coordinator.certificatePem).hosts).to.have.members(["127.0.0.1", "localhost"]);
    for (const name of ["coordinator.key.pem", "operator.key.pem", "enrolment.pem"]) {
      expect((await stat(directory.file(name))).mode & 0o777, name).to.equal(0o600);
    }
    const operator = await loadCredentials(
      operatorFiles(directory.path),
      { runId, roles: ["operator"] },
      clock,
    );
    expect(operator.facts.identity).to.include({ runId, role: "operator" });
    const enrolment = await loadBundle(enrolmentFile(directory.path), ["enrolment"], clock);
    expect(enrolment.facts.identity).to.include({ runId, role: "enrolment" });
    expect(enrolment.coordinatorAddr).to.deep.equal(["127.0.0.1:50051"]);
  });

  it("changes nothing at the next boot", async () => {
    await keep();
    const before = await texts();
    expect((await keep()).coordinatorChanged).to.equal(false);
    expect(await texts()).to.deep.equal(before);
  });

  it("renews when a third of the lifetime is left, with the same bearer and key", async () => {
    const first = await keep();
    offsetMs = LIFETIMES.coordinatorMs * 0.6;
    expect((await keep()).coordinatorChanged).to.equal(false);
    offsetMs = LIFETIMES.coordinatorMs * 0.7;
    const second = await keep();
    expect(second.coordinatorChanged).to.equal(true);
    expect(second.coordinator.keyPem).to.equal(first.coordinator.keyPem);
    const [before, after] = [first, second].map(({ coordinator }) => factsOf(coordinator.certificatePem));
    expect(after?.identity).to.deep.equal(before?.identity);
    expect(after?.notAfterMs).to.be.greaterThan(before?.notAfterMs ?? 0);
  });

  it("renews the coordinator's when its hosts change, and the bundle when its address does", async () => {
    await keep();
    const { coordinatorChanged } = await keep({ hosts: ["10.0.0.1"] });
    expect(coordinatorChanged).to.equal(true);
    for (const coordinatorAddr of [["10.0.0.1:50051"], ["10.0.0.1:50051", "10.0.0.2:50051"]]) {
      await keep({ hosts: ["10.0.0.1"], coordinatorAddr });
      const bundle = await loadBundle(enrolmentFile(directory.path), ["enrolment"], clock);
      expect(bundle.coordinatorAddr).to.deep.equal(coordinatorAddr);
    }
  });

  it("makes a pair anew when one half is gone or does not fit, and everything when the CA is another", async () => {
    await keep();
    await unlink(directory.file("coordinator.key.pem"));
    expect((await keep()).coordinatorChanged).to.equal(true);
    await writeFile(
      directory.file("coordinator.pem"),
      await readFile(directory.file("operator.pem"), "utf8"),
    );
    expect((await keep()).coordinatorChanged).to.equal(true);
    for (const name of ["ca.pem", "ca.key.pem"]) await unlink(directory.file(name));
    const before = await texts();
    expect((await keep()).coordinatorChanged).to.equal(true);
    const after = await texts();
    expect(after[2]).to.not.equal(before[2]);
    expect(after[4]).to.not.equal(before[4]);
    await loadCredentials(operatorFiles(directory.path), { runId, roles: ["operator"] }, clock);
  });

  it("does not use a key that others may read", async () => {
    await keep();
    await chmod(directory.file("coordinator.key.pem"), 0o644);
    expect((await failureOf(keep())).code).to.equal("tls_key_exposed");
  });

  describe("whose files are loaded", () => {
    const load = (run = runId): ReturnType<typeof loadCredentials> =>
      loadCredentials(operatorFiles(directory.path), { runId: run, roles: ["operator"] }, clock);

    it("says which is missing, wrong, of another run or role, expired or exposed", async () => {
      expect((await failureOf(load())).params["file"]).to.equal(directory.file("ca.pem"));
      await keep();
      expect((await failureOf(load(newRunId()))).params["reason"]).to.match(/^it belongs to run/);
      const asWorker = loadCredentials(operatorFiles(directory.path), { runId, roles: ["worker"] }, clock);
      expect((await failureOf(asWorker)).params["reason"]).to.match(/^it is for operator .* not for worker$/);
      offsetMs = LIFETIMES.operatorMs + 1;
      expect((await failureOf(load())).params["reason"]).to.match(/^it expired at 20/);
      offsetMs = 0;
      await chmod(directory.file("operator.key.pem"), 0o604);
      expect((await failureOf(load())).code).to.equal("tls_key_exposed");
      await chmod(directory.file("operator.key.pem"), 0o600);
      await writeFile(
        directory.file("operator.key.pem"),
        await readFile(directory.file("coordinator.key.pem")),
      );
      expect((await failureOf(load())).params).to.include({
        file: directory.file("operator.key.pem"),
        reason: "it is not the key of that certificate",
      });
      await writeFile(directory.file("operator.pem"), "hello");
      expect((await failureOf(load())).params["reason"]).to.equal("it is not a certificate");
    });
  });
});
