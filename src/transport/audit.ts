// One line for each refusal, whoever was refused and at which level. Strangers cause these lines, so their rate is
// bounded; what is not written is counted, and the count is written.
import type { Clock, Timer } from "../base/clock.ts";
import type { TransportLimits } from "./limits.ts";
import type { Identity } from "./tls/identity.ts";

export type RefusalReason =
  // TLS
  | "no_certificate"
  | "certificate_not_trusted"
  | "certificate_expired"
  | "certificate_not_yet_valid"
  | "certificate_wrong_usage"
  | "tls_failed"
  | "handshake_timeout"
  | "handshake_abandoned"
  | "not_http2"
  // Identity
  | "identity_unreadable"
  | "identity_of_other_run"
  // Rights
  | "role_not_allowed"
  | "unknown_method"
  | "speaks_as_another"
  // Limits
  | "too_many_connections"
  /** Not a refusal: `count` lines were left out since the last one. */
  | "lines_left_out";

export interface AuditEntry {
  readonly reason: RefusalReason;
  /** `unknown` when the connection ended before it could be asked. */
  readonly remoteAddress: string;
  /** Whose certificate it was, when there was a readable one. */
  readonly identity?: Identity;
  /** `rollout.v1.RunService/ListWorkers` */
  readonly method?: string;
  /** Code or words that say more. */
  readonly detail?: string;
  readonly count?: number;
}

/** Where the lines go. Must not throw. */
export type Audit = (entry: AuditEntry) => void;

const REPORT_AFTER_MS = 1_000;

/** The one way to the audit: a bucket of `auditBurst` lines that refills at `auditPerSecond`. */
export class AuditTrail {
  readonly #audit: Audit;
  readonly #clock: Clock;
  readonly #limits: TransportLimits;
  #allowance: number;
  #filledAtMs: number;
  #leftOut = 0;
  #report: Timer | undefined;

  constructor(audit: Audit, clock: Clock, limits: TransportLimits) {
    this.#audit = audit;
    this.#clock = clock;
    this.#limits = limits;
    this.#allowance = limits.auditBurst;
    this.#filledAtMs = clock.monotonicMs();
  }

  refuse(entry: AuditEntry): void {
    const nowMs = this.#clock.monotonicMs();
    const { auditBurst, auditPerSecond } = this.#limits;
    const refill = ((nowMs - this.#filledAtMs) / 1_000) * auditPerSecond;
    this.#allowance = Math.min(auditBurst, this.#allowance + refill);
    this.#filledAtMs = nowMs;
    if (this.#allowance >= 1) {
      this.#allowance -= 1;
      this.#audit(entry);
      return;
    }
    this.#leftOut += 1;
    this.#report ??= this.#clock.after(REPORT_AFTER_MS, () => this.flush(), { background: true });
  }

  /** Writes the count of lines left out, if there are any. */
  flush(): void {
    this.#report?.cancel();
    this.#report = undefined;
    const count = this.#leftOut;
    this.#leftOut = 0;
    if (count > 0) this.#audit({ reason: "lines_left_out", remoteAddress: "unknown", count });
  }
}
