// Certificates and keys made from scratch: ECDSA on P-256, which every TLS 1.3 peer speaks and which is fast to sign.
// Everything a certificate may be used for is said in it: the CA signs certificates and nothing else, each role connects or
// listens, never both.
//
// They are written here byte by byte, as the certificate library writes them: to load it takes a process three times as long as to start
// Node. It is left to requests that other programs have made (foreign-request.ts).
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPair,
  sign,
  X509Certificate,
} from "node:crypto";
import type { KeyObject } from "node:crypto";
import { isIP, isIPv4 } from "node:net";
import { promisify } from "node:util";
import { isoTime } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";
import {
  BIT_STRING,
  commonName,
  derOf,
  derValues,
  INTEGER,
  objectIdentifier,
  OCTET_STRING,
  sequence,
  time,
  TRUE,
} from "./der.ts";
import type { Identity } from "./identity.ts";
import { describeIdentity, identityUri } from "./identity.ts";

const AUTHORITY_NAME = "rollout dev CA";
const SERIAL_BYTES = 16;

/** Tags that mean what their place says. */
const [AT_0, IN_0, IN_3, DNS_NAME, URI_NAME, IP_NAME] = [0x80, 0xa0, 0xa3, 0x82, 0x86, 0x87];
/** How all that is made here is signed. */
export const ECDSA_WITH_SHA256 = sequence(objectIdentifier("1.2.840.10045.4.3.2"));
const SERVER_AUTH = objectIdentifier("1.3.6.1.5.5.7.3.1");
const CLIENT_AUTH = objectIdentifier("1.3.6.1.5.5.7.3.2");
const ID = {
  subjectKey: "2.5.29.14",
  keyUsage: "2.5.29.15",
  alternativeName: "2.5.29.17",
  basicConstraints: "2.5.29.19",
  authorityKey: "2.5.29.35",
  extendedKeyUsage: "2.5.29.37",
} as const;
/** Bit strings: how many bits of the last byte do not count, and the bytes. */
const SIGNS_CERTIFICATES = derOf(BIT_STRING, Buffer.of(1, 0x06));
const SIGNS_DIGITALLY = derOf(BIT_STRING, Buffer.of(7, 0x80));
const CRITICAL = true;

const makeKeyPair = promisify(generateKeyPair);

export interface ValidityRange {
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** A fresh private key, PEM (PKCS #8). */
export async function makeKeyPem(): Promise<string> {
  const { privateKey } = await makeKeyPair("ec", { namedCurve: "P-256" });
  return privateKey.export({ type: "pkcs8", format: "pem" }).toString();
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
export function makeAuthorityPem(keyPem: string, validity: ValidityRange, random: Random): string {
  const publicKey = publicKeyDer(keyPem);
  const name = commonName(AUTHORITY_NAME);
  const extensions = [
    extension(ID.basicConstraints, sequence(TRUE, derOf(INTEGER, Buffer.of(0))), CRITICAL),
    extension(ID.keyUsage, SIGNS_CERTIFICATES, CRITICAL),
    extension(ID.subjectKey, derOf(OCTET_STRING, keyIdentifier(publicKey))),
  ];
  const facts = { issuer: name, subject: name, publicKey, validity, extensions };
  return pemBlock("CERTIFICATE", signedCertificate(facts, keyPem, random));
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
export function makeCertificate(
  authority: { readonly certificatePem: string; readonly keyPem: string },
  { identity, publicKey, validity, hosts }: CertificateSpec,
  random: Random,
): Uint8Array {
  const issuer = new X509Certificate(authority.certificatePem);
  const issuerKey = issuer.publicKey.export({ type: "spki", format: "der" });
  // Coordinators call each other.
  const usages = [...(identity.role === "coordinator" ? [SERVER_AUTH] : []), CLIENT_AUTH];
  const uri = derOf(URI_NAME, Buffer.from(identityUri(identity), "latin1"));
  const extensions = [
    extension(ID.basicConstraints, sequence(), CRITICAL),
    extension(ID.keyUsage, SIGNS_DIGITALLY, CRITICAL),
    extension(ID.extendedKeyUsage, sequence(...usages), CRITICAL),
    extension(ID.alternativeName, sequence(uri, ...hosts.map(nameOfHost))),
    extension(ID.authorityKey, sequence(derOf(AT_0, keyIdentifier(issuerKey)))),
    extension(ID.subjectKey, derOf(OCTET_STRING, keyIdentifier(publicKey))),
  ];
  const subject = commonName(`rollout ${describeIdentity(identity)}`);
  const facts = { issuer: subjectOf(issuer.raw), subject, publicKey, validity, extensions };
  return signedCertificate(facts, authority.keyPem, random);
}

/** A PEM block of 64 characters a line, with its final line break. */
export function pemBlock(label: "CERTIFICATE" | "PRIVATE KEY", der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return [`-----BEGIN ${label}-----`, ...lines, `-----END ${label}-----`, ""].join("\n");
}

interface Facts {
  /** Names in DER. */
  readonly issuer: Uint8Array;
  readonly subject: Uint8Array;
  readonly publicKey: Uint8Array;
  readonly validity: ValidityRange;
  readonly extensions: readonly Uint8Array[];
}

function signedCertificate(facts: Facts, keyPem: string, random: Random): Buffer {
  const { issuer, subject, publicKey, validity, extensions } = facts;
  const version3 = derOf(IN_0, derOf(INTEGER, Buffer.of(2)));
  const serial = random.bytes(SERIAL_BYTES);
  // A serial number is a positive integer without leading zeros, so its first byte is 0x40 to 0x7f.
  serial[0] = ((serial[0] ?? 0) & 0x3f) | 0x40;
  const times = sequence(time(isoTime(validity.notBeforeMs)), time(isoTime(validity.notAfterMs)));
  return signed(
    sequence(
      ...[version3, derOf(INTEGER, serial), ECDSA_WITH_SHA256, issuer, times, subject, publicKey],
      derOf(IN_3, sequence(...extensions)),
    ),
    keyPem,
  );
}

/** Content with the signature of this key, as certificates and requests have it. */
export function signed(content: Buffer, keyPem: string): Buffer {
  const signature = sign("sha256", content, createPrivateKey(keyPem));
  return sequence(content, ECDSA_WITH_SHA256, derOf(BIT_STRING, Buffer.of(0), signature));
}

function extension(id: string, content: Uint8Array, isCritical = false): Buffer {
  return sequence(objectIdentifier(id), ...(isCritical ? [TRUE] : []), derOf(OCTET_STRING, content));
}

/** SHA-1 of the bits of a public key, as RFC 5280 has it: a name, which nothing trusts. */
function keyIdentifier(publicKey: Uint8Array): Buffer {
  const [info] = derValues(Buffer.from(publicKey));
  const [, bits] = derValues(info?.content ?? NOTHING);
  return createHash("sha1")
    .update(bits?.content.subarray(1) ?? NOTHING)
    .digest();
}

/** The subject's name in a certificate that Node has read, as it stands there. */
function subjectOf(certificate: Buffer): Buffer {
  const [whole] = derValues(certificate);
  const [facts] = derValues(whole?.content ?? NOTHING);
  // Version, serial number, signature, issuer and times stand before it.
  return derValues(facts?.content ?? NOTHING)[5]?.whole ?? NOTHING;
}

function nameOfHost(host: string): Buffer {
  return isIP(host) === 0
    ? derOf(DNS_NAME, Buffer.from(host, "latin1"))
    : derOf(IP_NAME, bytesOfAddress(host));
}

function bytesOfAddress(address: string): Buffer {
  if (isIPv4(address)) return Buffer.from(address.split(".").map(Number));
  // Shortened, and without a part in the form of the fourth version; a zone is of one machine and in no certificate.
  const plain = new URL(`http://[${address.replace(/%.*$/, "")}]`).hostname.slice(1, -1);
  const [before = [], after] = plain
    .split("::")
    .map((part) => part.split(":").filter((group) => group !== ""));
  const gap = 8 - before.length - (after?.length ?? 0);
  const groups = [
    ...before,
    ...Array.from({ length: after === undefined ? 0 : gap }, () => "0"),
    ...(after ?? []),
  ];
  return Buffer.from(groups.map((group) => group.padStart(4, "0")).join(""), "hex");
}

const NOTHING = Buffer.alloc(0);
