// The sessions of a server: who is at the other end of each, how many each bearer has, and when they have to end. A session is
// admitted once its certificate has been read; every call on it is made by that bearer.
import { constants } from "node:http2";
import type { Http2Session, ServerHttp2Session } from "node:http2";
import { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { AuditEntry, AuditTrail, RefusalReason } from "./audit.ts";
import type { Peer } from "./caller.ts";
import type { TransportLimits } from "./limits.ts";
import { readCertificate } from "./tls/certificate-reading.ts";
import type { Identity } from "./tls/identity.ts";
import { identityUri } from "./tls/identity.ts";

export interface SessionsOptions {
  readonly runId: RunId;
  readonly clock: Clock;
  readonly limits: TransportLimits;
  readonly trail: AuditTrail;
}

type Admission =
  | { readonly kind: "admitted"; readonly peer: Peer }
  | { readonly kind: "refused"; readonly entry: AuditEntry; readonly errorCode: number };

/** Why a session was ended by us. HTTP/2 code and audit line say it to the outside; nobody catches this. */
class SessionRefused extends Error {
  override readonly name = "SessionRefused";
}

export class Sessions {
  readonly #options: SessionsOptions;
  readonly #peers = new Map<Http2Session, Peer>();
  readonly #counts = new Map<string, number>();
  #sweep: Timer | undefined;

  constructor(options: SessionsOptions) {
    this.#options = options;
    this.#armSweep();
  }

  /** Takes a new session in, or ends it and leaves an audit line. */
  open(session: ServerHttp2Session): void {
    const admission = this.#admissionOf(session);
    if (admission.kind === "refused") {
      this.#options.trail.refuse(admission.entry);
      session.destroy(new SessionRefused(admission.entry.reason), admission.errorCode);
      return;
    }
    const { peer } = admission;
    const { clock, limits } = this.#options;
    const bearer = identityUri(peer.identity);
    this.#peers.set(session, peer);
    this.#counts.set(bearer, (this.#counts.get(bearer) ?? 0) + 1);
    session.setTimeout(limits.idleSessionTimeoutMs, () => session.destroy());
    // Node counts a ping as a sign of life only where somebody listens for pings.
    session.on("ping", () => undefined);
    const firstRequest = clock.after(limits.firstRequestTimeoutMs, () => session.destroy(), {
      background: true,
    });
    session.once("stream", () => firstRequest.cancel());
    session.once("close", () => {
      firstRequest.cancel();
      this.#peers.delete(session);
      const left = (this.#counts.get(bearer) ?? 1) - 1;
      if (left > 0) this.#counts.set(bearer, left);
      else this.#counts.delete(bearer);
    });
  }

  /** Who is at the other end; undefined when the session was not admitted, or has just been ended for its age. */
  peerOf(session: Http2Session | undefined): Peer | undefined {
    const peer = session === undefined ? undefined : this.#peers.get(session);
    if (session === undefined || peer === undefined || !this.#hasExpired(peer)) return peer;
    this.#endExpired(session, peer);
    return undefined;
  }

  /** Asks every session to end after its calls in flight (GOAWAY). */
  closeAll(): void {
    this.#sweep?.cancel();
    for (const session of this.#peers.keys()) session.close();
  }

  #admissionOf(session: ServerHttp2Session): Admission {
    const { socket } = session;
    const remoteAddress = socket.remoteAddress ?? "unknown";
    const certificate = socket instanceof TLSSocket ? socket.getPeerX509Certificate() : undefined;
    const untrusted = constants.NGHTTP2_INADEQUATE_SECURITY;
    if (certificate === undefined) return refusal({ reason: "no_certificate", remoteAddress }, untrusted);
    const reading = readCertificate(certificate.raw);
    if (reading.kind === "refused") {
      return refusal({ reason: "identity_unreadable", remoteAddress, detail: reading.why }, untrusted);
    }
    const { identity, notAfterMs } = reading.facts;
    const peer: Peer = { identity, remoteAddress, notAfterMs };
    const because = (reason: RefusalReason, errorCode: number): Admission =>
      refusal({ reason, remoteAddress, identity }, errorCode);
    if (identity.runId !== this.#options.runId) return because("identity_of_other_run", untrusted);
    // A resumed TLS session is not checked again by TLS, and its certificate may have expired since.
    if (this.#hasExpired(peer)) return because("certificate_expired", untrusted);
    if (this.#isAtLimit(identity))
      return because("too_many_connections", constants.NGHTTP2_ENHANCE_YOUR_CALM);
    return { kind: "admitted", peer };
  }

  #isAtLimit(identity: Identity): boolean {
    const count = this.#counts.get(identityUri(identity)) ?? 0;
    return count >= this.#options.limits.maxConnectionsOf[identity.role];
  }

  #hasExpired(peer: Peer): boolean {
    return peer.notAfterMs <= this.#options.clock.wallMs();
  }

  #endExpired(session: Http2Session, peer: Peer): void {
    const { identity, remoteAddress } = peer;
    this.#options.trail.refuse({ reason: "certificate_expired", remoteAddress, identity });
    this.#peers.delete(session);
    session.destroy(new SessionRefused("certificate_expired"), constants.NGHTTP2_INADEQUATE_SECURITY);
  }

  #armSweep(): void {
    const { clock, limits } = this.#options;
    const sweep = (): void => {
      for (const [session, peer] of this.#peers) if (this.#hasExpired(peer)) this.#endExpired(session, peer);
      this.#armSweep();
    };
    this.#sweep = clock.after(limits.expirySweepMs, sweep, { background: true });
  }
}

function refusal(entry: AuditEntry, errorCode: number): Admission {
  return { kind: "refused", entry, errorCode };
}
