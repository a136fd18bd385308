// Certificates as they are written here, beside those that the certificate library writes of the same facts: the same bytes up to the
// signature, which Node checks.
import { expect } from "chai";
import { createPublicKey, generateKeyPairSync, webcrypto, X509Certificate } from "node:crypto";
// Before the library, which does not load without it.
import "../../../../src/transport/tls/metadata-reflection.ts";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequestGenerator,
  PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509";
import type { Extension } from "@peculiar/x509";
import { calendarDate } from "../../../../src/base/clock.ts";
import { systemRandom } from "../../../../src/base/random.ts";
import {
  makeAuthorityPem,
  makeCertificate,
  makeKeyPem,
  publicKeyDer,
} from "../../../../src/transport/tls/certificate-making.ts";
import { makeCertificateRequest } from "../../../../src/transport/tls/certificate-request.ts";
import { derValues } from "../../../../src/transport/tls/der.ts";
import { describeIdentity, identityUri } from "../../../../src/transport/tls/identity.ts";
import type { Role } from "../../../../src/transport/tls/identity.ts";
import { newIdentity, newRunId } from "../../../support/certificates.ts";

const ECDSA_P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const NOW_MS = Date.UTC(2026, 10, 9, 4, 5, 6, 789);
const VALIDITIES = [
  { notBeforeMs: NOW_MS, notAfterMs: NOW_MS + 86_400_000 },
  { notBeforeMs: Date.UTC(2049, 11, 31, 23, 59, 59), notAfterMs: Date.UTC(2050, 0, 1) },
  { notBeforeMs: NOW_MS, notAfterMs: Date.UTC(9999, 11, 31, 23, 59, 59) },
];
const HOSTS = ["node-1.example.com", "127.0.0.1", "::1", "fe80::1:2", "2001:db8:1:2:3:4:5:6"];

/** The part of a certificate or a request that is signed. */
function signedPart(der: Uint8Array): string {
  const [whole] = derValues(Buffer.from(der));
  const [part] = derValues(whole?.content ?? Buffer.alloc(0));
  return part?.whole.toString("hex") ?? "";
}

async function byLibrary(
  { serialNumber, publicKey, validFromDate, validToDate }: X509Certificate,
  names: { readonly subject: string; readonly issuer: string },
  extensions: readonly Extension[],
): Promise<string> {
  const signing = await webcrypto.subtle.generateKey(ECDSA_P256, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.create(
    {
      ...names,
      serialNumber,
      notBefore: validFromDate,
      notAfter: validToDate,
      publicKey: new PublicKey(new Uint8Array(publicKey.export({ type: "spki", format: "der" }))),
      signingKey: signing.privateKey,
      signingAlgorithm: ECDSA_P256,
      extensions: [...extensions],
    },
    webcrypto,
  );
  return signedPart(new Uint8Array(certificate.rawData));
}

describe("a certificate that is made here", () => {
  const libraryKey = (spki: Uint8Array): PublicKey => new PublicKey(new Uint8Array(spki));

  it("has the bytes that the library writes: an authority's", async () => {
    for (const validity of VALIDITIES) {
      const keyPem = await makeKeyPem();
      const made = new X509Certificate(makeAuthorityPem(keyPem, validity, systemRandom));
      const expected = await byLibrary(made, { subject: "CN=rollout dev CA", issuer: "CN=rollout dev CA" }, [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(libraryKey(publicKeyDer(keyPem)), false, webcrypto),
      ]);
      expect(signedPart(made.raw)).to.equal(expected);
      expect([made.ca, made.verify(createPublicKey(keyPem))]).to.deep.equal([true, true]);
      const times = [made.validFromDate, made.validToDate].map((date) => date.getTime());
      const { notBeforeMs, notAfterMs } = validity;
      expect(times).to.deep.equal([notBeforeMs, notAfterMs].map((ms) => ms - (ms % 1_000)));
    }
  });

  for (const role of ["coordinator", "worker", "operator", "enrolment"] satisfies Role[])
    it(`has the bytes that the library writes: that of one who is ${role}`, async () => {
      const keyPem = await makeKeyPem();
      const [validity] = VALIDITIES as [(typeof VALIDITIES)[number]];
      const certificatePem = makeAuthorityPem(keyPem, validity, systemRandom);
      const keys = [
        generateKeyPairSync("ec", { namedCurve: "P-256" }),
        generateKeyPairSync("ec", { namedCurve: "P-384" }),
        generateKeyPairSync("rsa", { modulusLength: 2_048 }),
        generateKeyPairSync("ed25519"),
      ];
      for (const { publicKey: key } of keys) {
        const publicKey = key.export({ type: "spki", format: "der" });
        const identity = newIdentity(newRunId(), role);
        const hosts = role === "coordinator" ? HOSTS : [];
        const spec = { identity, publicKey, validity, hosts };
        const made = new X509Certificate(makeCertificate({ certificatePem, keyPem }, spec, systemRandom));
        const usages = role === "coordinator" ? [ExtendedKeyUsage.serverAuth] : [];
        const names = { subject: `CN=rollout ${describeIdentity(identity)}`, issuer: "CN=rollout dev CA" };
        const expected = await byLibrary(made, names, [
          new BasicConstraintsExtension(false, undefined, true),
          new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
          new ExtendedKeyUsageExtension([...usages, ExtendedKeyUsage.clientAuth], true),
          new SubjectAlternativeNameExtension([
            { type: "url", value: identityUri(identity) },
            ...hosts.map((value) => ({ type: /^[\d:.a-f]+$/.test(value) ? "ip" : "dns", value }) as const),
          ]),
          await AuthorityKeyIdentifierExtension.create(libraryKey(publicKeyDer(keyPem)), false, webcrypto),
          await SubjectKeyIdentifierExtension.create(libraryKey(publicKey), false, webcrypto),
        ]);
        expect(signedPart(made.raw)).to.equal(expected);
        expect(made.verify(createPublicKey(keyPem))).to.equal(true);
      }
    });

  it("has addresses in the form of the fourth version and of a zone as what they are", async () => {
    const keyPem = await makeKeyPem();
    const [validity] = VALIDITIES as [(typeof VALIDITIES)[number]];
    const authority = { certificatePem: makeAuthorityPem(keyPem, validity, systemRandom), keyPem };
    const identity = newIdentity(newRunId(), "coordinator");
    const spec = {
      identity,
      publicKey: publicKeyDer(keyPem),
      validity,
      hosts: ["::ffff:10.0.0.1", "fe80::2%eth0"],
    };
    const made = new X509Certificate(makeCertificate(authority, spec, systemRandom));
    expect(made.checkIP("::ffff:10.0.0.1")).to.equal("::ffff:10.0.0.1");
    expect(made.subjectAltName).to.match(/, IP Address:0:0:0:0:0:FFFF:A00:1, IP Address:FE80:0:0:0:0:0:0:2$/);
  });

  it("names its issuer as that one names itself, whatever it is called", async () => {
    const pair = await webcrypto.subtle.generateKey(ECDSA_P256, true, ["sign", "verify"]);
    const own = await X509CertificateGenerator.createSelfSigned(
      {
        ...{
          serialNumber: "01",
          name: "C=DE, O=Größe & Söhne, CN=CA 7",
          keys: pair,
          signingAlgorithm: ECDSA_P256,
        },
        ...{ notBefore: calendarDate(NOW_MS), notAfter: calendarDate(NOW_MS + 1_000_000) },
        extensions: [new BasicConstraintsExtension(true, undefined, true)],
      },
      webcrypto,
    );
    const pkcs8 = Buffer.from(await webcrypto.subtle.exportKey("pkcs8", pair.privateKey)).toString("base64");
    const keyPem = `-----BEGIN PRIVATE KEY-----\n${pkcs8}\n-----END PRIVATE KEY-----\n`;
    const publicKey = publicKeyDer(await makeKeyPem());
    const identity = newIdentity(newRunId(), "worker");
    const [validity] = VALIDITIES as [(typeof VALIDITIES)[number]];
    const spec = { identity, publicKey, validity, hosts: [] };
    const certificatePem = own.toString("pem");
    const made = new X509Certificate(makeCertificate({ certificatePem, keyPem }, spec, systemRandom));
    expect(made.checkIssued(new X509Certificate(certificatePem))).to.equal(true);
  });
});

describe("a request that is made here", () => {
  it("has the bytes that the library writes", async () => {
    const { csr, keyPem } = await makeCertificateRequest();
    const spki = new Uint8Array(publicKeyDer(keyPem));
    const publicKey = await webcrypto.subtle.importKey("spki", spki, ECDSA_P256, true, ["verify"]);
    const { privateKey } = await webcrypto.subtle.generateKey(ECDSA_P256, true, ["sign", "verify"]);
    const request = await Pkcs10CertificateRequestGenerator.create(
      { name: "CN=rollout worker", keys: { privateKey, publicKey }, signingAlgorithm: ECDSA_P256 },
      webcrypto,
    );
    expect(signedPart(csr)).to.equal(signedPart(new Uint8Array(request.rawData)));
  });
});
