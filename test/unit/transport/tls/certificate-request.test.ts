import { expect } from "chai";
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { createPublicKey, generateKeyPairSync, webcrypto, X509Certificate } from "node:crypto";
import { parseUlid } from "../../../../src/base/ids.ts";
import type { WorkerId } from "../../../../src/base/ids.ts";
import { pemBlock, publicKeyDer } from "../../../../src/transport/tls/certificate-making.ts";
import {
  makeCertificateRequest,
  readCertificateRequest,
} from "../../../../src/transport/tls/certificate-request.ts";
// Before the library, which does not load without it.
import "../../../../src/transport/tls/metadata-reflection.ts";
import { Pkcs10CertificateRequestGenerator } from "@peculiar/x509";
import { readCertificate } from "../../../../src/transport/tls/certificate-reading.ts";
import { LIFETIMES } from "../../../../src/transport/tls/lifetimes.ts";
import { newRunId, newWorkerId, TestAuthority } from "../../../support/certificates.ts";

const SOURCES = join(import.meta.dirname, "../../../../src/transport/tls");

type KeyParams = webcrypto.EcKeyGenParams | webcrypto.RsaHashedKeyGenParams | { name: "Ed25519" };

async function requestWith(params: KeyParams, signing: { name: string; hash?: string }): Promise<Uint8Array> {
  const keys = (await webcrypto.subtle.generateKey(params, true, [
    "sign",
    "verify",
  ])) as webcrypto.CryptoKeyPair;
  const name = "CN=admin";
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name, keys, signingAlgorithm: signing },
    webcrypto,
  );
  return new Uint8Array(request.rawData);
}

const rsa = (modulusLength: number): KeyParams => ({
  name: "RSASSA-PKCS1-v1_5",
  modulusLength,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
});
const RSA_SIGNING = { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256" };

describe("a certificate request", () => {
  it("becomes a worker's certificate for its key, and nothing else of it is believed", async () => {
    const ca = await TestAuthority.make();
    const runId = newRunId();
    const workerId = newWorkerId();
    const csr = await requestWith({ name: "ECDSA", namedCurve: "P-384" }, { name: "ECDSA", hash: "SHA-384" });
    const outcome = await ca.authority.signWorkerRequest(csr, runId, workerId);
    if (outcome.kind === "refused") throw new Error(outcome.reason);
    expect(outcome.validForMs).to.equal(LIFETIMES.workerMs);
    const reading = readCertificate(outcome.certificate);
    expect(reading)
      .to.have.nested.property("facts.identity")
      .that.deep.equals({ runId, role: "worker", id: workerId });
    expect(new X509Certificate(outcome.certificate).subject).to.equal(`CN=rollout worker ${workerId}`);
  });

  it("of our own making is accepted, with its key", async () => {
    const { csr, keyPem } = await makeCertificateRequest();
    const reading = await readCertificateRequest(csr);
    if (reading.kind === "refused") throw new Error(reading.reason);
    const expected = createPublicKey(keyPem).export({ type: "spki", format: "der" });
    expect(Buffer.from(reading.publicKey).equals(expected)).to.equal(true);
  });

  for (const [what, params, signing] of [
    ["P-256", { name: "ECDSA", namedCurve: "P-256" }, { name: "ECDSA", hash: "SHA-256" }],
    ["Ed25519", { name: "Ed25519" }, { name: "Ed25519" }],
    ["RSA of 2,048 bits", rsa(2_048), RSA_SIGNING],
  ] as const) {
    it(`with ${what} is accepted`, async () => {
      expect((await readCertificateRequest(await requestWith(params, signing))).kind).to.equal("accepted");
    });
  }

  for (const [what, params, signing, reason] of [
    ["RSA of 1,024 bits", rsa(1_024), RSA_SIGNING, /RSA key is not of 2048/],
    [
      "P-521",
      { name: "ECDSA", namedCurve: "P-521" },
      { name: "ECDSA", hash: "SHA-512" },
      /neither P-256 nor P-384/,
    ],
  ] as const) {
    it(`with ${what} is refused`, async () => {
      const outcome = await readCertificateRequest(await requestWith(params, signing));
      expect(outcome).to.have.property("reason").that.matches(reason);
    });
  }

  it("with somebody else's public key in it is refused", async () => {
    const { csr } = await makeCertificateRequest();
    const other = generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey;
    const spki = Buffer.from(other.export({ type: "spki", format: "der" }));
    const own = await readCertificateRequest(csr);
    if (own.kind === "refused") throw new Error(own.reason);
    const forged = Buffer.from(csr);
    spki.copy(forged, forged.indexOf(Buffer.from(own.publicKey)));
    const outcome = await readCertificateRequest(forged);
    expect(outcome).to.have.property("reason", "the request is not signed by its own key");
  });

  it("that is none, or too long, is refused", async () => {
    const noise = new TextEncoder().encode("hello");
    expect(await readCertificateRequest(noise)).to.have.property("reason", "the request cannot be parsed");
    const long = await readCertificateRequest(new Uint8Array(10_000));
    expect(long).to.have.property("reason", "the request is longer than 8192 bytes");
  });
});

describe("a request that is made here", () => {
  // To load the library takes three times as long as to start Node, and each start of a local run makes certificates.
  it("is made, read and signed without the certificate library; another's is read with it", async () => {
    const foreign = await requestWith(
      { name: "ECDSA", namedCurve: "P-256" },
      { name: "ECDSA", hash: "SHA-256" },
    );
    const source = (name: string): string => JSON.stringify(join(SOURCES, name));
    const program = `
      import { registerHooks } from "node:module";
      let loaded = 0;
      registerHooks({ load: (url, context, next) => (url.includes("@peculiar/") && loaded++, next(url, context)) });
      const { makeCertificateRequest, readCertificateRequest } = await import(${source("certificate-request.ts")});
      const { makeAuthorityPem, makeCertificate, makeKeyPem } = await import(${source("certificate-making.ts")});
      const random = { bytes: (length) => new Uint8Array(length) };
      const validity = { notBeforeMs: 0, notAfterMs: 1e12 };
      const keyPem = await makeKeyPem();
      const certificatePem = makeAuthorityPem(keyPem, validity, random);
      const { publicKey } = await readCertificateRequest((await makeCertificateRequest()).csr);
      const identity = { runId: "r", role: "worker", id: "w" };
      makeCertificate({ certificatePem, keyPem }, { identity, publicKey, validity, hosts: [] }, random);
      const before = loaded;
      const { kind } = await readCertificateRequest(Buffer.from("${Buffer.from(foreign).toString("hex")}", "hex"));
      console.log(before, loaded > 0, kind);`;
    const { stdout } = spawnSync(process.execPath, ["--input-type=module", "-e", program], {
      encoding: "utf8",
    });
    expect(stdout).to.equal("0 true accepted\n");
  });

  it("with one byte of it changed is refused, or the byte says nothing and the key is the same", async () => {
    const { csr, keyPem } = await makeCertificateRequest();
    const publicKey = Buffer.from(publicKeyDer(keyPem));
    const accepted: number[] = [];
    for (let at = 0; at < csr.length; at++) {
      const changed = Uint8Array.from(csr);
      changed[at] = (changed[at] ?? 0) ^ 1;
      const reading = await readCertificateRequest(changed);
      if (reading.kind === "refused") continue;
      accepted.push(at);
      expect(publicKey.equals(reading.publicKey), `byte ${at}`).to.equal(true);
    }
    // The library does not look at every length.
    expect(accepted.length, `bytes ${accepted.join(", ")}`).to.be.at.most(4);
  });
});

describe("a PEM block", () => {
  it("has lines of 64 characters and ends with a line break", () => {
    const text = pemBlock("CERTIFICATE", new Uint8Array(100));
    expect(text).to.match(/^-----BEGIN CERTIFICATE-----\n(?:.{64}\n)+.{1,64}\n-----END CERTIFICATE-----\n$/);
    expect(parseUlid<WorkerId>(text)).to.equal(undefined);
  });
});
