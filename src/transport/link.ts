// One connection to the coordinator at a time, under one set of credentials. Connect's session manager opens and keeps it;
// this adds what it lacks: a listener for late errors, a limit on connecting, the resumption of TLS sessions, and a record of
// why a connection ended.
import { Http2SessionManager } from "@connectrpc/connect-node";
import { constants } from "node:http2";
import type { ClientHttp2Stream, Http2Session } from "node:http2";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import type { Clock, Timer } from "../base/clock.ts";
import { codeOf } from "../base/errors.ts";
import type { RunId } from "../base/ids.ts";
import type { Address } from "../base/address.ts";
import { formatAddress } from "../base/address.ts";
import type { TransportLimits } from "./limits.ts";
import { clientContext } from "./tls/contexts.ts";
import type { Credentials } from "./tls/identity.ts";

export interface LinkOptions {
  readonly address: Address;
  readonly runId: RunId;
  readonly credentials: Credentials;
  readonly clock: Clock;
  readonly limits: TransportLimits;
}

/** The error of a handshake that was not done in time; the code is the system's for the same thing. */
class HandshakeTimeout extends Error {
  override readonly name = "HandshakeTimeout";
  readonly code = "ETIMEDOUT";
}

/** The manager's state while it is connected, as far as it matters here. */
interface Verifiable {
  readonly verify: () => Promise<boolean>;
}

export class Link extends Http2SessionManager {
  readonly #options: LinkOptions;
  readonly #sessions = new Set<Http2Session>();
  readonly #probes = new Set<TLSSocket>();
  #record: ConnectionRecord | undefined;
  #ticket: Buffer | undefined;
  #retired = false;

  constructor(options: LinkOptions) {
    const { limits } = options;
    super(
      `https://${formatAddress(options.address)}`,
      {
        pingIntervalMs: limits.pingIntervalMs,
        pingTimeoutMs: limits.pingTimeoutMs,
        pingIdleConnection: true,
        idleConnectionTimeoutMs: limits.idleConnectionTimeoutMs,
      },
      {
        createConnection: () => this.#dial(),
        maxSessionMemory: limits.maxSessionMemoryMb,
        maxHeaderListPairs: limits.maxHeaderPairs,
        settings: { enablePush: false, maxHeaderListSize: limits.maxHeaderBytes },
      },
    );
    this.#options = options;
    // The manager verifies a session that was quiet by a ping. One that fails is destroyed, and a call that comes in that moment connects
    // anew. The manager's own verification then connects once more, and the first connection, given up without a listener for its error, ends
    // the process. Here it connects only where nobody has.
    let verifying: Promise<void> | undefined;
    const verify = async (session: Verifiable): Promise<void> => {
      const isAlive = await session.verify();
      verifying = undefined;
      if (!isAlive) void this.connect();
    };
    Object.assign(this, { verify: (session: Verifiable) => (verifying ??= verify(session)) });
  }

  /** The record of the latest connection; undefined before the first. */
  get report(): ConnectionRecord | undefined {
    return this.#record;
  }

  /** Whether it is retired and has nothing left to finish. */
  get isSpent(): boolean {
    return this.#retired && [...this.#sessions].every((session) => session.destroyed);
  }

  /** Whether a connection can be made, up to the end of its handshake; calls do not go over it. Rejects when it cannot be tried. */
  async probe(): Promise<boolean> {
    const { promise, resolve } = Promise.withResolvers<boolean>();
    const { socket } = this.#connect();
    this.#probes.add(socket);
    socket.once("secureConnect", () => {
      resolve(true);
      // A ticket follows in the same breath: with it the connection that calls go over costs less.
      socket.once("session", () => socket.destroy());
    });
    // The end follows.
    socket.on("error", () => undefined);
    socket.once("close", () => {
      this.#probes.delete(socket);
      resolve(false);
    });
    return promise;
  }

  /** Ends the connection and every call on it. */
  end(): void {
    this.abort();
    for (const session of this.#sessions) session.destroy();
    for (const socket of this.#probes) socket.destroy();
  }

  /** Lets calls in flight finish and then closes. No call is begun on a link that is retired. */
  retire(): void {
    this.#retired = true;
    for (const session of this.#sessions) session.close();
  }

  override async request(...request: Parameters<Http2SessionManager["request"]>): Promise<ClientHttp2Stream> {
    const stream = await super.request(...request);
    if (stream.session !== undefined) this.#guard(stream.session);
    return stream;
  }

  /** Runs at a session's first request: before that nothing can have arrived on it. */
  #guard(session: Http2Session): void {
    // A call that was waiting for its connection when the link was retired.
    if (this.#retired) session.close();
    if (this.#sessions.has(session)) return;
    const record = this.#record;
    // Node does not tell of the end of a session that a TLS alert ended, so the dead are looked for.
    for (const known of this.#sessions) if (known.destroyed) this.#sessions.delete(known);
    this.#sessions.add(session);
    // The manager takes its own listener away before the last error may come, and an error without a listener ends the
    // process. All that is known of it is on record.
    session.on("error", () => undefined);
    // It also pings once more after the end, when that ends the last stream, and Node throws where nobody can catch it.
    const ping = session.ping.bind(session);
    Object.assign(session, {
      ping: (...args: Parameters<typeof ping>) => !session.destroyed && ping(...args),
    });
    session.once("remoteSettings", () => {
      if (record !== undefined) record.phase = "serving";
    });
    session.on("goaway", (code) => {
      if (record !== undefined && code !== constants.NGHTTP2_NO_ERROR) record.goawayCode = code;
    });
  }

  #dial(): TLSSocket {
    const record = new ConnectionRecord(this.#record);
    this.#record = record;
    const { socket, deadline } = this.#connect();
    socket.once("connect", () => (record.phase = "securing"));
    socket.once("secureConnect", () => {
      deadline.cancel();
      record.phase = "secured";
    });
    socket.on("error", (error: Error) => record.failed(error));
    socket.once("close", () => {
      record.ended = true;
      if (record.phase !== "serving") this.#ticket = undefined;
    });
    return socket;
  }

  /** `deadline` ends it, whatever has become of it, unless it is cancelled. */
  #connect(): { readonly socket: TLSSocket; readonly deadline: Timer } {
    const { address, clock, credentials, limits, runId } = this.#options;
    // A resumed session repeats no check of the coordinator's certificate: the ticket came from one that was checked under the
    // same credentials. It is used once, and after a failure the next connection is a full handshake.
    const ticket = this.#ticket;
    this.#ticket = undefined;
    const socket = connectTls({
      ...clientContext(credentials, runId),
      host: address.host,
      port: address.port,
      ...(ticket === undefined ? {} : { session: ticket }),
    });
    const giveUp = (): void => void socket.destroy(new HandshakeTimeout());
    const deadline = clock.after(limits.handshakeTimeoutMs, giveUp, { background: true });
    const connecting = clock.after(limits.connectTimeoutMs, giveUp, { background: true });
    socket.once("connect", () => connecting.cancel());
    socket.on("session", (session) => (this.#ticket = session));
    socket.once("close", () => {
      deadline.cancel();
      connecting.cancel();
    });
    return { socket, deadline };
  }
}

/**
 * How far a connection got. Under TLS 1.3 a client is `secured` before the server has looked at its certificate; that it was
 * accepted shows in the server's first frame (`serving`).
 */
type ConnectionPhase = "connecting" | "securing" | "secured" | "serving";

/** The course of one connection of a client, as codes and facts: the material from which a failed call is explained. */
export class ConnectionRecord {
  phase: ConnectionPhase = "connecting";
  ended = false;
  /** The error that ended it, with its code: of the system, of TLS, or of our own check of the coordinator's certificate. */
  error: Error | undefined;
  errorCode: string | undefined;
  /** The HTTP/2 code with which the server said goodbye, other than the friendly one. */
  goawayCode: number | undefined;
  /** A fact about the connection before, not its record: records must not form a chain that grows for ever. */
  readonly #isSecond: boolean;

  constructor(previous: ConnectionRecord | undefined) {
    this.#isSecond = previous !== undefined && previous.#isShutOut;
  }

  /** The socket's error: its end is certain, though it is told in a later turn. */
  failed(error: Error): void {
    this.ended = true;
    this.error = error;
    this.errorCode = codeOf(error);
  }

  /** Whether this connection and the one before it were both closed by the server as soon as they were `secured`. */
  get refusedTwice(): boolean {
    return this.#isSecond && this.#isShutOut;
  }

  get #isShutOut(): boolean {
    return this.ended && this.phase === "secured";
  }
}
