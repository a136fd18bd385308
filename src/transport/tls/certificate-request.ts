// Both ends of asking for a worker's certificate: the worker makes a key that never leaves it and a request that proves
// that it has it; the coordinator looks at the request and believes nothing in it but the public key.
import { createPrivateKey, createPublicKey, webcrypto } from "node:crypto";
import { ECDSA_P256, makeKeyPem, publicKeyDer } from "./certificate-making.ts";
import { Pkcs10CertificateRequest, Pkcs10CertificateRequestGenerator } from "./x509.ts";

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
