// Every limit of the transport, in one table. Node and Connect have no useful defaults for most of them: without these a
// stranger holds a connection for ever, and 300 KB of gzip arrive as 300 MB. Those of messages follow what a run allows.
import type { ItemLimits } from "../config/limits.ts";
import { LIMITS } from "../config/limits.ts";
import type { BudgetLimits } from "./fair-budget.ts";
import type { Role } from "./tls/identity.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** Senders whose messages share a budget: heartbeats have one of their own, so that nothing that is large can hold them up. */
export type Lane = "heartbeats" | Role;

/** How a method differs from the others of its callers. */
export interface MethodLimits {
  /** One message of it; `maxMessageBytes` unless said. */
  readonly messageBytes?: number;
  /** `maxMessageParts` unless said. */
  readonly messageParts?: number;
  /** The role of its caller unless said. */
  readonly lane?: "heartbeats";
  /** How many calls of it are answered at once, all together and of one bearer. Others wait in turn. */
  readonly atOnce?: BudgetLimits;
}

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
   * noticed yet; all new workers of a host share one enrolment bundle. At the limit the connection that has been without a
   * call for longest makes room; when each has one, a new connection is refused.
   */
  readonly maxConnectionsOf: Readonly<Record<Role, number>>;
  /**
   * Calls of one bearer at a time, over all its connections; of an enrolment bundle, which many hosts share, from one address.
   * Each may have one window (64 KiB) of bytes that nobody has read yet. Beyond it a call is refused and may be tried again.
   */
  readonly maxCallsOf: Readonly<Record<Role, number>>;
  /** How long a TLS session can be resumed: shorter than the time in which one wants a certificate to stop working. */
  readonly ticketLifetimeMs: number;
  /** How often sessions are looked through for certificates that have expired meanwhile. */
  readonly expirySweepMs: number;
  /** How long the sessions of a bearer that was revoked stay open, for answers on their way; nothing is asked on them any more. */
  readonly revokedGraceMs: number;

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
  /** All headers of a request together, 32 bytes for each beside its name and value. Ours need under 1 KiB. */
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
  /** Fields of one message and of those in it: each costs a hundred bytes and more when it is decoded, and as little as two before. */
  readonly maxMessageParts: number;
  /** By the method's name (`rollout.v1.RunService/ListWorkers`). */
  readonly methods: Readonly<Record<string, MethodLimits>>;
  /**
   * Bytes of messages that are being received, and of those that were and are neither written nor dropped: in all, and of one
   * bearer. A quarter is kept for messages of `smallMessageBytes` and less. A message is counted with its whole size before it is
   * read; when there is no room it is not read on, and its sender waits.
   */
  readonly receivingBytes: Readonly<Record<Lane, BudgetLimits>>;
  /** A call that says nothing of its size is read so far before the largest size of its method is counted. */
  readonly smallMessageBytes: number;
  /**
   * How long a message may be on its way, from the headers of a unary request or the first byte of a message on a stream, beside
   * the time that its bytes take at the slowest. Time in which this side does not read does not count. Then its stream is closed.
   */
  readonly messageTimeoutMs: number;
  readonly slowestBytesPerSecond: number;
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
  /**
   * Audit lines of one peer and reason at once, and a second after that; and of all together. Lines beyond are counted, and
   * the count is reported by peer and reason.
   */
  readonly auditBurstOf: number;
  readonly auditPerSecondOf: number;
  readonly auditBurst: number;
  readonly auditPerSecond: number;
}

/** The part of a message beside the largest item in it: the rest of a full frame, a checkpoint, and what is around them. */
const BESIDE_AN_ITEM_BYTES = 3 * MIB;

/** A call that asks for something holds ids, a reason, where to go on. The most is 1,000 ids of items. */
const QUESTION: MethodLimits = { messageBytes: 64 * KIB };
/** 64 plugins are 17 KiB. */
const HEARTBEAT: MethodLimits = { messageBytes: 32 * KIB, lane: "heartbeats" };

const METHODS: TransportLimits["methods"] = {
  "rollout.v1.HeartbeatService/Beat": HEARTBEAT,
  "rollout.v1.HeartbeatService/BeatStream": HEARTBEAT,
  // All attempts that it has, those with a result that is not acknowledged included: some 20,000, of seven fields each.
  "rollout.v1.WorkService/Session": { messageParts: 256 * KIB },
  "rollout.v1.WorkService/Pull": { messageBytes: 2 * MIB, messageParts: 256 * KIB },
  "rollout.v1.RunService/Submit": { messageBytes: LIMITS.dataMaxBytes + BESIDE_AN_ITEM_BYTES },
  ...Object.fromEntries(
    [
      ...["ListWorkers", "GetWorker", "DrainWorker", "Revoke"],
      ...["GetRun", "Seal", "Pause", "Resume", "Cancel", "Retry"],
      ...["ListResults", "GetItem", "GetAttemptLog", "WatchEvents"],
    ].map((name) => [`rollout.v1.RunService/${name}`, QUESTION]),
  ),
  // A request for a certificate is at most 8 KiB. Making one takes milliseconds of a thread that everybody waits for.
  "rollout.v1.EnrolmentService/SignWorkerCertificate": {
    messageBytes: 9 * KIB,
    atOnce: { total: 2, bearer: 1 },
  },
};

export const TRANSPORT_LIMITS: TransportLimits = {
  handshakeTimeoutMs: 5_000,
  firstRequestTimeoutMs: 10_000,
  idleSessionTimeoutMs: 60_000,
  maxConnections: 12_000,
  maxConnectionsOf: { worker: 8, operator: 64, enrolment: 2_048, coordinator: 8 },
  maxCallsOf: { worker: 64, operator: 256, enrolment: 128, coordinator: 8 },
  ticketLifetimeMs: 300_000,
  expirySweepMs: 30_000,
  revokedGraceMs: 250,

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
  // 10,000 items of five fields.
  maxMessageParts: 64 * KIB,
  methods: METHODS,
  receivingBytes: {
    heartbeats: { total: 16 * MIB, bearer: 256 * KIB },
    worker: { total: 96 * MIB, bearer: 16 * MIB },
    operator: { total: 64 * MIB, bearer: 48 * MIB },
    enrolment: { total: 4 * MIB, bearer: MIB },
    coordinator: { total: MIB, bearer: MIB },
  },
  smallMessageBytes: 64 * KIB,
  messageTimeoutMs: 10_000,
  slowestBytesPerSecond: 64 * KIB,
  answerTimeoutMs: 10_000,

  unaryTimeoutMs: 10_000,
  pingIntervalMs: 5_000,
  pingTimeoutMs: 2_000,
  idleConnectionTimeoutMs: 300_000,
  retryBaseMs: 50,
  retryCeilingMs: 1_000,
  maxTries: 4,

  auditBurstOf: 20,
  auditPerSecondOf: 1,
  auditBurst: 1_000,
  auditPerSecond: 100,
};

/** The limits of a server whose run allows items of this size: no larger than they need. */
export function messageLimits({
  payloadBytes,
  outputBytes,
}: ItemLimits): Pick<TransportLimits, "maxMessageBytes" | "maxSessionMemoryMb"> {
  const maxMessageBytes = Math.max(payloadBytes, outputBytes, LIMITS.payloadBytes) + BESIDE_AN_ITEM_BYTES;
  return { maxMessageBytes, maxSessionMemoryMb: Math.ceil((8 * maxMessageBytes) / MIB) };
}
