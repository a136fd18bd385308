import { expect } from "chai";
import { X509Certificate } from "node:crypto";
import { readCertificate, readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import type { Credentials } from "../../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, newUri, TestAuthority } from "../../../support/certificates.ts";

describe("what a certificate says", () => {
  const runId = newRunId();
  let ca: TestAuthority;

  before(async () => {
    ca = await TestAuthority.make();
  });

  const why = ({ certificatePem }: Credentials): string => {
    const reading = readCertificatePem(certificatePem);
    return reading.kind === "refused" ? reading.why : "accepted";
  };

  it("is who it is for and how long", async () => {
    const identity = newIdentity(runId, "worker");
    const { certificatePem } = await ca.issue(identity);
    const node = new X509Certificate(certificatePem);
    expect(readCertificate(node.raw)).to.deep.equal({
      kind: "identified",
      facts: {
        identity,
        hosts: [],
        notBeforeMs: Date.parse(node.validFrom),
        notAfterMs: Date.parse(node.validTo),
      },
    });
  });

  it("includes the hosts of a coordinator", async () => {
    const hosts = ["localhost", "127.0.0.1", "::1"];
    const identity = newIdentity(runId, "coordinator");
    const reading = readCertificatePem((await ca.authority.issue({ identity, hosts })).certificatePem);
    expect(reading).to.have.nested.property("facts.hosts").that.deep.equals(hosts);
  });

  it("is nothing when it has no name, two identities, or a name beside", async () => {
    const uri = newUri(runId, "worker");
    expect(why(await ca.forge({ uris: [] }))).to.equal("it has not exactly one list of names");
    expect(why(await ca.forge({ uris: [], hosts: ["a"] }))).to.equal("it has not exactly one URI name");
    expect(why(await ca.forge({ uris: [uri, uri] }))).to.equal("it has not exactly one URI name");
    expect(why(await ca.forge({ uris: [uri], hosts: ["a"] }))).to.equal("it has names beside its identity");
  });

  it("is nothing when the usage is not the role's", async () => {
    const worker = newUri(runId, "worker");
    const coordinator = newUri(runId, "coordinator");
    expect(why(await ca.forge({ uris: [worker], usage: "server" }))).to.equal(
      "it may not be used as a client",
    );
    expect(why(await ca.forge({ uris: [coordinator] }))).to.equal("it may not be used as a server");
  });

  it("is nothing when it is no certificate", () => {
    expect(readCertificate(new Uint8Array([1, 2, 3])).kind).to.equal("refused");
    expect(readCertificatePem("hello").kind).to.equal("refused");
  });
});
