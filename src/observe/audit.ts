// Refusals as log lines: `warn` with `audit: true`, so that they can be picked out of everything else. The refused peer is
// named by role and id, never by what it presented.
import type { Logger } from "./log.ts";

/** A refusal, as the transport tells it. */
interface Refusal {
  readonly reason: string;
  readonly remoteAddress: string;
  readonly identity?: { readonly runId: string; readonly role: string; readonly id: string };
  readonly method?: string;
  readonly detail?: string;
  readonly count?: number;
}

/** A sink for refusals over `log`. Never throws. */
export function auditTo(log: Logger): (refusal: Refusal) => void {
  return ({ identity, reason, remoteAddress, ...more }) => {
    const who = identity === undefined ? {} : { role: identity.role, id: identity.id, run: identity.runId };
    log.warn("refused", { audit: true, reason, from: remoteAddress, ...who, ...more });
  };
}
