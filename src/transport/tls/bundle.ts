// One file that lets another host in: certificate, key and CA in PEM, after a few lines that say in clear which run they
// are for and where its coordinator is, which is all the configuration that a worker needs. The certificate alone is believed.
import { assert } from "../../base/assert.ts";
import type { Clock } from "../../base/clock.ts";
import { isoTime } from "../../base/clock.ts";
import { parseUlid } from "../../base/ids.ts";
import type { RunId } from "../../base/ids.ts";
import type { Authority } from "./authority.ts";
import { readCertificatePem } from "./certificate-reading.ts";
import type { CertificateFacts } from "./certificate-reading.ts";
import {
  bearerOf,
  demandSecret,
  invalid,
  isCertificate,
  keyMismatch,
  readThere,
} from "./credential-files.ts";
import type { ExpectedBearer, FileNaming } from "./credential-files.ts";
import type { Credentials, Identity, Role } from "./identity.ts";
import { describeIdentity } from "./identity.ts";

const TITLE = "# rollout credentials: a secret, keep it readable by you alone";
const RUN_LINE = /^# run: (\S+)$/m;
/** A line for each; 0.1 reads the first of them. */
const COORDINATOR_LINES = /^# coordinator: (\S+)$/gm;
const PEM_BLOCK = /-----BEGIN ([A-Z0-9 ]+)-----\r?\n[A-Za-z0-9+/=\r\n]+-----END \1-----\r?\n?/g;

export interface BundleRequest {
  readonly identity: Identity;
  /** Where the bearer finds the coordinators (`host:port`). */
  readonly coordinatorAddr: readonly string[];
  /** DNS names and IP addresses, for a coordinator only. */
  readonly hosts?: readonly string[];
  readonly lifetimeMs?: number;
}

export interface Bundle {
  readonly credentials: Credentials;
  readonly facts: CertificateFacts;
  readonly coordinatorAddr: readonly string[];
}

/** The text of a bundle with a fresh key. The caller writes it with mode 600. */
export async function issueBundle(authority: Authority, request: BundleRequest): Promise<string> {
  const credentials = await authority.issue(request);
  return bundleText(credentials, request.coordinatorAddr);
}

/** The text of a bundle over credentials that are there. */
export function bundleText(credentials: Credentials, coordinatorAddr: readonly string[]): string {
  const reading = readCertificatePem(credentials.certificatePem);
  assert(reading.kind === "identified", "a bundle is made of a certificate of ours");
  const { identity, notAfterMs } = reading.facts;
  const preface = [
    TITLE,
    `# for: ${describeIdentity(identity)}, until ${isoTime(notAfterMs)}`,
    `# run: ${identity.runId}`,
    ...coordinatorAddr.map((address) => `# coordinator: ${address}`),
    "",
  ].join("\n");
  return preface + credentials.certificatePem + credentials.keyPem + credentials.caPem;
}

/** How messages speak of a bundle. */
export function bundleNaming(file: string): FileNaming {
  return {
    file,
    what: "the credentials bundle",
    advice:
      "start the coordinator, which makes one for its own machine; for others `rollout ca issue` does, there",
  };
}

/** Where a bundle says that its bearer belongs. Nothing in it was checked. */
export interface Destination {
  readonly runId: string;
  readonly coordinatorAddr: readonly string[];
}

/** The destination in the lines in clear; undefined when they name none. Fails with tls_file_unreadable. */
export async function readDestination(file: string): Promise<Destination | undefined> {
  const text = await readThere(bundleNaming(file));
  const [runId, coordinatorAddr] = [RUN_LINE.exec(text)?.[1], coordinatorsIn(text)];
  return runId === undefined || coordinatorAddr.length === 0 ? undefined : { runId, coordinatorAddr };
}

/** The addresses in the lines in clear, in their order. */
export function coordinatorsIn(text: string): string[] {
  return [...text.matchAll(COORDINATOR_LINES)].map(([, address = ""]) => address);
}

/** Reads a bundle. Fails with tls_file_unreadable, tls_file_invalid or tls_key_exposed. */
export async function loadBundle(file: string, roles: readonly Role[], clock: Clock): Promise<Bundle> {
  const naming = bundleNaming(file);
  const text = await readThere(naming);
  await demandSecret(file);
  const runId = parseUlid<RunId>(RUN_LINE.exec(text)?.[1] ?? "");
  const coordinatorAddr = coordinatorsIn(text);
  if (runId === undefined || coordinatorAddr.length === 0) {
    throw invalid(naming, "it does not say its run and its coordinator");
  }
  const [certificatePem, keyPem, caPem, ...rest] = text.match(PEM_BLOCK) ?? [];
  if (certificatePem === undefined || keyPem === undefined || caPem === undefined || rest.length > 0) {
    throw invalid(naming, "it does not hold a certificate, its key and the CA's certificate");
  }
  const expected: ExpectedBearer = { runId, roles };
  const facts = bearerOf(naming, certificatePem, expected, clock);
  const mismatch = keyMismatch(certificatePem, keyPem);
  if (mismatch !== undefined) throw invalid(naming, mismatch);
  if (!isCertificate(caPem)) throw invalid(naming, "the CA's certificate in it is not a certificate");
  return { credentials: { certificatePem, keyPem, caPem }, facts, coordinatorAddr };
}
