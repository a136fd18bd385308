// A certificate's facts about its bearer, read from its DER and from nothing else: Node's `subjectaltname` is all names
// joined into one string, in which one name can pose as several. The library that makes certificates could read them too,
// but every command would then load it, for a sixth of the time that a short one takes.
//
// The chain, the times and the usage have been checked by TLS before; here is what TLS does not know about.
import { X509Certificate } from "node:crypto";
import type { DerElement } from "./der.ts";
import { derContent, derElements } from "./der.ts";
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

const TAG = { oid: 0x06, octets: 0x04, sequence: 0x30, extensions: 0xa3 } as const;
/** Tags of the kinds of names. */
const NAME_TAG = { dns: 0x82, uri: 0x86, ip: 0x87 } as const;
/** Object identifiers, as their content in hexadecimal. */
const OID = {
  alternativeNames: "551d11",
  extendedUsage: "551d25",
  serverAuth: "2b06010505070301",
  clientAuth: "2b06010505070302",
} as const;
const IPV4_BYTES = 4;
const IPV6_BYTES = 16;

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
  let der: Uint8Array;
  try {
    der = new X509Certificate(pem).raw;
  } catch {
    return { kind: "refused", why: "it is not a certificate" };
  }
  return readCertificate(der);
}

function readParsed(certificate: X509Certificate): CertificateReading {
  const extensions = extensionsOf(certificate.raw);
  const alternatives = extensions.filter(({ oid }) => oid === OID.alternativeNames);
  const names = alternatives.flatMap(({ value }) => derContent(value, TAG.sequence));
  if (alternatives.length !== 1) return { kind: "refused", why: "it has not exactly one list of names" };
  const uris = names.filter(({ tag }) => tag === NAME_TAG.uri);
  const [uri] = uris;
  if (uri === undefined || uris.length !== 1)
    return { kind: "refused", why: "it has not exactly one URI name" };
  const identity = parseIdentityUri(textOf(uri));
  if (identity === undefined) return { kind: "refused", why: "its URI name is no identity of rollout" };
  const others = names.filter((name) => name !== uri);
  const isCoordinator = identity.role === "coordinator";
  if (others.some(({ tag }) => !isCoordinator || (tag !== NAME_TAG.dns && tag !== NAME_TAG.ip))) {
    return { kind: "refused", why: "it has names beside its identity" };
  }
  const needed = isCoordinator ? OID.serverAuth : OID.clientAuth;
  const usages = extensions.filter(({ oid }) => oid === OID.extendedUsage);
  const [usage] = usages;
  if (usage === undefined || usages.length !== 1 || !usesOf(usage.value).includes(needed)) {
    return { kind: "refused", why: `it may not be used as a ${isCoordinator ? "server" : "client"}` };
  }
  return {
    kind: "identified",
    facts: {
      identity,
      hosts: others.map((name) => (name.tag === NAME_TAG.ip ? addressOf(name) : textOf(name))),
      notBeforeMs: certificate.validFromDate.getTime(),
      notAfterMs: certificate.validToDate.getTime(),
    },
  };
}

interface Extension {
  readonly oid: string;
  /** DER. */
  readonly value: Uint8Array;
}

/** Throws when the certificate is not written as DER. */
function extensionsOf(der: Uint8Array): Extension[] {
  const [signed] = derContent(der, TAG.sequence);
  const parts = derElements(signed?.content ?? new Uint8Array());
  return parts
    .filter(({ tag }) => tag === TAG.extensions)
    .flatMap(({ content }) => derContent(content, TAG.sequence))
    .map((extension) => {
      const fields = derElements(extension.content);
      const [oid, value] = [fields[0], fields.at(-1)];
      if (oid?.tag !== TAG.oid || value?.tag !== TAG.octets) throw new RangeError("not an extension");
      return { oid: hexOf(oid), value: value.content };
    });
}

function usesOf(value: Uint8Array): string[] {
  return derContent(value, TAG.sequence).map(hexOf);
}

function hexOf({ content }: DerElement): string {
  return Buffer.from(content).toString("hex");
}

/** As `ascii` Node would drop the highest bit, and one name could be written in several ways. */
function textOf({ content }: DerElement): string {
  return Buffer.from(content).toString("latin1");
}

/** An address as people write it. Throws when it is of neither kind. */
function addressOf({ content }: DerElement): string {
  if (content.length === IPV4_BYTES) return content.join(".");
  if (content.length !== IPV6_BYTES) throw new RangeError("an address of neither kind");
  const groups = hexOf({ tag: NAME_TAG.ip, content }).match(/.{4}/g) ?? [];
  return new URL(`http://[${groups.join(":")}]`).hostname.slice(1, -1);
}
