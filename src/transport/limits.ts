// Every limit of the transport, in one table. Node and Connect have no useful defaults for most of them: without these a
// stranger holds a connection for ever, and 300 KB of gzip arrive as 300 MB. Those of messages follow what a run allows.
import type { ItemLimits } from "../config/limits.ts";
import { LIMITS } from "../config/limits.ts";
import type { Role } from "./tls/identity.ts";

const KIB = 1_024;
const MIB = 1_024 * KIB;

/** Senders whose messages share a budget: heartbeats have one of their own, so that nothing that is large can hold them up. */
export type Lane = "heartbeats" | Role;

/** An amount that several bearers share: in all, and of one of them. */
export interface BudgetLimits {
  readonly total: number;
  readonly bearer: number;
}

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

/** The part of a message beside the largest item in it: the rest of a full frame, a checkpoint, a state, and what is around them. */
const BESIDE_AN_ITEM_BYTES = 4 * MIB;

/** A call that asks for something holds ids, a reason, where to go on. The most is 900 ids of items. */
const QUESTION: MethodLimits = { messageBytes: 64 * KIB };
/** 64 plugins are 19 KiB. */
const HEARTBEAT: MethodLimits = { messageBytes: 32 * KIB, lane: "heartbeats" };

const METHODS: Readonly<Record<string, MethodLimits>> = {
  "rollout.v1.HeartbeatService/Beat": HEARTBEAT,
  "rollout.v1.HeartbeatService/BeatStream": HEARTBEAT,
  // All attempts that it has, those with a result that is not acknowledged included: some 20,000, of eight fields each.
  "rollout.v1.WorkService/Session": { messageParts: 256 * KIB },
  "rollout.v1.WorkService/Pull": { messageBytes: 2 * MIB, messageParts: 256 * KIB },
  "rollout.v1.OperatorService/Submit": { messageBytes: LIMITS.dataMaxBytes + BESIDE_AN_ITEM_BYTES },
  ...Object.fromEntries(
    [
      ...["ListWorkers", "GetWorker", "DrainWorker", "Revoke"],
      ...["GetRun", "Seal", "Pause", "Resume", "Cancel", "Retry"],
      ...["ListResults", "GetItem", "GetAttemptLog", "WatchEvents", "WatchCharts", "BackUp"],
    ].map((name) => [`rollout.v1.OperatorService/${name}`, QUESTION]),
  ),
  // 100 keys.
  ...Object.fromEntries(
    ["GetKey", "ListKeys", "ListKeyHistory", "SteerKeys", "ListPartitions", "ExportKeys"].map((name) => [
      `rollout.v1.KeyService/${name}`,
      QUESTION,
    ]),
  ),
  // 16 stages, and 16 metrics with a pointer of 1 KiB each.
  ...Object.fromEntries(
    ["CreateRelease", "GetRelease", "ListReleases", "SteerRelease"].map((name) => [
      `rollout.v1.ReleaseService/${name}`,
      QUESTION,
    ]),
  ),
  ...Object.fromEntries(
    ["ListFleets", "SteerFleet", "CheckFleet", "GetAllocationLog"].map((name) => [
      `rollout.v1.FleetService/${name}`,
      QUESTION,
    ]),
  ),
  "rollout.v1.KeyService/ImportKeys": { messageBytes: LIMITS.dataMaxBytes + BESIDE_AN_ITEM_BYTES },
  "rollout.v1.WorkService/GetAssignment": QUESTION,
  "rollout.v1.CoordinatorService/Describe": QUESTION,
  "rollout.v1.CoordinatorService/StepDown": QUESTION,
  // A request for a certificate is at most 8 KiB. Making one takes milliseconds of a thread that everybody waits for.
  "rollout.v1.EnrolmentService/SignWorkerCertificate": {
    messageBytes: 9 * KIB,
    atOnce: { total: 2, bearer: 1 },
  },
};

export const TRANSPORT_LIMITS = {
  // Connections
  /** From TCP connect to the end of the TLS handshake, on both sides. A handshake takes milliseconds. */
  handshakeTimeoutMs: 5_000,
  /** The first part of it on a client's side: until the other host has answered at all. */
  connectTimeoutMs: 5_000,
  /** From the handshake to the first request. A client connects when it has something to ask. */
  firstRequestTimeoutMs: 10_000,
  /** A session on which nothing arrives, not even a ping, is closed. Several times the clients' ping interval. */
  idleSessionTimeoutMs: 60_000,
  /** All connections of the server together, about 86 KiB each. Beyond it TCP connections are closed at once. */
  maxConnections: 12_000,
  /**
   * Connections of one certificate's bearer. A worker needs one, and a few while it rotates or while dead ones are not
   * noticed yet; all new workers of a host share one enrolment bundle. At the limit the connection that has been without a
   * call for longest makes room; when each has one, a new connection is refused.
   */
  maxConnectionsOf: { worker: 8, operator: 64, enrolment: 2_048, coordinator: 8 },
  /**
   * Calls of one bearer at a time, over all its connections; of an enrolment bundle, which many hosts share, from one address.
   * Each may have one window (64 KiB) of bytes that nobody has read yet. Beyond it a call is refused and may be tried again.
   */
  maxCallsOf: { worker: 64, operator: 256, enrolment: 128, coordinator: 8 },
  /** How long a TLS session can be resumed: shorter than the time in which one wants a certificate to stop working. */
  ticketLifetimeMs: 300_000,
  /** How often sessions are looked through for certificates that have expired meanwhile. */
  expirySweepMs: 30_000,
  /** How long the sessions of a bearer that was revoked stay open, for answers on their way; nothing is asked on them any more. */
  revokedGraceMs: 250,

  // HTTP/2
  /** Streams of one session at a time. A worker has three. */
  maxConcurrentStreams: 100,
  /** Memory of one session's frames, headers and windows: several messages of full size in flight. */
  maxSessionMemoryMb: 40,
  /** Frames that break the protocol, before the session is closed. Ours sends none. */
  maxInvalidFrames: 32,
  /** Streams that a client opens beyond the limit before its session is closed. */
  maxRejectedStreams: 100,
  /** Resets by a client ("rapid reset"): so many at once, and so many a second after that. */
  streamResetBurst: 200,
  streamResetPerSecond: 20,
  /** All headers of a request together, 32 bytes for each beside its name and value. Ours need under 1 KiB. */
  maxHeaderBytes: 16 * KIB,
  maxHeaderPairs: 64,

  // Messages and calls
  /** One message, as a server reads and writes it: of workers, whose items are known to be no larger (`messageLimits`). */
  maxMessageBytes: LIMITS.payloadBytes + BESIDE_AN_ITEM_BYTES,
  /**
   * One message of those that operators exchange with their coordinator, and of those that anybody reads from it: as large
   * as a run can allow, so that a difference in configuration is refused by name and not by the size of a message.
   */
  maxTrustedMessageBytes: LIMITS.dataMaxBytes + BESIDE_AN_ITEM_BYTES,
  /** The longest deadline that a client may ask for. */
  maxTimeoutMs: 60_000,
  /**
   * Fields of one message and of those in it: each costs a hundred bytes and more when it is decoded, and as little as two before.
   * 10,000 items of five fields fit.
   */
  maxMessageParts: 64 * KIB,
  /** By the method's name (`rollout.v1.OperatorService/ListWorkers`). */
  methods: METHODS,
  /**
   * Bytes of messages that are being received, and of those that were and are neither written nor dropped: in all, and of one
   * bearer. A quarter is kept for messages of `smallMessageBytes` and less. A message is counted with its whole size before it is
   * read; when there is no room it is not read on, and its sender waits.
   */
  receivingBytes: {
    heartbeats: { total: 16 * MIB, bearer: 256 * KIB },
    worker: { total: 96 * MIB, bearer: 16 * MIB },
    operator: { total: 64 * MIB, bearer: 48 * MIB },
    enrolment: { total: 4 * MIB, bearer: MIB },
    coordinator: { total: MIB, bearer: MIB },
  },
  /** A call that says nothing of its size is read so far before the largest size of its method is counted. */
  smallMessageBytes: 64 * KIB,
  /**
   * How long a message may be on its way, from the headers of a unary request or the first byte of a message on a stream, beside
   * the time that its bytes take at the slowest. Time in which this side does not read does not count. Then its stream is closed.
   */
  messageTimeoutMs: 10_000,
  slowestBytesPerSecond: 64 * KIB,
  /** From the answer of a unary call to its last byte leaving: a client that does not read is not waited for. */
  answerTimeoutMs: 10_000,

  // Clients
  /** The deadline of a unary call that names none. */
  unaryTimeoutMs: 10_000,
  /** A ping after so long without data. Without pings a cut link is never noticed. */
  pingIntervalMs: 5_000,
  pingTimeoutMs: 2_000,
  /** A client's connection without streams is closed after this; the next call opens one. */
  idleConnectionTimeoutMs: 300_000,
  /** Waits between tries of a unary call, with full jitter, within its deadline. */
  retryBaseMs: 50,
  retryCeilingMs: 1_000,
  maxTries: 4,
  /** Waits between two rounds through coordinators of which none leads: with jitter, the longer half of up to so long. */
  roundCeilingMs: 500,
  /** How long a call that names no deadline goes on asking for the leader while a coordinator answers that it follows. */
  leaderPatienceMs: 30_000,
  /** A coordinator that took this long to say nothing is passed over for about two seconds while there are others. */
  slowSilenceMs: 1_000,
  /** Coordinators that a client has heard of from others and remembers, beside those that it was given. */
  maxHinted: 4,

  // Audit
  /**
   * Audit lines of one peer and reason at once, and a second after that; and of all together. Lines beyond are counted, and
   * the count is reported by peer and reason.
   */
  auditBurstOf: 20,
  auditPerSecondOf: 1,
  auditBurst: 1_000,
  auditPerSecond: 100,
};

export type TransportLimits = Readonly<typeof TRANSPORT_LIMITS>;

/** For a client that has several coordinators to ask: one that has vanished is left sooner. */
export const AMONG_SEVERAL: Partial<TransportLimits> = {
  handshakeTimeoutMs: 3_000,
  connectTimeoutMs: 1_500,
  pingIntervalMs: 2_000,
};

/** The limits of a server whose run allows items of this size: no larger than they need. */
export function messageLimits({
  payloadBytes,
  outputBytes,
}: Pick<ItemLimits, "payloadBytes" | "outputBytes">): Pick<
  TransportLimits,
  "maxMessageBytes" | "maxSessionMemoryMb"
> {
  const maxMessageBytes = Math.max(payloadBytes, outputBytes, LIMITS.payloadBytes) + BESIDE_AN_ITEM_BYTES;
  return { maxMessageBytes, maxSessionMemoryMb: Math.ceil((8 * maxMessageBytes) / MIB) };
}
