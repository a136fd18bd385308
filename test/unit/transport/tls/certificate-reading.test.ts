import { expect } from "chai";
import fc from "fast-check";
import { X509Certificate } from "node:crypto";
import { readCertificate, readCertificatePem } from "../../../../src/transport/tls/certificate-reading.ts";
import { identityUri } from "../../../../src/transport/tls/identity.ts";
import type { Credentials } from "../../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId, newUri, TestAuthority } from "../../../support/certificates.ts";
// Before the library, which does not load without it.
import "../../../../src/transport/tls/metadata-reflection.ts";
import { SubjectAlternativeNameExtension, X509Certificate as LibraryCertificate } from "@peculiar/x509";

/** The names as the library that makes certificates reads them; undefined for what it does not take. */
function namesOf(der: Uint8Array): string[] | undefined {
  try {
    const certificate = new LibraryCertificate(new Uint8Array(der));
    const [alternatives] = certificate.getExtensions(SubjectAlternativeNameExtension);
    return (alternatives?.names.items ?? []).map(({ value }) => value);
  } catch {
    return undefined;
  }
}

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

  it("is nothing when it has two lists of names", async () => {
    const [uris, urisBehind] = [[newUri(runId, "worker")], [newUri(runId, "operator")]];
    expect(why(await ca.forge({ uris }))).to.equal("accepted");
    expect(why(await ca.forge({ uris, urisBehind }))).to.equal("it has not exactly one list of names");
  });

  it("is nothing when the usage is not the role's", async () => {
    const worker = newUri(runId, "worker");
    const coordinator = newUri(runId, "coordinator");
    expect(why(await ca.forge({ uris: [worker], usage: "server" }))).to.equal(
      "it may not be used as a client",
    );
    expect(why(await ca.forge({ uris: [coordinator] }))).to.equal("it may not be used as a server");
  });

  it("is, of each name, what the library that made it says", async () => {
    // The library does not know how to write an address of version 6 that ends like one of version 4.
    const ipV6 = fc.ipV6().filter((address) => !address.includes("."));
    const hosts = fc.array(fc.oneof(fc.domain(), fc.ipV4(), ipV6), { maxLength: 5 });
    await fc.assert(
      fc.asyncProperty(hosts, async (wanted) => {
        const identity = newIdentity(runId, "coordinator");
        const { certificatePem } = await ca.authority.issue({ identity, hosts: wanted });
        const reading = readCertificatePem(certificatePem);
        const names = namesOf(new X509Certificate(certificatePem).raw);
        expect(reading).to.have.nested.property("facts.hosts").that.deep.equals(names?.slice(1));
      }),
      { numRuns: 50 },
    );
  });

  it("is the truth or nothing, whatever byte of it is another one", async () => {
    const identity = newIdentity(runId, "coordinator");
    const { raw } = new X509Certificate((await ca.issue(identity)).certificatePem);
    let read = 0;
    for (const at of raw.keys()) {
      for (const change of [0x01, 0x80]) {
        const other = new Uint8Array(raw);
        other[at] = (raw[at] ?? 0) ^ change;
        const reading = readCertificate(other);
        const names = reading.kind === "refused" ? undefined : namesOf(other);
        if (reading.kind === "refused" || names === undefined) continue;
        expect([identityUri(reading.facts.identity), ...reading.facts.hosts]).to.deep.equal(names);
        read++;
      }
    }
    // The bytes of its signature alone say nothing to a reader.
    expect(read, "certificates that are read all the same").to.be.above(100);
  });

  it("is nothing when it is no certificate", () => {
    expect(readCertificate(new Uint8Array([1, 2, 3])).kind).to.equal("refused");
    expect(readCertificatePem("hello").kind).to.equal("refused");
  });
});
