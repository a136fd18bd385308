// The port at which programs connect that speak the protocol of `@statelyai/inspect`: on loopback alone, and for those who have the token.
//
// Keeps true: nothing that a connection sends ends this process or holds it up, and nothing is ever sent back.
import { createServer } from "node:http";
import type { IncomingMessage, Server } from "node:http";
import type { Duplex } from "node:stream";
import { WebSocketServer } from "ws";
import type { RawData, WebSocket } from "ws";
import { isLoopback, parseAddress } from "../base/address.ts";
import { assert } from "../base/assert.ts";
import type { Clock, Timer } from "../base/clock.ts";
import { listenAt } from "../base/listening.ts";
import type { Random } from "../base/random.ts";
import { printable } from "../base/safe-text.ts";
import type { Logger } from "../observe/log.ts";
import { isOfThisMachine } from "../observe/loopback-server.ts";
import { Drawing } from "./drawing.ts";
import { Entrance, newToken } from "./entrance.ts";
import type { Programs as ProgramsDoor } from "./news-source.ts";
import type { ChartPicture, PageNews } from "./page-messages.ts";
import { PROGRAM_LIMITS } from "./program-limits.ts";
import type { ProgramView } from "./program.ts";
import { Programs } from "./programs.ts";
import { ReadingBudget } from "./reading-budget.ts";
import { readMessage } from "./stately-messages.ts";

export interface ProgramListenerOptions {
  /** `host:port` of loopback; port 0 takes a free one. */
  readonly listenAddr: string;
  /** How messages name the place where the user says it. */
  readonly setting: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** How long the chart of a program may take to be laid out. */
  readonly drawingLimitMs?: number;
}

const NAME_CHARACTERS_MAX = 100;
const PATIENCE_MS = 5_000;
const HEADER_BYTES = 8 * 1_024;
/** Beside those of programs: some may be about to be turned away. */
const CONNECTIONS = PROGRAM_LIMITS.programs + 32;
/** A program that has vanished is noticed within two of them. */
const PING_MS = 15_000;

export class ProgramListener implements ProgramsDoor {
  /** With the token: `ws://127.0.0.1:PORT/?token=…`, for `createWebSocketInspector({ url })`. */
  readonly listensAt: string;
  readonly #options: ProgramListenerOptions;
  readonly #http: Server;
  readonly #sockets: WebSocketServer;
  readonly #drawing: Drawing;
  readonly #programs: Programs;
  readonly #budget = new ReadingBudget();

  private constructor(
    options: ProgramListenerOptions,
    how: { readonly http: Server; readonly address: string; readonly token: string },
  ) {
    this.#options = options;
    this.#http = how.http;
    this.listensAt = `ws://${how.address}/?token=${how.token}`;
    const { clock, log, drawingLimitMs: limitMs } = options;
    this.#drawing = new Drawing({ clock, ...(limitMs !== undefined && { limitMs }) });
    this.#programs = new Programs({ clock, log, drawing: this.#drawing });
    this.#sockets = new WebSocketServer({
      ...{ noServer: true, perMessageDeflate: false, clientTracking: true, autoPong: false },
      maxPayload: PROGRAM_LIMITS.messageBytes,
    });
    const admits = admission(how.token);
    this.#http.on("upgrade", (request: IncomingMessage, socket: Duplex, head: Buffer) => {
      socket.on("error", () => socket.destroy());
      const refusal = admits(request) ?? this.#fullness();
      if (refusal !== undefined) return refuse(socket, refusal);
      this.#sockets.handleUpgrade(request, socket, head, (connection) =>
        this.#welcome(connection, nameIn(request)),
      );
    });
  }

  /** Fails with listen_failed. */
  static async open(options: ProgramListenerOptions): Promise<ProgramListener> {
    const { listenAddr, setting, random, log } = options;
    assert(isLoopback(parseAddress(listenAddr)?.host ?? ""), "programs are listened to on loopback alone");
    const http = createServer(
      { maxHeaderSize: HEADER_BYTES, headersTimeout: PATIENCE_MS, requestTimeout: PATIENCE_MS },
      (_, response) => {
        response.writeHead(426, { "content-type": "text/plain", connection: "close" });
        response.end("programs connect here by the protocol of @statelyai/inspect\n");
      },
    );
    http.maxConnections = CONNECTIONS;
    const { address } = await listenAt(http, listenAddr, setting);
    http.on("error", (err: Error) => log.warn("a listener reported an error", { err, address }));
    return new ProgramListener(options, { http, address, token: newToken(random) });
  }

  /** All that is known now, for a page that has just come. */
  whole(): readonly PageNews[] {
    return this.#programs.whole();
  }

  /** Tells what is new from now on, until the function that it returns is called. Followed by one at a time. */
  follow(told: (news: PageNews) => void): () => void {
    return this.#programs.follow(told);
  }

  /** Undefined when there is none, or none that can be drawn. */
  definition(programId: string, hash: string): Promise<ChartPicture | undefined> {
    return this.#programs.definition(programId, hash);
  }

  /** Connections are cut off. Resolves when the port is free. */
  async close(): Promise<void> {
    this.#programs.close();
    for (const connection of this.#sockets.clients) connection.terminate();
    const closed = new Promise((resolve) => this.#http.close(resolve));
    this.#http.closeAllConnections();
    await closed;
    await this.#drawing.close();
  }

  #fullness(): string | undefined {
    return this.#programs.connected < PROGRAM_LIMITS.programs ? undefined : "503 Service Unavailable";
  }

  #welcome(connection: WebSocket, name: string | undefined): void {
    const { log, clock } = this.#options;
    const view = this.#programs.connect(name);
    log.info("a program is connected", { program: view.programId, name });
    const reader = new ConnectionReader(connection, view, this.#programs, this.#budget, clock);
    connection.on("message", (data, isBinary) => reader.read(data, isBinary));
    connection.on("ping", (data) => reader.answer(data));
    connection.on("error", (error) => reader.failed(error));
    connection.on("close", () => {
      reader.end();
      this.#programs.disconnect(view);
      log.info("a program has gone", { program: view.programId });
    });
  }
}

/** One connection: how much of it is read, and whether somebody is still there. */
class ConnectionReader {
  readonly #connection: WebSocket;
  readonly #view: ProgramView;
  readonly #programs: Programs;
  readonly #budget: ReadingBudget;
  readonly #spender: ReturnType<ReadingBudget["newSpender"]>;
  readonly #clock: Clock;
  readonly #strange = new Map<string, number>();
  #skipped = 0;
  #pausing: Timer | undefined;
  #pinging: Timer | undefined;
  #isAlive = true;

  constructor(
    connection: WebSocket,
    view: ProgramView,
    programs: Programs,
    budget: ReadingBudget,
    clock: Clock,
  ) {
    this.#connection = connection;
    this.#view = view;
    this.#programs = programs;
    this.#budget = budget;
    this.#spender = budget.newSpender();
    this.#clock = clock;
    connection.on("pong", () => (this.#isAlive = true));
    this.#ping();
  }

  read(data: RawData, isBinary: boolean): void {
    const bytes = data as Buffer;
    if (!this.#isAffordable(bytes.length)) return;
    if (isBinary) return this.#wonder("binary messages");
    const message = readMessage(bytes.toString("utf8"));
    if (message.kind === "strange") return this.#wonder(message.why);
    this.#programs.take(this.#view, message);
  }

  /** Answers would pile up where somebody asks and does not read. */
  answer(data: Buffer): void {
    if (this.#isAffordable(data.length) && this.#connection.bufferedAmount === 0) this.#connection.pong(data);
  }

  failed(error: Error & { readonly code?: string }): void {
    if (error.code === "WS_ERR_UNSUPPORTED_MESSAGE_LENGTH")
      return this.#complain(
        "length",
        `it sent a message of more than ${PROGRAM_LIMITS.messageBytes} bytes, and was disconnected for it`,
      );
    this.#complain("socket", `its connection failed: ${error.code ?? "for no known reason"}`);
  }

  end(): void {
    this.#pausing?.cancel();
    this.#pinging?.cancel();
  }

  #isAffordable(bytes: number): boolean {
    this.#isAlive = true;
    const nowMs = this.#clock.monotonicMs();
    const verdict = this.#budget.spend(this.#spender, bytes, nowMs);
    if (verdict === "pause") this.#pause(this.#budget.waitMs(nowMs));
    if (verdict === "read") return true;
    this.#complain("fast", `it sends more than is read: ${++this.#skipped} messages were left out`);
    return false;
  }

  #wonder(what: string): void {
    const count = (this.#strange.get(what) ?? 0) + 1;
    this.#strange.set(what, count);
    this.#complain(what, `it sends ${what}: ${count} were left out`);
  }

  #complain(about: string, words: string): void {
    this.#programs.complain(this.#view, about, words);
  }

  #pause(forMs: number): void {
    if (this.#connection.isPaused) return;
    this.#connection.pause();
    this.#pausing = this.#clock.after(forMs, () => this.#connection.resume(), { background: true });
  }

  #ping(): void {
    this.#pinging = this.#clock.after(
      PING_MS,
      () => {
        if (!this.#isAlive) return this.#connection.terminate();
        this.#isAlive = false;
        this.#connection.ping();
        this.#ping();
      },
      { background: true },
    );
  }
}

/** The status of a refusal; undefined for a program that has the token. A browser's may come from any origin: no other page has it. */
function admission(token: string): (request: IncomingMessage) => string | undefined {
  const entrance = new Entrance(token);
  return ({ headers: { host }, url = "" }) => {
    if (!isOfThisMachine(host)) return "421 Misdirected Request";
    const asked = URL.parse(url, "http://localhost");
    if (asked?.pathname !== "/") return "404 Not Found";
    return entrance.isToken(asked.searchParams.get("token") ?? "") ? undefined : "401 Unauthorized";
  };
}

function refuse(socket: Duplex, status: string): void {
  socket.end(`HTTP/1.1 ${status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n`);
}

/** As a program calls itself, behind the token: `&name=checkout`. */
function nameIn({ url = "" }: IncomingMessage): string | undefined {
  const name = URL.parse(url, "http://localhost")?.searchParams.get("name") ?? "";
  return name === "" ? undefined : printable(name).slice(0, NAME_CHARACTERS_MAX);
}
