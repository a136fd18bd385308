// One line for each refusal, whoever was refused and at which level. Strangers cause these lines, so their rate is
// bounded, for each peer and reason and over all; what is not written is counted, and the counts are written.
import type { Clock, Timer } from "../base/clock.ts";
import { codeOf } from "../base/errors.ts";
import type { Logger } from "../observe/log.ts";
import type { TransportLimits } from "./limits.ts";
import type { Identity } from "./tls/identity.ts";
import { identityUri } from "./tls/identity.ts";
import { Socket } from "node:net";
import type { Server } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Http2SecureServer } from "node:http2";

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
  | "message_too_large"
  /** Not a refusal: `count` lines for the reason in `detail` were left out since the last one. */
  | "lines_left_out";

export interface AuditEntry {
  readonly reason: RefusalReason;
  /** `unknown` when the connection ended before it could be asked. */
  readonly remoteAddress: string;
  /** The bearer of the certificate, when there was a readable one. */
  readonly identity?: Identity;
  /** `rollout.v1.OperatorService/ListWorkers` */
  readonly method?: string;
  /** Code or words that say more. */
  readonly detail?: string;
  readonly count?: number;
}

/** Where the lines go. Must not throw. */
export type Audit = (entry: AuditEntry) => void;

/**
 * Refusals as lines of the log: `warn` with `audit: true`, so that they can be picked out of everything else. The refused peer is
 * named by role and id, never by what it presented.
 */
export function auditTo(log: Logger): Audit {
  return ({ identity, reason, remoteAddress, ...more }) => {
    const who = identity === undefined ? {} : { role: identity.role, id: identity.id, run: identity.runId };
    log.warn("refused", { audit: true, reason, from: remoteAddress, ...who, ...more });
  };
}

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

// Refusals that TLS itself makes, told in our words. Node reports all of them in one event, some with a code of OpenSSL, some
// only with what it found wrong with the certificate.

const BY_CERTIFICATE: Readonly<Record<string, RefusalReason>> = {
  CERT_HAS_EXPIRED: "certificate_expired",
  CERT_NOT_YET_VALID: "certificate_not_yet_valid",
  INVALID_PURPOSE: "certificate_wrong_usage",
};

const BY_CODE: Readonly<Record<string, RefusalReason>> = {
  ERR_SSL_PEER_DID_NOT_RETURN_A_CERTIFICATE: "no_certificate",
  ERR_TLS_HANDSHAKE_TIMEOUT: "handshake_timeout",
  ECONNRESET: "handshake_abandoned",
};

/** Writes an audit line for each connection that does not get as far as a session. */
export function auditHandshakes(server: Http2SecureServer & Server, trail: AuditTrail): void {
  // The address is gone once Node has destroyed the socket, so it is taken down when the connection arrives.
  const addresses = new WeakMap<Socket, string>();
  server.prependListener("connection", (socket: Socket) => {
    addresses.set(socket, socket.remoteAddress ?? "unknown");
  });
  server.on("tlsClientError", (error: Error, socket: TLSSocket) => {
    const found = textOf(socket.authorizationError);
    const code = codeOf(error);
    const underneath = tcpSocketOf(socket);
    trail.refuse({
      reason: reasonOf(found, code),
      remoteAddress: (underneath && addresses.get(underneath)) ?? socket.remoteAddress ?? "unknown",
      detail: found ?? code ?? "no code",
    });
  });
  server.on("unknownProtocol", (socket: TLSSocket) => {
    trail.refuse({ reason: "not_http2", remoteAddress: socket.remoteAddress ?? "unknown" });
    socket.destroy();
  });
  server.on("drop", (connection) => {
    trail.refuse({ reason: "too_many_connections", remoteAddress: connection?.remoteAddress ?? "unknown" });
  });
}

function reasonOf(found: string | undefined, code: string | undefined): RefusalReason {
  if (found !== undefined) return BY_CERTIFICATE[found] ?? "certificate_not_trusted";
  return BY_CODE[code ?? ""] ?? "tls_failed";
}

/** The declared type says Error; Node sets the code of the finding. */
function textOf(authorizationError: unknown): string | undefined {
  if (typeof authorizationError === "string") return authorizationError;
  return authorizationError instanceof Error ? codeOf(authorizationError) : undefined;
}

/** The connection under a TLS socket. Node has no public name for it; without it the line says `unknown`. */
function tcpSocketOf(socket: TLSSocket): Socket | undefined {
  const parent: unknown = "_parent" in socket ? socket._parent : undefined;
  return parent instanceof Socket ? parent : undefined;
}
