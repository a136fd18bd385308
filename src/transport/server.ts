// The coordinator's listener: HTTP/2 over mutual TLS 1.3, Connect on top, and a limit on everything. A request reaches a
// handler only from a live session whose certificate names a bearer of this run, and only if the access table names its
// role; whoever is refused, at whichever level, leaves one audit line.
import { Code, ConnectError } from "@connectrpc/connect";
import type { ConnectRouter } from "@connectrpc/connect";
import { createSecureServer } from "node:http2";
import type { Http2SecureServer } from "node:http2";
import type { Server, Socket } from "node:net";
import { assert } from "../base/assert.ts";
import type { Clock } from "../base/clock.ts";
import { isDoneWithin } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { Logger } from "../observe/log.ts";
import type { AccessTable } from "./caller.ts";
import { listenAt } from "../base/listening.ts";
import { AuditTrail, auditHandshakes } from "./audit.ts";
import type { Audit } from "./audit.ts";
import { callListener } from "./calls.ts";
import { Intake } from "./intake.ts";
import { TRANSPORT_LIMITS } from "./limits.ts";
import type { TransportLimits } from "./limits.ts";
import { Sessions } from "./sessions.ts";
import { readCertificatePem } from "./tls/certificate-reading.ts";
import { SERVER_DEMANDS, serverContext } from "./tls/contexts.ts";
import type { Credentials, Role } from "./tls/identity.ts";

export interface ServerOptions {
  /** `host:port`; port 0 takes a free one. */
  readonly listenAddr: string;
  /** The coordinator's. The run that it serves is the one its certificate names. */
  readonly credentials: Credentials;
  readonly routes: (router: ConnectRouter) => void;
  readonly access: AccessTable;
  /** Ids of bearers that are kept out from the beginning; none unless said. */
  readonly revoked?: Iterable<string>;
  readonly limits?: Partial<TransportLimits>;
  readonly log: Logger;
  readonly audit: Audit;
  readonly clock: Clock;
}

export interface RunningServer {
  /** `host:port` as clients of this machine write it, with the port that was taken. */
  readonly address: string;
  readonly port: number;
  /** New connections meet the new certificate and authority; live sessions go on. Same run, same role. */
  readonly setCredentials: (credentials: Credentials) => void;
  /** Calls are handled by these from now on; those under way go on. */
  readonly setRoutes: (routes: (router: ConnectRouter) => void) => void;
  /** Keeps these bearers out: no call of theirs is taken from now on, and their open streams end within a second. */
  readonly revoke: (ids: readonly string[]) => void;
  /** Bytes of messages that are in memory and not yet written or dropped. */
  readonly intakeBytes: () => number;
  /** Whether a bearer of this role is connected who has begun or ended a call within the last `ms`. */
  readonly hasCalled: (role: Role, ms: number) => boolean;
  /**
   * Takes no more connections, tells handlers (`context.signal`) and clients (GOAWAY), waits up to `graceMs` for calls in
   * flight, then ends what is left. Resolves when the port is free. Idempotent.
   */
  close(graceMs: number): Promise<void>;
}

/** Starts to listen. Fails with listen_failed. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const limits: TransportLimits = { ...TRANSPORT_LIMITS, ...options.limits };
  const { clock, credentials, log } = options;
  const runId = coordinatorRun(credentials);
  const server = createSecureServer({
    ...serverContext(credentials, limits.ticketLifetimeMs),
    ...SERVER_DEMANDS,
    ...http2Limits(limits),
  });
  const trail = new AuditTrail(options.audit, clock, limits);
  const sessions = new Sessions({ runId, clock, limits, trail, revoked: options.revoked ?? [] });
  const intake = new Intake(limits);
  const shutdown = new AbortController();
  const sockets = trackSockets(server);
  auditHandshakes(server, trail);
  server.maxConnections = limits.maxConnections;
  server.on("session", (session) => sessions.open(session));
  const calls = callListener({ ...options, limits, sessions, intake, trail, shutdown: shutdown.signal });
  server.on("request", calls.onRequest);
  const { address, port } = await listenAt(server, options.listenAddr, "transport.listen_addr");
  // For instance no file descriptor left to accept with: the connections that are there go on.
  server.on("error", (error: Error) => log.warn("the listener reported an error", { err: error }));

  const end = async (graceMs: number): Promise<void> => {
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()));
    shutdown.abort(new ConnectError("the coordinator shuts down", Code.Unavailable));
    sessions.closeAll();
    await isDoneWithin(clock, graceMs, closed);
    for (const socket of sockets) socket.destroy();
    await closed;
    trail.flush();
  };
  let ended: Promise<void> | undefined;
  return {
    address,
    port,
    setCredentials: (next) => {
      assert(coordinatorRun(next) === runId, "a server keeps its run when it changes its certificate");
      server.setSecureContext(serverContext(next, limits.ticketLifetimeMs));
    },
    setRoutes: calls.setRoutes,
    revoke: (ids) => sessions.revoke(ids),
    intakeBytes: () => intake.taken,
    hasCalled: (role, ms) => sessions.hasCalled(role, ms),
    close: (graceMs) => (ended ??= end(graceMs)),
  };
}

function coordinatorRun(credentials: Credentials): RunId {
  const reading = readCertificatePem(credentials.certificatePem);
  assert(reading.kind === "identified", "a server is given a certificate of ours");
  assert(reading.facts.identity.role === "coordinator", "a server is given a coordinator's certificate");
  return reading.facts.identity.runId;
}

function http2Limits(limits: TransportLimits): Parameters<typeof createSecureServer>[0] {
  return {
    allowHTTP1: false,
    handshakeTimeout: limits.handshakeTimeoutMs,
    unknownProtocolTimeout: limits.handshakeTimeoutMs,
    maxSessionMemory: limits.maxSessionMemoryMb,
    maxSessionInvalidFrames: limits.maxInvalidFrames,
    maxSessionRejectedStreams: limits.maxRejectedStreams,
    maxHeaderListPairs: limits.maxHeaderPairs,
    streamResetBurst: limits.streamResetBurst,
    streamResetRate: limits.streamResetPerSecond,
    settings: {
      enablePush: false,
      maxConcurrentStreams: limits.maxConcurrentStreams,
      maxHeaderListSize: limits.maxHeaderBytes,
    },
  };
}

function trackSockets(server: Http2SecureServer & Server): ReadonlySet<Socket> {
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  return sockets;
}
