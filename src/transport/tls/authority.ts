// The dev CA: made at the coordinator's first boot, read at later ones. Only the coordinator and `rollout ca issue` open
// it; nothing else ever reads the key.
//
// Two files are one thing: a key without its certificate, or a certificate without its key, is refused and never completed
// by guessing, because every host trusts the certificate that it was given.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { sleep } from "../../base/clock.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import {
  isP256,
  makeAuthorityPem,
  makeCertificate,
  makeKeyPem,
  pemBlock,
  publicKeyDer,
} from "./certificate-making.ts";
import { readCertificateRequest } from "./certificate-request.ts";
import type { ValidityRange } from "./certificate-making.ts";
import {
  createFile,
  demandSecret,
  invalid,
  isCertificate,
  keyMismatch,
  makePrivateDirectory,
  PUBLIC_MODE,
  readIfThere,
  readThere,
  SECRET_MODE,
} from "./credential-files.ts";
import type { FileNaming } from "./credential-files.ts";
import type { Credentials, Identity } from "./identity.ts";
import { LIFETIMES, lifetimeMsOf } from "./lifetimes.ts";
import type { Lifetimes } from "./lifetimes.ts";

/** How long a process waits for another one that is just making the CA, before it calls the state half-written. */
const FIRST_BOOT_WAIT_MS = 1_000;
const FIRST_BOOT_POLL_MS = 20;

export interface AuthorityOptions {
  readonly tlsDir: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly lifetimes?: Lifetimes;
}

export interface OpenedAuthority {
  readonly authority: Authority;
  /** Whether this call made it: the caller says so to a person. */
  readonly created: boolean;
  readonly caFile: string;
}

export interface IssueRequest {
  readonly identity: Identity;
  /** The bearer's private key (PEM); a fresh one is made when it is absent. */
  readonly keyPem?: string;
  /** DNS names and IP addresses, for a coordinator only. */
  readonly hosts?: readonly string[];
  /** Default: what the table says for the role. */
  readonly lifetimeMs?: number;
}

export type SigningOutcome =
  | {
      readonly kind: "signed";
      /** DER. */
      readonly certificate: Uint8Array;
      /** From now on: the bearer renews by it without a true wall clock. */
      readonly validForMs: number;
    }
  /** `reason` is for a person. */
  | { readonly kind: "refused"; readonly reason: string };

/** Opens the CA of this directory, and makes it when neither of its files is there. Fails with a tls_… row. */
export async function openAuthority(options: AuthorityOptions): Promise<OpenedAuthority> {
  const { clock, random, lifetimes = LIFETIMES } = options;
  const { certificate, key } = namings(options.tlsDir, RESTORE);
  await makePrivateDirectory(options.tlsDir);
  const created = await createIfAbsent(certificate, key, clock, random, lifetimes);
  if (!created) await waitForBoth(certificate, key, clock);
  return { authority: await readAuthority(certificate, key, options), created, caFile: certificate.file };
}

/** SHA-256 of the CA's certificate in this directory, in hexadecimal; undefined when there is none. Fails with a tls_… row. */
export async function authorityFingerprint(tlsDir: string): Promise<string | undefined> {
  const { certificate } = namings(tlsDir, RESTORE);
  const pem = await readIfThere(certificate);
  if (pem === undefined) return undefined;
  if (!isCertificate(pem)) throw invalid(certificate, "it is not a certificate");
  return fingerprintOf(pem);
}

/** SHA-256 of a certificate, in hexadecimal. */
export function fingerprintOf(certificatePem: string): string {
  return new X509Certificate(certificatePem).fingerprint256.replaceAll(":", "").toLowerCase();
}

/** Takes back the CA that `openAuthority` has just made, and that nobody has used. */
export async function removeAuthority(tlsDir: string): Promise<void> {
  const { certificate, key } = namings(tlsDir, RESTORE);
  await rm(key.file, { force: true });
  await rm(certificate.file, { force: true });
}

/** Opens the CA of this directory and never makes one. Fails with a tls_… row. */
export async function openExistingAuthority(options: AuthorityOptions): Promise<Authority> {
  const found = namings(options.tlsDir, RESTORE);
  const isHere = (await readIfThere(found.certificate)) ?? (await readIfThere(found.key));
  const { certificate, key } = isHere === undefined ? namings(options.tlsDir, GO_THERE) : found;
  return readAuthority(certificate, key, options);
}

async function readAuthority(
  certificate: FileNaming,
  key: FileNaming,
  { clock, random, lifetimes = LIFETIMES }: AuthorityOptions,
): Promise<Authority> {
  const caPem = await readThere(certificate);
  const keyPem = await readThere(key);
  await demandSecret(key.file);
  if (!isCertificate(caPem)) throw invalid(certificate, "it is not a certificate");
  const mismatch = keyMismatch(caPem, keyPem);
  if (mismatch !== undefined) throw invalid(key, mismatch);
  if (!isP256(createPrivateKey(keyPem))) throw invalid(key, "it is not an ECDSA key on P-256");
  if (!new X509Certificate(caPem).ca) throw invalid(certificate, "it is not a CA's certificate");
  return new Authority({ certificatePem: caPem, keyPem, clock, random, lifetimes });
}

const RESTORE =
  "restore both ca.pem and ca.key.pem, or remove both to make a new CA that every host has to be given";
const GO_THERE = "run this on the coordinator's machine, or make a CA with `rollout init`";

function namings(tlsDir: string, advice: string): { certificate: FileNaming; key: FileNaming } {
  return {
    certificate: { file: join(tlsDir, "ca.pem"), what: "the CA's certificate", advice },
    key: { file: join(tlsDir, "ca.key.pem"), what: "the CA's key", advice },
  };
}

/** The key's file decides who makes the CA: it is linked into place by one process only. */
async function createIfAbsent(
  certificate: FileNaming,
  key: FileNaming,
  clock: Clock,
  random: Random,
  lifetimes: Lifetimes,
): Promise<boolean> {
  const found = [await readIfThere(certificate), await readIfThere(key)];
  if (found.some((text) => text !== undefined)) return false;
  const keyPem = await makeKeyPem();
  const validity = validityFrom(clock, lifetimes, lifetimes.authorityMs);
  const caPem = makeAuthorityPem(keyPem, validity, random);
  if (!(await createFile(key.file, keyPem, SECRET_MODE, random))) return false;
  if (await createFile(certificate.file, caPem, PUBLIC_MODE, random)) return true;
  throw invalid(certificate, "it appeared while the CA was being made");
}

/** Between the two links of another process's first boot, one file is there and the other is not yet. */
async function waitForBoth(certificate: FileNaming, key: FileNaming, clock: Clock): Promise<void> {
  const startedMs = clock.monotonicMs();
  while (clock.monotonicMs() - startedMs < FIRST_BOOT_WAIT_MS) {
    const isOneThere = (await readIfThere(certificate)) !== undefined;
    const isOtherThere = (await readIfThere(key)) !== undefined;
    if (isOneThere === isOtherThere) return;
    await sleep(clock, FIRST_BOOT_POLL_MS);
  }
}

function validityFrom(clock: Clock, lifetimes: Lifetimes, lifetimeMs: number): ValidityRange {
  const nowMs = clock.wallMs();
  return { notBeforeMs: nowMs - lifetimes.backdateMs, notAfterMs: nowMs + lifetimeMs };
}

interface AuthorityParts {
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly lifetimes: Lifetimes;
}

/** Signs. Holds the CA's key, so hand it to nobody who does not have to sign. */
export class Authority {
  readonly #parts: AuthorityParts;

  constructor(parts: AuthorityParts) {
    this.#parts = parts;
  }

  /** The CA's certificate, which every peer has to be given. */
  get certificatePem(): string {
    return this.#parts.certificatePem;
  }

  get lifetimes(): Lifetimes {
    return this.#parts.lifetimes;
  }

  /** Whether this certificate (PEM) bears the signature of this CA. False for what is no certificate. */
  hasSigned(pem: string): boolean {
    try {
      const issuer = new X509Certificate(this.certificatePem);
      return new X509Certificate(pem).verify(issuer.publicKey);
    } catch {
      return false;
    }
  }

  /** Credentials for a peer, with its private key. */
  async issue(request: IssueRequest): Promise<Credentials> {
    const hosts = request.hosts ?? [];
    assert(
      hosts.length === 0 || request.identity.role === "coordinator",
      "only a coordinator has host names",
    );
    const keyPem = request.keyPem ?? (await makeKeyPem());
    const certificate = await this.#sign(request.identity, publicKeyDer(keyPem), hosts, request.lifetimeMs);
    return { certificatePem: pemBlock("CERTIFICATE", certificate), keyPem, caPem: this.certificatePem };
  }

  /**
   * A worker's certificate for the public key of a PKCS #10 request. Nothing else in the request is believed: who may ask for
   * which worker is the caller's to decide before.
   */
  async signWorkerRequest(csr: Uint8Array, runId: RunId, workerId: WorkerId): Promise<SigningOutcome> {
    const request = await readCertificateRequest(csr);
    if (request.kind === "refused") return request;
    const identity: Identity = { runId, role: "worker", id: workerId };
    const certificate = await this.#sign(identity, request.publicKey, [], undefined);
    return { kind: "signed", certificate, validForMs: lifetimeMsOf(this.lifetimes, "worker") };
  }

  async #sign(
    identity: Identity,
    publicKey: Uint8Array,
    hosts: readonly string[],
    lifetimeMs: number | undefined,
  ): Promise<Uint8Array> {
    const { clock, lifetimes, random } = this.#parts;
    const validity = validityFrom(clock, lifetimes, lifetimeMs ?? lifetimeMsOf(lifetimes, identity.role));
    return makeCertificate(this.#parts, { identity, publicKey, validity, hosts }, random);
  }
}
