// The bearer that a certificate speaks for: run, role and id, written as one URI. There is one way to write each identity, and
// nothing else is read as one.
import { isUlid, parseUlid } from "../../base/ids.ts";
import type { RunId } from "../../base/ids.ts";

/**
 * Rights of a certificate's bearer. `enrolment` may ask for a worker's certificate and nothing else; `operator`
 * is the command line.
 */
export type Role = "coordinator" | "worker" | "operator" | "enrolment";

export interface Identity {
  readonly runId: RunId;
  readonly role: Role;
  /** ULID. A worker's is its worker id. */
  readonly id: string;
}

/** A certificate, its private key and the authority that the other side's certificate has to come from. PEM. */
export interface Credentials {
  /** The certificate, followed by intermediate ones if there are any. */
  readonly certificatePem: string;
  readonly keyPem: string;
  readonly caPem: string;
}

const ROLES: readonly Role[] = ["coordinator", "worker", "operator", "enrolment"];
const PREFIX = "spiffe://rollout/run/";

/** The name that stands in the certificate. The inverse of `parseIdentityUri`. */
export function identityUri(identity: Identity): string {
  return `${PREFIX}${identity.runId}/${identity.role}/${identity.id}`;
}

/** Undefined for every text but the one that `identityUri` writes. */
export function parseIdentityUri(uri: string): Identity | undefined {
  if (!uri.startsWith(PREFIX)) return undefined;
  const parts = uri.slice(PREFIX.length).split("/");
  const [run = "", roleName = "", id = ""] = parts;
  const runId = parseUlid<RunId>(run);
  const role = ROLES.find((known) => known === roleName);
  if (parts.length !== 3 || runId === undefined || role === undefined || !isUlid(id)) return undefined;
  return { runId, role, id };
}

/** For messages and logs: `worker 01J…`. */
export function describeIdentity(identity: Identity): string {
  return `${identity.role} ${identity.id}`;
}
