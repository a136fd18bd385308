// What a certificate says about its bearer, read from its DER and from nothing else: Node's `subjectaltname` is all names
// joined into one string, in which one name can pose as several.
//
// The chain, the times and the usage have been checked by TLS before; here is what TLS does not know about.
import { X509Certificate as NodeCertificate } from "node:crypto";
import type { Identity } from "./identity.ts";
import { parseIdentityUri } from "./identity.ts";
import {
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
} from "./x509.ts";

export interface CertificateFacts {
  readonly identity: Identity;
  /** DNS names and IP addresses beside the URI; empty unless the role is coordinator. */
  readonly hosts: readonly string[];
  /** Milliseconds since 1970. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

export type CertificateReading =
  | { readonly kind: "identified"; readonly facts: CertificateFacts }
  /** Not a certificate of ours. `why` is for a person. */
  | { readonly kind: "refused"; readonly why: string };

/** Reads the identity of a certificate in DER. Total. */
export function readCertificate(der: Uint8Array): CertificateReading {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(new Uint8Array(der));
    return readParsed(certificate);
  } catch {
    return { kind: "refused", why: "it cannot be parsed" };
  }
}

/** The same for the first certificate of a PEM text. */
export function readCertificatePem(pem: string): CertificateReading {
  let der: Uint8Array;
  try {
    der = new NodeCertificate(pem).raw;
  } catch {
    return { kind: "refused", why: "it is not a certificate" };
  }
  return readCertificate(der);
}

function readParsed(certificate: X509Certificate): CertificateReading {
  const alternatives = certificate.getExtensions(SubjectAlternativeNameExtension);
  const names = alternatives[0]?.names.items ?? [];
  if (alternatives.length !== 1) return { kind: "refused", why: "it has not exactly one list of names" };
  const uris = names.filter((name) => name.type === "url");
  const [uri] = uris;
  if (uri === undefined || uris.length !== 1)
    return { kind: "refused", why: "it has not exactly one URI name" };
  const identity = parseIdentityUri(uri.value);
  if (identity === undefined) return { kind: "refused", why: "its URI name is no identity of rollout" };
  const others = names.filter((name) => name !== uri);
  const isCoordinator = identity.role === "coordinator";
  if (others.some((name) => !isCoordinator || (name.type !== "dns" && name.type !== "ip"))) {
    return { kind: "refused", why: "it has names beside its identity" };
  }
  const needed = isCoordinator ? ExtendedKeyUsage.serverAuth : ExtendedKeyUsage.clientAuth;
  const usages = certificate.getExtensions(ExtendedKeyUsageExtension);
  if (usages.length !== 1 || usages[0]?.usages.includes(needed) !== true) {
    return { kind: "refused", why: `it may not be used as a ${isCoordinator ? "server" : "client"}` };
  }
  return {
    kind: "identified",
    facts: {
      identity,
      hosts: others.map((name) => name.value),
      notBeforeMs: certificate.notBefore.getTime(),
      notAfterMs: certificate.notAfter.getTime(),
    },
  };
}
