// Settings of TLS on each side: version 1.3 and nothing older, a certificate from both, and no trust in any authority
// but the run's own. The client demands that the other side is this run's coordinator, whatever host it runs on.
import type { ConnectionOptions, PeerCertificate, SecureContextOptions, TlsOptions } from "node:tls";
import type { RunId } from "../../base/ids.ts";
import { readCertificate } from "./certificate-reading.ts";
import type { Credentials } from "./identity.ts";
import { describeIdentity } from "./identity.ts";

/** Binds session tickets to this use of TLS; one from elsewhere is not taken. */
const SESSION_ID_CONTEXT = "rollout";

/** The code of the error by which a client refuses a peer that is no coordinator of its run. */
export const NOT_THE_COORDINATOR = "ROLLOUT_NOT_THE_COORDINATOR";

/** The part of a server's TLS that changes when certificates do (`setSecureContext`). */
export function serverContext(
  credentials: Credentials,
  ticketLifetimeMs: number,
): SecureContextOptions & Pick<TlsOptions, "sessionTimeout"> {
  return {
    cert: credentials.certificatePem,
    key: credentials.keyPem,
    ca: credentials.caPem,
    minVersion: "TLSv1.3",
    sessionIdContext: SESSION_ID_CONTEXT,
    sessionTimeout: ticketLifetimeMs / 1_000,
  };
}

/** The part that says who may connect at all. */
export const SERVER_DEMANDS = { requestCert: true, rejectUnauthorized: true } as const;

/** The demands of a client. A certificate whose chain, time or usage is wrong is refused by TLS before this is asked. */
export function clientContext(credentials: Credentials, runId: RunId): ConnectionOptions {
  return {
    cert: credentials.certificatePem,
    key: credentials.keyPem,
    ca: credentials.caPem,
    minVersion: "TLSv1.3",
    rejectUnauthorized: true,
    ALPNProtocols: ["h2"],
    checkServerIdentity: (_host, certificate) => refusalOf(certificate, runId),
  };
}

class NotTheCoordinator extends Error {
  override readonly name = "NotTheCoordinator";
  readonly code = NOT_THE_COORDINATOR;
}

function refusalOf(certificate: PeerCertificate, runId: RunId): Error | undefined {
  const reading = readCertificate(certificate.raw);
  if (reading.kind === "refused") return new NotTheCoordinator(reading.why);
  const { identity } = reading.facts;
  if (identity.role !== "coordinator")
    return new NotTheCoordinator(`it is for ${describeIdentity(identity)}`);
  if (identity.runId !== runId) return new NotTheCoordinator(`it is for run ${identity.runId}`);
  return undefined;
}
