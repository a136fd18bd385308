// Certificates and keys on disk. Reading says exactly which file is wrong and why; writing is all or nothing, and a secret is
// never on disk with a mode that others can read, not for a moment.
import { createPrivateKey, X509Certificate } from "node:crypto";
import { readFile, stat } from "node:fs/promises";
import type { Clock } from "../../base/clock.ts";
import { isoTime } from "../../base/clock.ts";
import { errnoOf, failure } from "../../base/errors.ts";
import { createFile as create, replaceFile as replace, makeDirectory } from "../../base/file-system.ts";
import type { Replacement } from "../../base/file-system.ts";
import { asUnwritable } from "../../base/system-reason.ts";
import { demandTrusted, keepFilesPrivate, thisUser } from "../../base/trusted-place.ts";
import type { RolloutError } from "../../base/errors.ts";
import type { RunId } from "../../base/ids.ts";
import type { Random } from "../../base/random.ts";
import { readCertificatePem } from "./certificate-reading.ts";
import type { CertificateFacts } from "./certificate-reading.ts";
import type { Credentials, Role } from "./identity.ts";
import { describeIdentity } from "./identity.ts";

export const SECRET_MODE = 0o600;
export const PUBLIC_MODE = 0o644;
const DIRECTORY_MODE = 0o700;
const READABLE_BY_OTHERS = 0o077;
const READABLE_BY_ALL = 0o007;

/** How a file is spoken of when something is wrong with it. */
export interface FileNaming {
  readonly file: string;
  /** `the CA's key`. */
  readonly what: string;
  /** Advice for when it is missing or unusable. */
  readonly advice: string;
}

/** The file's text, or undefined when there is no such file. Fails with tls_file_unreadable and not_trusted. */
export async function readIfThere(naming: FileNaming): Promise<string | undefined> {
  await demandTrusted(naming.file);
  try {
    return await readFile(naming.file, "utf8");
  } catch (error) {
    if (errnoOf(error) === "ENOENT") return undefined;
    throw failure("tls_file_unreadable", { ...naming, reason: reasonOf(error) }, error);
  }
}

/** The file's text. Fails with tls_file_unreadable. */
export async function readThere(naming: FileNaming): Promise<string> {
  const text = await readIfThere(naming);
  if (text === undefined)
    throw failure("tls_file_unreadable", { ...naming, reason: "there is no such file" });
  return text;
}

/** Fails with tls_key_exposed when others than the owner may read the file. A file that is not there passes. */
export async function demandSecret(file: string): Promise<void> {
  const me = thisUser();
  const found = await stat(file).catch(() => undefined);
  if (me === undefined || found === undefined) return;
  const mode = found.mode & 0o777;
  // Root has it mounted for a group that this process is in: nobody else is there.
  const isMounted = found.uid === 0 && me.uid !== 0;
  if ((mode & (isMounted ? READABLE_BY_ALL : READABLE_BY_OTHERS)) === 0) return;
  throw failure("tls_key_exposed", { file, mode: mode.toString(8).padStart(3, "0") });
}

export function invalid(naming: FileNaming, reason: string): RolloutError {
  return failure("tls_file_invalid", { ...naming, reason });
}

/** Makes the directory when it is not there. For its owner alone when it resolves, with its PEM files. Throws not_trusted too. */
export async function makePrivateDirectory(directory: string): Promise<void> {
  await makeDirectory(directory, DIRECTORY_MODE).catch(asUnwritable(directory));
  await keepFilesPrivate(directory, (name) => name.endsWith(".pem"));
}

/**
 * Writes a file that must not be there yet, whole or not at all. False when it is there already: of several processes that
 * try at once, one succeeds. Fails with file_unwritable and output_unwritten, as `replaceFile` does.
 */
export async function createFile(file: string, text: string, mode: number, random: Random): Promise<boolean> {
  return create(file, text, durably(file, mode, random)).catch(asUnwritable(file));
}

/** Writes a file in place of whatever is there. A reader meets the old text or the new one. */
export async function replaceFile(file: string, text: string, mode: number, random: Random): Promise<void> {
  await replace(file, text, durably(file, mode, random)).catch(asUnwritable(file));
}

function durably(file: string, mode: number, random: Random): Replacement {
  return { temporary: `${file}.${Buffer.from(random.bytes(8)).toString("hex")}.tmp`, mode, synced: "name" };
}

/** Where a peer's certificate, its key and the authority's certificate are. */
export interface CredentialFiles {
  readonly caFile: string;
  readonly certFile: string;
  readonly keyFile: string;
  /** Advice for when one of them is missing or unusable. */
  readonly advice?: string;
}

export interface LoadedCredentials {
  readonly credentials: Credentials;
  readonly facts: CertificateFacts;
}

/** The bearer that a certificate has to be of. */
export interface ExpectedBearer {
  readonly runId: RunId;
  readonly roles: readonly Role[];
}

/**
 * Reads credentials, from the dev CA or from a real one. Fails with tls_file_unreadable, tls_file_invalid (not a
 * certificate, not its key, another run's or role's, expired) or tls_key_exposed.
 */
export async function loadCredentials(
  files: CredentialFiles,
  expected: ExpectedBearer,
  clock: Clock,
): Promise<LoadedCredentials> {
  const { advice = "get it from who runs the coordinator, or correct its path in the configuration" } = files;
  const caNaming = { file: files.caFile, what: "the CA's certificate", advice };
  const certNaming = { file: files.certFile, what: "the certificate", advice };
  const keyNaming = { file: files.keyFile, what: "the certificate's key", advice };
  const credentials: Credentials = {
    caPem: await readThere(caNaming),
    certificatePem: await readThere(certNaming),
    keyPem: await readThere(keyNaming),
  };
  await demandSecret(files.keyFile);
  if (!isCertificate(credentials.caPem)) throw invalid(caNaming, "it is not a certificate");
  const facts = bearerOf(certNaming, credentials.certificatePem, expected, clock);
  const mismatch = keyMismatch(credentials.certificatePem, credentials.keyPem);
  if (mismatch !== undefined) throw invalid(keyNaming, mismatch);
  return { credentials, facts };
}

/** Reads and checks a certificate's bearer. Fails with tls_file_invalid. */
export function bearerOf(
  naming: FileNaming,
  certificatePem: string,
  expected: ExpectedBearer,
  clock: Clock,
): CertificateFacts {
  const reading = readCertificatePem(certificatePem);
  if (reading.kind === "refused") throw invalid(naming, reading.why);
  const { facts } = reading;
  if (facts.identity.runId !== expected.runId) {
    throw invalid(naming, `it belongs to run ${facts.identity.runId}, and this run is ${expected.runId}`);
  }
  if (!expected.roles.includes(facts.identity.role)) {
    throw invalid(
      naming,
      `it is for ${describeIdentity(facts.identity)}, not for ${expected.roles.join(" or ")}`,
    );
  }
  if (facts.notAfterMs <= clock.wallMs()) throw invalid(naming, `it expired at ${isoTime(facts.notAfterMs)}`);
  return facts;
}

export function isCertificate(pem: string): boolean {
  try {
    return new X509Certificate(pem).raw.length > 0;
  } catch {
    return false;
  }
}

/** Why this key does not belong to this certificate, or undefined. */
export function keyMismatch(certificatePem: string, keyPem: string): string | undefined {
  try {
    const key = createPrivateKey(keyPem);
    return new X509Certificate(certificatePem).checkPrivateKey(key)
      ? undefined
      : "it is not the key of that certificate";
  } catch {
    return "it is not a private key";
  }
}

function reasonOf(error: unknown): string {
  const code = errnoOf(error);
  switch (code) {
    case "ENOENT":
      return "there is no such file";
    case "EACCES":
    case "EPERM":
      return "permission denied";
    case "EISDIR":
      return "it is a directory";
    default:
      return code ?? "unknown reason";
  }
}
