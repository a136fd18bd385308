// Certificates and keys made from scratch: ECDSA on P-256, which every TLS 1.3 peer speaks and which is fast to sign.
// Everything a certificate may be used for is said in it: the CA signs certificates and nothing else, each role connects or
// listens, never both. And both ends of asking for a worker's: the worker makes a key that never leaves it and a request that proves
// that it has it; the coordinator looks at the request and believes nothing in it but the public key.
//
// The only door to the certificate library.
import { createPrivateKey, createPublicKey, webcrypto } from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIP } from "node:net";
import { calendarDate } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import type { Identity } from "./identity.ts";
import { describeIdentity, identityUri } from "./identity.ts";
// Before the library, which does not load without it.
import "./metadata-reflection.ts";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";

/** @internal */
export const ECDSA_P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const AUTHORITY_NAME = "CN=rollout dev CA";
const SERIAL_BYTES = 16;

export interface ValidityRange {
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** A fresh private key, PEM (PKCS #8). */
export async function makeKeyPem(): Promise<string> {
  const pair = await webcrypto.subtle.generateKey(ECDSA_P256, true, ["sign", "verify"]);
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", pair.privateKey);
  return pemBlock("PRIVATE KEY", new Uint8Array(pkcs8));
}

/** The public half of a private key, DER (SubjectPublicKeyInfo). */
export function publicKeyDer(keyPem: string): Uint8Array {
  return createPublicKey(createPrivateKey(keyPem)).export({ type: "spki", format: "der" });
}

/** Whether this private key can sign as a dev CA: the policy is P-256 only. */
export function isP256(key: KeyObject): boolean {
  return key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
}

/** The self-signed certificate of a new authority, PEM. It can sign certificates of peers, not of other authorities. */
export async function makeAuthorityPem(
  keyPem: string,
  validity: ValidityRange,
  random: Random,
): Promise<string> {
  const signingKey = await importSigningKey(keyPem);
  const publicKey = new PublicKey(toBuffer(publicKeyDer(keyPem)));
  const certificate = await X509CertificateGenerator.create(
    {
      ...serialAndTimes(validity, random),
      subject: AUTHORITY_NAME,
      issuer: AUTHORITY_NAME,
      publicKey,
      signingKey,
      signingAlgorithm: ECDSA_P256,
      extensions: [
        new BasicConstraintsExtension(true, 0, true),
        new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
        await SubjectKeyIdentifierExtension.create(publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return pemBlock("CERTIFICATE", new Uint8Array(certificate.rawData));
}

export interface CertificateSpec {
  readonly identity: Identity;
  /** DER (SubjectPublicKeyInfo). */
  readonly publicKey: Uint8Array;
  readonly validity: ValidityRange;
  /** DNS names and IP addresses; only a coordinator's certificate may have any. */
  readonly hosts: readonly string[];
}

/** A certificate for a peer, DER, signed by the authority whose certificate and key are given. */
export async function makeCertificate(
  authority: { readonly certificatePem: string; readonly keyPem: string },
  spec: CertificateSpec,
  random: Random,
): Promise<Uint8Array> {
  const issuer = new X509Certificate(authority.certificatePem);
  const publicKey = new PublicKey(toBuffer(spec.publicKey));
  // Coordinators call each other.
  const usages = [
    ...(spec.identity.role === "coordinator" ? [ExtendedKeyUsage.serverAuth] : []),
    ExtendedKeyUsage.clientAuth,
  ];
  const certificate = await X509CertificateGenerator.create(
    {
      ...serialAndTimes(spec.validity, random),
      subject: `CN=rollout ${describeIdentity(spec.identity)}`,
      issuer: issuer.subjectName,
      publicKey,
      signingKey: await importSigningKey(authority.keyPem),
      signingAlgorithm: ECDSA_P256,
      extensions: [
        new BasicConstraintsExtension(false, undefined, true),
        new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
        new ExtendedKeyUsageExtension(usages, true),
        new SubjectAlternativeNameExtension([
          { type: "url", value: identityUri(spec.identity) },
          ...spec.hosts.map((host) => ({ type: isIP(host) === 0 ? "dns" : "ip", value: host }) as const),
        ]),
        await AuthorityKeyIdentifierExtension.create(issuer.publicKey, false, webcrypto),
        await SubjectKeyIdentifierExtension.create(publicKey, false, webcrypto),
      ],
    },
    webcrypto,
  );
  return new Uint8Array(certificate.rawData);
}

/** A PEM block of 64 characters a line, with its final line break. */
export function pemBlock(label: "CERTIFICATE" | "PRIVATE KEY", der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

async function importSigningKey(keyPem: string): Promise<webcrypto.CryptoKey> {
  const pkcs8 = createPrivateKey(keyPem).export({ type: "pkcs8", format: "der" });
  return webcrypto.subtle.importKey("pkcs8", toBuffer(pkcs8), ECDSA_P256, false, ["sign"]);
}

function serialAndTimes(
  validity: ValidityRange,
  random: Random,
): { serialNumber: string; notBefore: Date; notAfter: Date } {
  const serial = random.bytes(SERIAL_BYTES);
  // A serial number is a positive integer without leading zeros, so its first byte is 0x40 to 0x7f.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  return {
    serialNumber: Buffer.from(serial).toString("hex"),
    notBefore: calendarDate(validity.notBeforeMs),
    notAfter: calendarDate(validity.notAfterMs),
  };
}

/** A copy in memory of its own: a Buffer may be a view into a shared pool. */
function toBuffer(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return new Uint8Array(bytes);
}

/** A request with an RSA key of 4,096 bits is under 2 KiB; nothing longer is parsed. */
const REQUEST_MAX_BYTES = 8 * 1_024;
const RSA_MIN_BITS = 2_048;
/** Longer keys make every handshake expensive for the coordinator. */
const RSA_MAX_BITS = 4_096;
const CURVES: ReadonlySet<string> = new Set(["prime256v1", "secp384r1"]);

export interface CertificateRequest {
  /** PKCS #10, DER. */
  readonly csr: Uint8Array;
  /** The private key that belongs to it, PEM. */
  readonly keyPem: string;
}

/** A fresh key and a request for a certificate over it. */
export async function makeCertificateRequest(): Promise<CertificateRequest> {
  const keyPem = await makeKeyPem();
  const pkcs8 = createPrivateKey(keyPem).export({ type: "pkcs8", format: "der" });
  const [privateKey, publicKey] = await Promise.all([
    webcrypto.subtle.importKey("pkcs8", new Uint8Array(pkcs8), ECDSA_P256, false, ["sign"]),
    webcrypto.subtle.importKey("spki", new Uint8Array(publicKeyDer(keyPem)), ECDSA_P256, true, ["verify"]),
  ]);
  const request = await Pkcs10CertificateRequestGenerator.create(
    { name: "CN=rollout worker", keys: { privateKey, publicKey }, signingAlgorithm: ECDSA_P256 },
    webcrypto,
  );
  return { csr: new Uint8Array(request.rawData), keyPem };
}

export type RequestReading =
  | { readonly kind: "accepted"; /** DER (SubjectPublicKeyInfo). */ readonly publicKey: Uint8Array }
  /** `reason` is for a person. */
  | { readonly kind: "refused"; readonly reason: string };

/** Takes the public key out of a request, if the request is signed by it and the key is strong enough. Total. */
export async function readCertificateRequest(csr: Uint8Array): Promise<RequestReading> {
  if (csr.length > REQUEST_MAX_BYTES) {
    return { kind: "refused", reason: `the request is longer than ${REQUEST_MAX_BYTES} bytes` };
  }
  try {
    const request = new Pkcs10CertificateRequest(new Uint8Array(csr));
    const publicKey = new Uint8Array(request.publicKey.rawData);
    const weakness = weaknessOf(publicKey);
    if (weakness !== undefined) return { kind: "refused", reason: weakness };
    const signedByIt = await request.verify(webcrypto);
    return signedByIt
      ? { kind: "accepted", publicKey }
      : { kind: "refused", reason: "the request is not signed by its own key" };
  } catch {
    return { kind: "refused", reason: "the request cannot be parsed" };
  }
}

/** Why this public key is not taken, or undefined. */
function weaknessOf(publicKey: Uint8Array): string | undefined {
  const key = createPublicKey({ key: Buffer.from(publicKey), format: "der", type: "spki" });
  const details = key.asymmetricKeyDetails;
  switch (key.asymmetricKeyType) {
    case "ed25519":
      return undefined;
    case "ec":
      return CURVES.has(details?.namedCurve ?? "") ? undefined : "its curve is neither P-256 nor P-384";
    case "rsa": {
      const bits = details?.modulusLength ?? 0;
      const isInRange = bits >= RSA_MIN_BITS && bits <= RSA_MAX_BITS;
      return isInRange ? undefined : `its RSA key is not of ${RSA_MIN_BITS} to ${RSA_MAX_BITS} bits`;
    }
    default:
      return "its key is neither ECDSA, Ed25519 nor RSA";
  }
}
