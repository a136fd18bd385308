// Certificates for tests: a CA in memory, good credentials for every role, and forged certificates of every bad kind.
import { webcrypto } from "node:crypto";
import { calendarDate, systemClock } from "../../src/base/clock.ts";
import type { Clock } from "../../src/base/clock.ts";
import { newUlid } from "../../src/base/ids.ts";
import type { RunId, WorkerId } from "../../src/base/ids.ts";
import { systemRandom } from "../../src/base/random.ts";
import { Authority } from "../../src/transport/tls/authority.ts";
import { LIFETIMES } from "../../src/transport/tls/lifetimes.ts";
import { makeAuthorityPem, makeKeyPem, pemBlock } from "../../src/transport/tls/certificate-making.ts";
// Before the library, which does not load without it.
import "../../src/transport/tls/metadata-reflection.ts";
import {
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  SubjectAlternativeNameExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { identityUri } from "../../src/transport/tls/identity.ts";
import type { Credentials, Identity, Role } from "../../src/transport/tls/identity.ts";

const ECDSA_P256 = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const DAY_MS = 24 * 60 * 60 * 1_000;

const USAGES = {
  client: [[ExtendedKeyUsage.clientAuth]],
  server: [[ExtendedKeyUsage.serverAuth]],
  both: [[ExtendedKeyUsage.clientAuth, ExtendedKeyUsage.serverAuth]],
  none: [],
} as const satisfies Record<string, ExtendedKeyUsage[][]>;

export interface ForgedCertificate {
  /** The URI names, as they are: usually one. */
  readonly uris: readonly string[];
  readonly hosts?: readonly string[];
  /** URI names of a second list, behind the first. */
  readonly urisBehind?: readonly string[];
  readonly usage?: keyof typeof USAGES;
  /** Relative to now. */
  readonly notBeforeMs?: number;
  readonly notAfterMs?: number;
}

/** A run's CA in memory. All CAs made here bear the same name. */
export class TestAuthority {
  readonly authority: Authority;
  readonly #caPem: string;
  readonly #caKeyPem: string;

  private constructor(caPem: string, caKeyPem: string, clock: Clock) {
    this.#caPem = caPem;
    this.#caKeyPem = caKeyPem;
    this.authority = new Authority({
      certificatePem: caPem,
      keyPem: caKeyPem,
      clock,
      random: systemRandom,
      lifetimes: LIFETIMES,
    });
  }

  static async make(clock: Clock = systemClock): Promise<TestAuthority> {
    const keyPem = await makeKeyPem();
    const nowMs = clock.wallMs();
    const validity = { notBeforeMs: nowMs - DAY_MS, notAfterMs: nowMs + 30 * DAY_MS };
    return new TestAuthority(makeAuthorityPem(keyPem, validity, systemRandom), keyPem, clock);
  }

  /** Good credentials. */
  issue(identity: Identity, lifetimeMs?: number): Promise<Credentials> {
    return this.authority.issue({ identity, ...(lifetimeMs === undefined ? {} : { lifetimeMs }) });
  }

  /** Credentials that the product would never make, signed by this CA. */
  async forge(spec: ForgedCertificate): Promise<Credentials> {
    const pair = await webcrypto.subtle.generateKey(ECDSA_P256, true, ["sign", "verify"]);
    const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", pair.privateKey);
    const caDer = Buffer.from(this.#caKeyPem.replace(/-----[^-]+-----|\s/g, ""), "base64");
    const signingKey = await webcrypto.subtle.importKey("pkcs8", caDer, ECDSA_P256, false, ["sign"]);
    const nowMs = systemClock.wallMs();
    const urls = (uris: readonly string[] = []) => uris.map((value) => ({ type: "url", value }) as const);
    const hosts = (spec.hosts ?? []).map((value) => ({ type: "dns", value }) as const);
    const lists = [[...urls(spec.uris), ...hosts], urls(spec.urisBehind)];
    const certificate = await X509CertificateGenerator.create(
      {
        subject: "CN=forged",
        issuer: new X509Certificate(this.#caPem).subjectName,
        notBefore: calendarDate(nowMs + (spec.notBeforeMs ?? -DAY_MS)),
        notAfter: calendarDate(nowMs + (spec.notAfterMs ?? DAY_MS)),
        publicKey: pair.publicKey,
        signingKey,
        signingAlgorithm: ECDSA_P256,
        extensions: [
          new BasicConstraintsExtension(false, undefined, true),
          ...lists
            .filter((names) => names.length > 0)
            .map((names) => new SubjectAlternativeNameExtension(names)),
          ...USAGES[spec.usage ?? "client"].map((usages) => new ExtendedKeyUsageExtension(usages, true)),
        ],
      },
      webcrypto,
    );
    return {
      certificatePem: pemBlock("CERTIFICATE", new Uint8Array(certificate.rawData)),
      keyPem: pemBlock("PRIVATE KEY", new Uint8Array(pkcs8)),
      caPem: this.#caPem,
    };
  }
}

export function newRunId(): RunId {
  return newUlid<RunId>(systemClock, systemRandom);
}

export function newWorkerId(): WorkerId {
  return newUlid<WorkerId>(systemClock, systemRandom);
}

export function newIdentity(runId: RunId, role: Role): Identity {
  return { runId, role, id: newWorkerId() };
}

/** The URI of a fresh identity. */
export function newUri(runId: RunId, role: Role): string {
  return identityUri(newIdentity(runId, role));
}
