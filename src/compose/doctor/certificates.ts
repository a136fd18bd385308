// The certificates that commands and workers of this machine show: there, secret, of this run, and not about to expire.
import type { Clock } from "../../base/clock.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import { bundleNaming, loadBundle } from "../../transport/tls/bundle.ts";
import type { CertificateFacts } from "../../transport/tls/certificate-reading.ts";
import { invalid, loadCredentials } from "../../transport/tls/credential-files.ts";
import { operatorFiles } from "../../transport/tls/host-credentials.ts";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";

const DAY_MS = 86_400_000;
/** The coordinator renews what is its own long before. */
const DAYS_WANTED = 3;

/** Throws tls_… rows. */
export async function examineOperator(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const files = config.transport.certificates ?? operatorFiles(config.transport.tlsDir);
  const expected = { runId: config.runId, roles: ["operator"] as const };
  const { facts } = await loadCredentials(files, expected, clock);
  return [lifetimeOf("operator certificate", facts, clock)];
}

/** The bundle that workers of this machine enrol with. Throws tls_… rows. */
export async function examineEnrolment(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const file = config.worker.enrolment;
  const { facts } = await loadBundle(file, ["enrolment"], clock);
  if (facts.identity.runId !== config.runId)
    throw invalid(
      bundleNaming(file),
      `it belongs to run ${facts.identity.runId}, and this run is ${config.runId}`,
    );
  return [lifetimeOf("enrolment bundle", facts, clock)];
}

function lifetimeOf(subject: string, { notAfterMs }: CertificateFacts, clock: Clock): Finding {
  const days = Math.floor((notAfterMs - clock.wallMs()) / DAY_MS);
  if (days >= DAYS_WANTED) return good(subject, `valid for ${days} more days`);
  return warning(
    subject,
    `expires within ${days + 1} days`,
    "start the coordinator, which renews what is its own",
  );
}
