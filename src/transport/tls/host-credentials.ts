// The certificates that the coordinator keeps on its own host: its own, the command line's, and the bundle by which
// workers of this host enrol. All are made at first boot and renewed in time, so nobody has to think of them.
//
// A renewal keeps the private key and replaces one file, so no reader meets a certificate and a key of two
// generations.
import { join } from "node:path";
import type { Clock } from "../../base/clock.ts";
import { newUlid } from "../../base/ids.ts";
import type { RunId, WorkerId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import type { Authority } from "./authority.ts";
import { bundleNaming, bundleText, coordinatorsIn } from "./bundle.ts";
import { readCertificatePem } from "./certificate-reading.ts";
import {
  demandSecret,
  keyMismatch,
  PUBLIC_MODE,
  readIfThere,
  replaceFile,
  SECRET_MODE,
} from "./credential-files.ts";
import type { CredentialFiles } from "./credential-files.ts";
import type { Credentials, Role } from "./identity.ts";
import { lifetimeMsOf } from "./lifetimes.ts";

/** The share of its lifetime that a certificate has left when it is renewed. */
const RENEW_BELOW = 1 / 3;

export interface HostCredentialsOptions {
  readonly authority: Authority;
  readonly tlsDir: string;
  readonly runId: RunId;
  /** The coordinator's DNS names and IP addresses. Its certificate is made anew when they change. */
  readonly hosts: readonly string[];
  /** Where workers of this host find the coordinators. */
  readonly coordinatorAddr: readonly string[];
  /** Whether the certificates of this bearer are good for nothing any more: a new bearer takes its place. Nobody's, unless said. */
  readonly isRevoked?: (id: string) => boolean;
  readonly clock: Clock;
  readonly random: Random;
}

export interface HostCredentials {
  readonly coordinator: Credentials;
  /** Whether the coordinator's certificate is a new one: hand it to the running server. */
  readonly coordinatorChanged: boolean;
  /** The bearer of the bundle of this host. */
  readonly enrolmentId: string;
}

/** The files of the command line on the coordinator's host, for `loadCredentials`. */
export function operatorFiles(tlsDir: string): CredentialFiles {
  const advice =
    "start the coordinator, which makes it on its own machine, or name your files by --cert-file";
  return { ...filesOf(tlsDir, "operator"), advice };
}

/**
 * The bundle by which workers on the coordinator's host enrol, for `loadBundle`.
 * @internal
 */
export function enrolmentFile(tlsDir: string): string {
  return join(tlsDir, "enrolment.pem");
}

/**
 * Makes or renews what is missing, wears out or no longer fits; changes nothing otherwise. Call it at boot and then every
 * few hours. Idempotent.
 */
export async function keepHostCredentials(options: HostCredentialsOptions): Promise<HostCredentials> {
  const coordinator = await keepPair(options, "coordinator", options.hosts);
  await keepPair(options, "operator", []);
  const enrolmentId = await keepEnrolment(options);
  return { coordinator: coordinator.credentials, coordinatorChanged: coordinator.changed, enrolmentId };
}

function filesOf(tlsDir: string, role: "coordinator" | "operator"): CredentialFiles {
  return {
    caFile: join(tlsDir, "ca.pem"),
    certFile: join(tlsDir, `${role}.pem`),
    keyFile: join(tlsDir, `${role}.key.pem`),
  };
}

async function keepPair(
  options: HostCredentialsOptions,
  role: "coordinator" | "operator",
  hosts: readonly string[],
): Promise<{ credentials: Credentials; changed: boolean }> {
  const { authority, random } = options;
  const files = filesOf(options.tlsDir, role);
  const advice = `remove it: the coordinator makes a new one when it starts`;
  const certificatePem = await readIfThere({
    file: files.certFile,
    what: `the ${role}'s certificate`,
    advice,
  });
  const keyPem = await readIfThere({ file: files.keyFile, what: `the ${role}'s key`, advice });
  if (keyPem !== undefined) await demandSecret(files.keyFile);
  const isWhole =
    certificatePem !== undefined && keyPem !== undefined && keyMismatch(certificatePem, keyPem) === undefined;
  if (isWhole && isCurrent(certificatePem, role, hosts, options)) {
    return { credentials: { certificatePem, keyPem, caPem: authority.certificatePem }, changed: false };
  }
  const credentials = await authority.issue({
    identity: { runId: options.runId, role, id: bearerId(certificatePem, options) },
    hosts,
    ...(isWhole ? { keyPem } : {}),
  });
  if (!isWhole) await replaceFile(files.keyFile, credentials.keyPem, SECRET_MODE, random);
  await replaceFile(files.certFile, credentials.certificatePem, PUBLIC_MODE, random);
  return { credentials, changed: true };
}

/** The bearer's id. */
async function keepEnrolment(options: HostCredentialsOptions): Promise<string> {
  const file = enrolmentFile(options.tlsDir);
  const text = await readIfThere(bundleNaming(file));
  if (text !== undefined) await demandSecret(file);
  const id = bearerId(text, options);
  const isTold = text !== undefined && coordinatorsIn(text).join() === options.coordinatorAddr.join();
  if (isTold && isCurrent(text, "enrolment", [], options)) return id;
  const credentials = await options.authority.issue({
    identity: { runId: options.runId, role: "enrolment", id },
  });
  await replaceFile(file, bundleText(credentials, options.coordinatorAddr), SECRET_MODE, options.random);
  return id;
}

/** Whether the certificate fits this run, role and set of hosts, comes from this CA, and has enough of its life left. */
function isCurrent(
  certificatePem: string,
  role: Exclude<Role, "worker">,
  hosts: readonly string[],
  options: HostCredentialsOptions,
): boolean {
  const reading = readCertificatePem(certificatePem);
  if (reading.kind === "refused") return false;
  const { facts } = reading;
  const leftMs = facts.notAfterMs - options.clock.wallMs();
  const fits = facts.identity.runId === options.runId && facts.identity.role === role;
  const lasts = leftMs > lifetimeMsOf(options.authority.lifetimes, role) * RENEW_BELOW;
  const sameHosts = [...facts.hosts].sort().join() === [...hosts].sort().join();
  const isGood = options.isRevoked?.(facts.identity.id) !== true;
  return fits && lasts && sameHosts && isGood && options.authority.hasSigned(certificatePem);
}

/** The id of the last certificate, so that a renewal is the same bearer; a new one when there was none, or it was revoked. */
function bearerId(certificatePem: string | undefined, options: HostCredentialsOptions): string {
  const reading = certificatePem === undefined ? undefined : readCertificatePem(certificatePem);
  if (reading?.kind === "identified" && reading.facts.identity.runId === options.runId) {
    const { id } = reading.facts.identity;
    if (options.isRevoked?.(id) !== true) return id;
  }
  return newUlid<WorkerId>(options.clock, options.random);
}
