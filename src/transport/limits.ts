// Every limit of the transport, in one table. Node and Connect have no useful defaults for most of them: without these a
// stranger holds a connection for ever, and 300 KB of gzip arrive as 300 MB. Those of messages follow what a run allows.
import type { ItemLimits } from "../config/limits.ts";
import { LIMITS } from "../config/limits.ts";
import type { Role } from "./tls/identity.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

export interface TransportLimits {
  // Connections
  /** From TCP connect to the end of the TLS handshake, on both sides. A handshake takes milliseconds. */
  readonly handshakeTimeoutMs: number;
  /** From the handshake to the first request. A client connects when it has something to ask. */
  readonly firstRequestTimeoutMs: number;
  /** A session on which nothing arrives, not even a ping, is closed. Several times the clients' ping interval. */
  readonly idleSessionTimeoutMs: number;
  /** All connections of the server together, about 86 KiB each. Beyond it TCP connections are closed at once. */
  readonly maxConnections: number;
  /**
   * Connections of one certificate's bearer. A worker needs one, and a few while it rotates or while dead ones are not
   * noticed yet; all new workers of a host share one enrolment bundle.
   */
  readonly maxConnectionsOf: Readonly<Record<Role, number>>;
  /** How long a TLS session can be resumed: shorter than the time in which one wants a certificate to stop working. */
  readonly ticketLifetimeMs: number;
  /** How often sessions are looked through for certificates that have expired meanwhile. */
  readonly expirySweepMs: number;

  // HTTP/2
  /** Streams of one session at a time. A worker has three. */
  readonly maxConcurrentStreams: number;
  /** Memory of one session's frames, headers and windows: several messages of full size in flight. */
  readonly maxSessionMemoryMb: number;
  /** Frames that break the protocol, before the session is closed. Ours sends none. */
  readonly maxInvalidFrames: number;
  /** Streams that a client opens beyond the limit before its session is closed. */
  readonly maxRejectedStreams: number;
  /** Resets by a client ("rapid reset"): so many at once, and so many a second after that. */
  readonly streamResetBurst: number;
  readonly streamResetPerSecond: number;
  /** All headers of a request together. Ours need under 1 KiB. */
  readonly maxHeaderBytes: number;
  readonly maxHeaderPairs: number;

  // Messages and calls
  /** One message, as a server reads and writes it: of workers, whose items are known to be no larger (`messageLimits`). */
  readonly maxMessageBytes: number;
  /**
   * One message of those that operators exchange with their coordinator, and of those that anybody reads from it: as large
   * as a run can allow, so that a difference in configuration is refused by name and not by the size of a message.
   */
  readonly maxTrustedMessageBytes: number;
  /** The longest deadline that a client may ask for. */
  readonly maxTimeoutMs: number;
  /** From its headers to the last byte of a unary request. */
  readonly requestBodyTimeoutMs: number;
  /** From the answer of a unary call to its last byte leaving: a client that does not read is not waited for. */
  readonly answerTimeoutMs: number;

  // Clients
  /** The deadline of a unary call that names none. */
  readonly unaryTimeoutMs: number;
  /** A ping after so long without data. Without pings a cut link is never noticed. */
  readonly pingIntervalMs: number;
  readonly pingTimeoutMs: number;
  /** A client's connection without streams is closed after this; the next call opens one. */
  readonly idleConnectionTimeoutMs: number;
  /** Waits between tries of a unary call, with full jitter, within its deadline. */
  readonly retryBaseMs: number;
  readonly retryCeilingMs: number;
  readonly maxTries: number;

  // Audit
  /** Audit lines at once, and a second after that; what is beyond is counted and reported as one line. */
  readonly auditBurst: number;
  readonly auditPerSecond: number;
}

/** What a message has beside the largest item in it: the rest of a full frame, a checkpoint, and what is around them. */
const BESIDE_AN_ITEM_BYTES = 3 * MIB;

export const TRANSPORT_LIMITS: TransportLimits = {
  handshakeTimeoutMs: 5_000,
  firstRequestTimeoutMs: 10_000,
  idleSessionTimeoutMs: 60_000,
  maxConnections: 12_000,
  maxConnectionsOf: { worker: 8, operator: 64, enrolment: 2_048, coordinator: 8 },
  ticketLifetimeMs: 300_000,
  expirySweepMs: 30_000,

  maxConcurrentStreams: 100,
  maxSessionMemoryMb: 32,
  maxInvalidFrames: 32,
  maxRejectedStreams: 100,
  streamResetBurst: 200,
  streamResetPerSecond: 20,
  maxHeaderBytes: 16 * KIB,
  maxHeaderPairs: 64,

  maxMessageBytes: LIMITS.payloadBytes + BESIDE_AN_ITEM_BYTES,
  maxTrustedMessageBytes: LIMITS.dataMaxBytes + BESIDE_AN_ITEM_BYTES,
  maxTimeoutMs: 60_000,
  requestBodyTimeoutMs: 10_000,
  answerTimeoutMs: 10_000,

  unaryTimeoutMs: 10_000,
  pingIntervalMs: 5_000,
  pingTimeoutMs: 2_000,
  idleConnectionTimeoutMs: 300_000,
  retryBaseMs: 50,
  retryCeilingMs: 1_000,
  maxTries: 4,

  auditBurst: 100,
  auditPerSecond: 10,
};

/** The limits of a server whose run allows items of this size: no larger than they need. */
export function messageLimits({
  payloadBytes,
  outputBytes,
}: ItemLimits): Pick<TransportLimits, "maxMessageBytes" | "maxSessionMemoryMb"> {
  const maxMessageBytes = Math.max(payloadBytes, outputBytes, LIMITS.payloadBytes) + BESIDE_AN_ITEM_BYTES;
  return { maxMessageBytes, maxSessionMemoryMb: Math.ceil((8 * maxMessageBytes) / MIB) };
}
