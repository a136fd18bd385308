// A certificate's facts about its bearer. Node joins all names of it into one text, and puts a name into quotes that could pose as
// several there: such a one is no name of ours. The library that makes certificates could read them too, but every command
// would then load it, for a sixth of the time that a short one takes.
//
// The chain, the times and the usage have been checked by TLS before; here is what TLS does not know about.
import { X509Certificate } from "node:crypto";
import type { Identity } from "./identity.ts";
import { parseIdentityUri } from "./identity.ts";

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

/** One of the names, as Node writes those of our kinds: without quotes, backslashes and commas. */
const NAME = /^(URI|DNS|IP Address):([^"\\,]+)$/;
/** The object identifier of a list of names, as it stands in DER. */
const ALTERNATIVE_NAMES = Buffer.from("0603551d11", "hex");
/** Object identifiers of what a certificate may be used for. */
const SERVER_AUTH = "1.3.6.1.5.5.7.3.1";
const CLIENT_AUTH = "1.3.6.1.5.5.7.3.2";

/** Reads the identity of a certificate in DER. Total. */
export function readCertificate(der: Uint8Array): CertificateReading {
  try {
    return readParsed(new X509Certificate(der));
  } catch {
    return { kind: "refused", why: "it cannot be parsed" };
  }
}

/** The same for the first certificate of a PEM text. */
export function readCertificatePem(pem: string): CertificateReading {
  let certificate: X509Certificate;
  try {
    certificate = new X509Certificate(pem);
  } catch {
    return { kind: "refused", why: "it is not a certificate" };
  }
  return readCertificate(certificate.raw);
}

function readParsed(certificate: X509Certificate): CertificateReading {
  const { raw, subjectAltName, keyUsage: usages, validFromDate, validToDate } = certificate;
  // Node reads the first list, and others may read another.
  const hasTwoLists = raw.indexOf(ALTERNATIVE_NAMES) !== raw.lastIndexOf(ALTERNATIVE_NAMES);
  if (subjectAltName === undefined || hasTwoLists)
    return { kind: "refused", why: "it has not exactly one list of names" };
  const names = subjectAltName.split(", ").map((name) => NAME.exec(name));
  const [uri, ...moreUris] = names.filter((name) => name?.[1] === "URI");
  if (uri === undefined || moreUris.length > 0)
    return { kind: "refused", why: "it has not exactly one URI name" };
  const identity = parseIdentityUri(uri?.[2] ?? "");
  if (identity === undefined) return { kind: "refused", why: "its URI name is no identity of rollout" };
  const others = names.filter((name) => name !== uri);
  const isCoordinator = identity.role === "coordinator";
  if (others.some((name) => name === null || !isCoordinator))
    return { kind: "refused", why: "it has names beside its identity" };
  // The types promise a list; there is none without the extension.
  if ((usages as string[] | undefined)?.includes(isCoordinator ? SERVER_AUTH : CLIENT_AUTH) !== true)
    return { kind: "refused", why: `it may not be used as a ${isCoordinator ? "server" : "client"}` };
  return {
    kind: "identified",
    facts: {
      identity,
      hosts: others.map((name) => hostOf(name?.[2] ?? "")),
      notBeforeMs: validFromDate.getTime(),
      notAfterMs: validToDate.getTime(),
    },
  };
}

/** As people write it: Node writes all groups of an address of version 6, and in capitals. */
function hostOf(name: string): string {
  return name.includes(":") ? new URL(`http://[${name}]`).hostname.slice(1, -1) : name;
}
