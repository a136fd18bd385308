// Requests for certificates that other programs have made: the only door to the certificate library.
import { webcrypto } from "node:crypto";
// Before the library, which does not load without it.
import "./metadata-reflection.ts";
import { Pkcs10CertificateRequest } from "@peculiar/x509";

export interface ReadRequest {
  /** DER (SubjectPublicKeyInfo). */
  readonly publicKey: Uint8Array;
  readonly isSignedByIt: () => boolean | Promise<boolean>;
}

/** Throws whatever the library throws on one that cannot be parsed. */
export function readForeignRequest(csr: Uint8Array): ReadRequest {
  const request = new Pkcs10CertificateRequest(new Uint8Array(csr));
  return {
    publicKey: new Uint8Array(request.publicKey.rawData),
    isSignedByIt: () => request.verify(webcrypto),
  };
}
