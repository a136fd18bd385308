// One connection to the coordinator at a time, under one set of credentials. Connect's session manager opens and keeps it;
// this adds what it lacks: a listener for late errors, a limit on connecting, the resumption of TLS sessions, and a record of
// why a connection ended.
import { Http2SessionManager } from "@connectrpc/connect-node";
import { constants } from "node:http2";
import type { ClientHttp2Stream, Http2Session } from "node:http2";
import { connect as connectTls } from "node:tls";
import type { TLSSocket } from "node:tls";
import type { Clock } from "../base/clock.ts";
import type { RunId } from "../base/ids.ts";
import type { Address } from "../base/address.ts";
import { formatAddress } from "../base/address.ts";
import { ConnectionRecord } from "./connection-record.ts";
import type { ConnectionReport } from "./connection-record.ts";
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

export class Link extends Http2SessionManager {
  readonly #options: LinkOptions;
  readonly #sessions = new Set<Http2Session>();
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
  }

  /** The record of the latest connection; undefined before the first. */
  get report(): ConnectionReport | undefined {
    return this.#record;
  }

  /** Whether it is retired and has nothing left to finish. */
  get isSpent(): boolean {
    return this.#retired && [...this.#sessions].every((session) => session.destroyed);
  }

  /** Ends the connection and every call on it. */
  end(): void {
    this.abort();
    for (const session of this.#sessions) session.destroy();
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
    const { address, clock, credentials, limits, runId } = this.#options;
    const record = new ConnectionRecord(this.#record);
    this.#record = record;
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
    socket.once("connect", () => (record.phase = "securing"));
    socket.once("secureConnect", () => {
      deadline.cancel();
      record.phase = "secured";
    });
    socket.on("session", (session) => (this.#ticket = session));
    socket.on("error", (error: Error) => record.failed(error));
    socket.once("close", () => {
      deadline.cancel();
      record.ended = true;
      if (record.phase !== "serving") this.#ticket = undefined;
    });
    return socket;
  }
}
