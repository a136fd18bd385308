// Both ends of asking for a worker's certificate: the worker makes a key that never leaves it and a request that proves that it has it; the
// coordinator looks at the request and believes nothing in it but the public key.
import { createPublicKey, verify } from "node:crypto";
import { ECDSA_WITH_SHA256, makeKeyPem, publicKeyDer, signed } from "./certificate-making.ts";
import { BIT_STRING, commonName, derOf, INTEGER, sequence } from "./der.ts";
import type { ReadRequest } from "./foreign-request.ts";

const WORKER_NAME = "rollout worker";
/** Attributes, of which there are none. */
const ATTRIBUTES = 0xa0;
/** Where the part that is signed begins, in a request that is made here. */
const OWN_CONTENT_AT = 3;
/** Between that part and the signature: how it is signed, and the head of the signature. */
const OWN_SIGNATURE_AFTER = 15;
const P256_KEY_BYTES = 91;

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
  return { csr: signed(requestFor(publicKeyDer(keyPem)), keyPem), keyPem };
}

/** The part of a request that is signed. */
function requestFor(publicKey: Uint8Array): Buffer {
  return sequence(derOf(INTEGER, Buffer.of(0)), commonName(WORKER_NAME), publicKey, derOf(ATTRIBUTES));
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
    const { publicKey, isSignedByIt } = readOwnRequest(Buffer.from(csr)) ?? (await readForeign(csr));
    const weakness = weaknessOf(publicKey);
    if (weakness !== undefined) return { kind: "refused", reason: weakness };
    return (await isSignedByIt())
      ? { kind: "accepted", publicKey }
      : { kind: "refused", reason: "the request is not signed by its own key" };
  } catch {
    return { kind: "refused", reason: "the request cannot be parsed" };
  }
}

/**
 * Undefined for one that differs in a byte from what `makeCertificateRequest` makes for the key that stands where such a request has its
 * key: nothing in it is taken apart.
 */
function readOwnRequest(csr: Buffer): ReadRequest | undefined {
  const keyAt = OWN_CONTENT_AT + OWN_KEY_AFTER;
  const publicKey = csr.subarray(keyAt, keyAt + P256_KEY_BYTES);
  const content = requestFor(publicKey);
  const signature = csr.subarray(OWN_CONTENT_AT + content.length + OWN_SIGNATURE_AFTER);
  const whole = sequence(content, ECDSA_WITH_SHA256, derOf(BIT_STRING, Buffer.of(0), signature));
  if (!whole.equals(csr)) return undefined;
  const key = createPublicKey({ key: publicKey, format: "der", type: "spki" });
  return { publicKey, isSignedByIt: () => verify("sha256", content, key, signature) };
}

/** Where the key begins in the part that is signed. */
const OWN_KEY_AFTER = requestFor(Buffer.alloc(P256_KEY_BYTES, 0xff)).indexOf(0xff);

async function readForeign(csr: Uint8Array): Promise<ReadRequest> {
  const { readForeignRequest } = await import("./foreign-request.ts");
  return readForeignRequest(csr);
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
