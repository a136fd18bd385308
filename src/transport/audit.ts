// One line for each refusal, whoever was refused and at which level. Strangers cause these lines, so their rate is
// bounded, for each peer and reason and over all; what is not written is counted, and the counts are written.
import type { Clock, Timer } from "../base/clock.ts";
import type { TransportLimits } from "./limits.ts";
import type { Identity } from "./tls/identity.ts";
import { identityUri } from "./tls/identity.ts";

export type RefusalReason =
  // TLS
  | "no_certificate"
  | "certificate_not_trusted"
  | "certificate_expired"
  | "certificate_not_yet_valid"
  | "certificate_wrong_usage"
  | "certificate_revoked"
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
  | "too_many_calls"
  | "headers_too_large"
  | "message_too_slow"
  /** Not a refusal: `count` lines for the reason in `detail` were left out since the last one. */
  | "lines_left_out";

export interface AuditEntry {
  readonly reason: RefusalReason;
  /** `unknown` when the connection ended before it could be asked. */
  readonly remoteAddress: string;
  /** The bearer of the certificate, when there was a readable one. */
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
/** Peers and reasons whose lines are counted one by one, those that were seen last; and counts that are reported one by one. */
const KINDS_MAX = 1_024;
const COUNTS_MAX = 16;

/** A bucket of lines that fills again with time. */
class Bucket {
  readonly #burst: number;
  readonly #perSecond: number;
  #left: number;
  #filledAtMs: number;

  constructor(burst: number, perSecond: number, nowMs: number) {
    this.#burst = burst;
    this.#perSecond = perSecond;
    this.#left = burst;
    this.#filledAtMs = nowMs;
  }

  has(nowMs: number): boolean {
    this.#left = Math.min(this.#burst, this.#left + ((nowMs - this.#filledAtMs) / 1_000) * this.#perSecond);
    this.#filledAtMs = nowMs;
    return this.#left >= 1;
  }

  take(): void {
    this.#left -= 1;
  }
}

interface Kind {
  readonly bucket: Bucket;
  /** The last line that was left out, and how many were. */
  leftOut: { readonly entry: AuditEntry; readonly count: number } | undefined;
}

/** The one way to the audit. Refusals of one peer for one reason take no lines from any other. */
export class AuditTrail {
  readonly #audit: Audit;
  readonly #clock: Clock;
  readonly #limits: TransportLimits;
  readonly #all: Bucket;
  readonly #kinds = new Map<string, Kind>();
  /** Refusals of kinds that are not counted one by one any more. */
  #leftOut = 0;
  #report: Timer | undefined;

  constructor(audit: Audit, clock: Clock, limits: TransportLimits) {
    this.#audit = audit;
    this.#clock = clock;
    this.#limits = limits;
    this.#all = new Bucket(limits.auditBurst, limits.auditPerSecond, clock.monotonicMs());
  }

  refuse(entry: AuditEntry): void {
    const nowMs = this.#clock.monotonicMs();
    const kind = this.#kindOf(entry, nowMs);
    if (kind.bucket.has(nowMs) && this.#all.has(nowMs)) {
      kind.bucket.take();
      this.#all.take();
      return this.#audit(entry);
    }
    kind.leftOut = { entry, count: (kind.leftOut?.count ?? 0) + 1 };
    this.#report ??= this.#clock.after(REPORT_AFTER_MS, () => this.flush(), { background: true });
  }

  /** Writes the counts of lines left out, if there are any: the largest one by one, the others as one. */
  flush(): void {
    this.#report?.cancel();
    this.#report = undefined;
    const counts = [...this.#kinds.values()].flatMap((kind) => kind.leftOut ?? []);
    for (const kind of this.#kinds.values()) kind.leftOut = undefined;
    counts.sort((one, other) => other.count - one.count);
    for (const { entry, count } of counts.splice(0, COUNTS_MAX)) {
      const { remoteAddress, identity, reason: detail } = entry;
      this.#audit({ reason: "lines_left_out", remoteAddress, ...(identity && { identity }), detail, count });
    }
    const others = counts.reduce((sum, { count }) => sum + count, this.#leftOut);
    this.#leftOut = 0;
    if (others > 0) this.#audit({ reason: "lines_left_out", remoteAddress: "unknown", count: others });
  }

  #kindOf({ identity, remoteAddress, reason }: AuditEntry, nowMs: number): Kind {
    const name = `${reason} ${identity === undefined ? remoteAddress : identityUri(identity)}`;
    const { auditBurstOf, auditPerSecondOf } = this.#limits;
    const kind = this.#kinds.get(name) ?? {
      bucket: new Bucket(auditBurstOf, auditPerSecondOf, nowMs),
      leftOut: undefined,
    };
    this.#kinds.delete(name);
    this.#kinds.set(name, kind);
    for (const [oldest, { leftOut }] of this.#kinds) {
      if (this.#kinds.size <= KINDS_MAX) break;
      this.#leftOut += leftOut?.count ?? 0;
      this.#kinds.delete(oldest);
    }
    return kind;
  }
}
