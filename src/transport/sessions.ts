// The sessions of a server: who is at the other end of each, how many sessions and calls each bearer has, and when they have to
// end. A session is admitted once its certificate has been read; every call on it is made by that bearer. Sessions without a
// call lock nobody out: they make room.
import { constants } from "node:http2";
import type { Http2Session, ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { AuditEntry, AuditTrail, RefusalReason } from "./audit.ts";
import type { Peer } from "./caller.ts";
import type { TransportLimits } from "./limits.ts";
import { readCertificate } from "./tls/certificate-reading.ts";
import type { Identity, Role } from "./tls/identity.ts";
import { identityUri } from "./tls/identity.ts";

export interface SessionsOptions {
  readonly runId: RunId;
  readonly clock: Clock;
  readonly limits: TransportLimits;
  readonly trail: AuditTrail;
  /** Ids of bearers that are kept out. */
  readonly revoked: Iterable<string>;
}

const UNTRUSTED = constants.NGHTTP2_INADEQUATE_SECURITY;

/** Why a session was ended by us. HTTP/2 code and audit line say it to the outside; nobody catches this. */
class SessionRefused extends Error {
  override readonly name = "SessionRefused";
}

interface OpenSession {
  readonly session: ServerHttp2Session;
  readonly peer: Peer;
  calls: number;
  /** When the last one began or ended. */
  calledAtMs: number;
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #open = new Map<Http2Session, OpenSession>();
  /** Sessions by the bearer of their certificate; the one used last is last. */
  readonly #sessionsOf = new Map<string, Set<OpenSession>>();
  readonly #callsOf = new Map<string, number>();
  readonly #revoked: Set<string>;
  #sweep: Timer | undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#revoked = new Set(options.revoked);
    this.#armSweep();
  }

  /** Takes a new session in, or ends it and leaves an audit line. */
  open(session: ServerHttp2Session): void {
    const { socket } = session;
    const remoteAddress = socket.remoteAddress ?? "unknown";
    const refuse = (entry: Omit<AuditEntry, "remoteAddress">, errorCode = UNTRUSTED): void => {
      this.#options.trail.refuse({ ...entry, remoteAddress });
      session.destroy(new SessionRefused(entry.reason), errorCode);
    };
    const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    if (certificate === undefined) return refuse({ reason: "no_certificate" });
    const reading = readCertificate(certificate.raw);
    if (reading.kind === "refused") return refuse({ reason: "identity_unreadable", detail: reading.why });
    const { identity, notBeforeMs, notAfterMs } = reading.facts;
    if (identity.runId !== this.#options.runId) return refuse({ reason: "identity_of_other_run", identity });
    const peer: Peer = { identity, remoteAddress, notBeforeMs, notAfterMs };
    // A resumed TLS session is not checked again by TLS, and its certificate may have expired since.
    const reason = this.#endOf(peer);
    if (reason !== undefined) return refuse({ reason, identity });
    if (!this.#makeRoom(identity))
      return refuse({ reason: "too_many_connections", identity }, constants.NGHTTP2_ENHANCE_YOUR_CALM);
    this.#admit(session, peer);
  }

  /** The peer at the other end; undefined when the session was not admitted, or has just been ended for its age. */
  peerOf(session: Http2Session | undefined): Peer | undefined {
    const opened = session === undefined ? undefined : this.#open.get(session);
    const reason = opened && this.#endOf(opened.peer);
    if (opened === undefined || reason === undefined) return opened?.peer;
    this.#end(opened, reason);
    return undefined;
  }

  /** Keeps these bearers out: no call of theirs is taken from now on, and their sessions end in a moment. */
  revoke(ids: readonly string[]): void {
    for (const id of ids) this.#revoked.add(id);
    const { clock, limits } = this.#options;
    clock.after(limits.revokedGraceMs, () => this.#look(), { background: true });
  }

  /** Counts a call until its stream closes. Returns whose limits it is under; undefined when they have as many as they may. */
  beginCall(stream: ServerHttp2Stream, { identity, remoteAddress }: Peer): string | undefined {
    const { role } = identity;
    const bearer = identityUri(identity) + (role === "enrolment" ? ` from ${remoteAddress}` : "");
    const count = this.#callsOf.get(bearer) ?? 0;
    if (count >= this.#options.limits.maxCallsOf[role]) return undefined;
    this.#callsOf.set(bearer, count + 1);
    const opened = stream.session && this.#open.get(stream.session);
    if (opened !== undefined) {
      opened.calls++;
      opened.calledAtMs = this.#options.clock.monotonicMs();
      this.#touch(opened);
    }
    stream.once("close", () => {
      const left = (this.#callsOf.get(bearer) ?? 1) - 1;
      if (left > 0) this.#callsOf.set(bearer, left);
      else this.#callsOf.delete(bearer);
      if (opened === undefined) return;
      opened.calls--;
      opened.calledAtMs = this.#options.clock.monotonicMs();
      if (this.#open.has(opened.session)) this.#touch(opened);
    });
    return bearer;
  }

  /** Whether a session is open on which a bearer of this role has begun or ended a call within the last `ms`. */
  hasCalled(role: Role, ms: number): boolean {
    const sinceMs = this.#options.clock.monotonicMs() - ms;
    const isOf = ({ peer, calledAtMs }: OpenSession): boolean =>
      peer.identity.role === role && calledAtMs >= sinceMs;
    return [...this.#open.values()].some(isOf);
  }

  /** Asks every session to end after its calls in flight (GOAWAY). */
  closeAll(): void {
    this.#sweep?.cancel();
    for (const session of this.#open.keys()) session.close();
  }

  #admit(session: ServerHttp2Session, peer: Peer): void {
    const { clock, limits } = this.#options;
    const opened: OpenSession = { session, peer, calls: 0, calledAtMs: -Infinity };
    this.#open.set(session, opened);
    this.#touch(opened);
    session.setTimeout(limits.idleSessionTimeoutMs, () => session.destroy());
    // Node counts a ping as a sign of life only where somebody listens for pings.
    session.on("ping", () => undefined);
    const firstRequest = clock.after(limits.firstRequestTimeoutMs, () => session.destroy(), {
      background: true,
    });
    session.once("stream", () => firstRequest.cancel());
    session.once("close", () => {
      firstRequest.cancel();
      this.#forget(opened);
    });
  }

  /** False when every session of this bearer has a call. */
  #makeRoom(identity: Identity): boolean {
    const sessions = this.#sessionsOf.get(identityUri(identity)) ?? new Set();
    if (sessions.size < this.#options.limits.maxConnectionsOf[identity.role]) return true;
    for (const opened of sessions) {
      if (opened.calls > 0) continue;
      this.#forget(opened);
      opened.session.close();
      return true;
    }
    return false;
  }

  #touch(opened: OpenSession): void {
    const bearer = identityUri(opened.peer.identity);
    const sessions = this.#sessionsOf.get(bearer) ?? new Set();
    this.#sessionsOf.set(bearer, sessions);
    sessions.delete(opened);
    sessions.add(opened);
  }

  #forget(opened: OpenSession): void {
    this.#open.delete(opened.session);
    const bearer = identityUri(opened.peer.identity);
    const sessions = this.#sessionsOf.get(bearer);
    sessions?.delete(opened);
    if (sessions?.size === 0) this.#sessionsOf.delete(bearer);
  }

  /** Why this certificate is good for nothing any more; undefined while it is. */
  #endOf({ identity, notAfterMs }: Peer): RefusalReason | undefined {
    if (this.#revoked.has(identity.id)) return "certificate_revoked";
    return notAfterMs <= this.#options.clock.wallMs() ? "certificate_expired" : undefined;
  }

  #end(opened: OpenSession, reason: RefusalReason): void {
    const { identity, remoteAddress } = opened.peer;
    this.#options.trail.refuse({ reason, remoteAddress, identity });
    this.#forget(opened);
    opened.session.destroy(new SessionRefused(reason), UNTRUSTED);
  }

  #look(): void {
    for (const opened of this.#open.values()) {
      const reason = this.#endOf(opened.peer);
      if (reason !== undefined) this.#end(opened, reason);
    }
  }

  #armSweep(): void {
    const { clock, limits } = this.#options;
    const sweep = (): void => {
      this.#look();
      this.#armSweep();
    };
    this.#sweep = clock.after(limits.expirySweepMs, sweep, { background: true });
  }
}
