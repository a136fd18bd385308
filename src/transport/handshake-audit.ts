// Refusals that TLS itself makes, told in our words. Node reports all of them in one event, some with a code of OpenSSL, some
// only with what it found wrong with the certificate.
import { Socket } from "node:net";
import type { Server } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Http2SecureServer } from "node:http2";
import type { AuditTrail, RefusalReason } from "./audit.ts";

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

function codeOf(error: Error): string | undefined {
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}

/** The connection under a TLS socket. Node has no public name for it; without it the line says `unknown`. */
function tcpSocketOf(socket: TLSSocket): Socket | undefined {
  const parent: unknown = "_parent" in socket ? socket._parent : undefined;
  return parent instanceof Socket ? parent : undefined;
}
