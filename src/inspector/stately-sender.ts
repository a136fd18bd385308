// Tells an inspector that speaks the protocol of `@statelyai/inspect` of charts, over a WebSocket that this process opens.
//
// Keeps true: nothing that the inspector does delays or ends this process. Messages that it does not take are dropped and counted, and it
// is told later where those actors are then; messages that it sends are thrown away; one that is gone is tried again, ever more rarely.
import { WebSocket } from "ws";
import type { Clock, Timer } from "../base/clock.ts";
import { codeOf } from "../base/errors.ts";
import { backoffMs } from "../base/random.ts";
import type { Random } from "../base/random.ts";
import type { Logger } from "../observe/log.ts";
import { actorMessage, eventMessage, snapshotMessage } from "./told-charts.ts";
import type { Facts, ToldActor } from "./told-charts.ts";

export interface StatelySenderOptions {
  readonly url: string;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** There is somebody to tell; until the signal aborts. Where all actors are is told to it first. */
  readonly onOpen?: (signal: AbortSignal) => void;
}

/** A step of an actor that is known. */
export interface ToldStep {
  readonly event: string;
  /** As `stateName` has it. */
  readonly state: string;
  readonly facts?: Facts;
  readonly atMs: number;
}

/** An actor, and where it is now. */
interface Standing {
  readonly actor: ToldActor;
  state: string;
  facts: Facts;
  lastEvent: string;
  isStopped: boolean;
  /** The inspector knows it. */
  isAnnounced: boolean;
}

/** Told of at once; later ones are left out. */
const ACTORS_MAX = 2_000;
/** Messages that wait. */
const WAITING_MAX = 1_000;
/** More than this is not handed to the socket while it has not left. */
const BUFFERED_BYTES_MAX = 256 * 1_024;
/** How often it is looked whether the socket takes more. */
const LOOK_MS = 50;
const HANDSHAKE_MS = 5_000;
const PING_MS = 10_000;
const AGAIN = { baseMs: 1_000, ceilingMs: 60_000 };
/** A relay sends its programs what other programs tell; one that sends more than this in a ping's time is left. */
const RECEIVED_BYTES_MAX = 64 * 1_024 * 1_024;
const RECEIVED_MESSAGE_BYTES_MAX = 16 * 1_024 * 1_024;

export class StatelySender {
  readonly #options: StatelySenderOptions;
  readonly #standing = new Map<string, Standing>();
  /** The inspector is behind with these: it is told where they are, not how they came there. */
  readonly #behind = new Set<Standing>();
  #waiting: string[] = [];
  #socket: WebSocket | undefined;
  /** While the inspector is there. */
  #open: AbortController | undefined;
  #timer: Timer | undefined;
  #looking: Timer | undefined;
  #tried = 0;
  #isClosed = false;
  #dropped = 0;
  #reported = 0;
  #leftOut = 0;

  constructor(options: StatelySenderOptions) {
    this.#options = options;
    this.#connect();
  }

  /** Messages that no inspector was told because it did not take them. */
  get dropped(): number {
    return this.#dropped;
  }

  /** Where an actor is. One that is new begins there; of one that is known, nothing is told unless that is another state. */
  place(actor: ToldActor, state: string, facts: Facts): void {
    const known = this.#standing.get(actor.sessionId);
    if (known === undefined) return void this.#add(actor, state, facts);
    const isElsewhere = known.state !== state;
    Object.assign(known, { state, facts });
    if (isElsewhere) this.#fallBehind(known);
  }

  isKnown(sessionId: string): boolean {
    return this.#standing.has(sessionId);
  }

  /** Total; an actor that is not known is ignored. */
  step(sessionId: string, { event, state, facts, atMs }: ToldStep): void {
    const known = this.#standing.get(sessionId);
    if (known === undefined) return;
    Object.assign(known, { state, lastEvent: event, facts: facts ?? known.facts });
    if (this.#open === undefined) return;
    // It is told later where the actor is then.
    if (this.#behind.has(known)) return void (this.#dropped += known.isAnnounced ? 2 : 0);
    const { actor } = known;
    this.#tell(known, [eventMessage(actor, event, atMs), snapshotMessage(actor, known, event, atMs)]);
  }

  /** It is not there any more. Idempotent. */
  end(sessionId: string): void {
    const known = this.#standing.get(sessionId);
    if (known === undefined) return;
    this.#standing.delete(sessionId);
    known.isStopped = true;
    this.#behind.delete(known);
    if (!known.isAnnounced || this.#open === undefined) return;
    const atMs = this.#options.clock.wallMs();
    this.#push([snapshotMessage(known.actor, known, known.lastEvent, atMs)]);
  }

  /** Actors that are told of. */
  get sessions(): Iterable<string> {
    return this.#standing.keys();
  }

  /** Idempotent. Some messages may not leave any more. */
  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#pump();
    const socket = this.#socket;
    this.#lose();
    this.#looking?.cancel();
    // A close frame leaves behind what waits; nobody is waited for.
    socket?.close();
    this.#options.clock.after(LOOK_MS, () => socket?.terminate(), { background: true });
  }

  #add(actor: ToldActor, state: string, facts: Facts): void {
    if (this.#standing.size >= ACTORS_MAX) {
      if (this.#leftOut++ === 0)
        this.#options.log.warn("the inspector is told of no more actors", { limit: ACTORS_MAX });
      return;
    }
    const known: Standing = {
      ...{ actor, state, facts, lastEvent: "xstate.init" },
      ...{ isStopped: false, isAnnounced: false },
    };
    this.#standing.set(actor.sessionId, known);
    if (this.#open === undefined) return;
    // Behind its parent, where that waits.
    if (this.#behind.size > 0) return this.#fallBehind(known);
    known.isAnnounced = this.#tell(known, [actorMessage(actor, known, this.#options.clock.wallMs())]);
  }

  #tell(known: Standing, messages: readonly string[]): boolean {
    const isTold = this.#push(messages);
    if (!isTold) this.#fallBehind(known);
    return isTold;
  }

  /** False when there is no room: they are counted as dropped. */
  #push(messages: readonly string[]): boolean {
    if (this.#waiting.length + messages.length > WAITING_MAX) {
      this.#dropped += messages.length;
      return false;
    }
    this.#waiting.push(...messages);
    this.#pump();
    return true;
  }

  #fallBehind(known: Standing): void {
    if (this.#open === undefined) return;
    this.#behind.add(known);
    this.#pump();
  }

  /** Hands the socket what it takes: what waits first, as it is older than where those are that are behind. */
  #pump(): void {
    const socket = this.#socket;
    if (socket === undefined || this.#open === undefined) return;
    let sent = 0;
    while (socket.bufferedAmount < BUFFERED_BYTES_MAX) {
      const text = sent < this.#waiting.length ? this.#waiting[sent++] : this.#catchUp();
      if (text === undefined) break;
      socket.send(text);
    }
    this.#waiting.splice(0, sent);
    if (this.#waiting.length + this.#behind.size === 0) return;
    this.#looking?.cancel();
    this.#looking = this.#options.clock.after(LOOK_MS, () => this.#pump(), { background: true });
  }

  /** The next actor that the inspector is behind with, as it is now. */
  #catchUp(): string | undefined {
    const [known] = this.#behind;
    if (known === undefined) return undefined;
    this.#behind.delete(known);
    const atMs = this.#options.clock.wallMs();
    if (known.isAnnounced) return snapshotMessage(known.actor, known, known.lastEvent, atMs);
    known.isAnnounced = true;
    return actorMessage(known.actor, known, atMs);
  }

  #connect(): void {
    const { url, log } = this.#options;
    let socket: WebSocket;
    try {
      socket = new WebSocket(url, {
        ...{ perMessageDeflate: false, followRedirects: false, skipUTF8Validation: true, autoPong: false },
        ...{ handshakeTimeout: HANDSHAKE_MS, maxPayload: RECEIVED_MESSAGE_BYTES_MAX },
      });
    } catch (err) {
      // The address was checked when the configuration was read.
      return log.error("the inspector's address cannot be used", { err });
    }
    this.#socket = socket;
    socket.on("open", () => this.#opened(socket));
    socket.on("error", (error) => {
      const why = codeOf(error) ?? "it does not take WebSocket connections here";
      log[this.#tried === 0 ? "warn" : "debug"]("the inspector cannot be told of charts", { why });
    });
    socket.on("close", () => {
      if (this.#socket === socket) this.#again();
    });
  }

  #opened(socket: WebSocket): void {
    const { log, onOpen } = this.#options;
    log.info("an inspector is told of charts", { address: new URL(this.#options.url).host });
    this.#open = new AbortController();
    for (const known of this.#standing.values()) {
      known.isAnnounced = false;
      this.#behind.add(known);
    }
    this.#watch(socket);
    this.#pump();
    onOpen?.(this.#open.signal);
  }

  /** Ends a connection whose other end has vanished, or sends what nobody wants. */
  #watch(socket: WebSocket): void {
    let isThere = true;
    let receivedBytes = 0;
    socket.on("pong", () => (isThere = true));
    // Answers would pile up where somebody asks and does not read.
    socket.on("ping", (data: Buffer) => {
      if (socket.bufferedAmount < BUFFERED_BYTES_MAX) socket.pong(data);
    });
    socket.on("message", (data: Buffer) => {
      receivedBytes += data.length;
      if (receivedBytes > RECEIVED_BYTES_MAX) socket.terminate();
    });
    const look = (): void => {
      this.#reportDropped();
      if (!isThere) return socket.terminate();
      [isThere, receivedBytes] = [false, 0];
      this.#tried = 0;
      socket.ping();
      this.#timer = this.#options.clock.after(PING_MS, look, { background: true });
    };
    this.#timer = this.#options.clock.after(PING_MS, look, { background: true });
  }

  #again(): void {
    this.#lose();
    if (this.#isClosed) return;
    const { clock, random } = this.#options;
    const waitMs = backoffMs(AGAIN, ++this.#tried, random);
    this.#timer = clock.after(waitMs, () => this.#connect(), { background: true });
  }

  #lose(): void {
    this.#timer?.cancel();
    this.#socket = undefined;
    this.#open?.abort();
    this.#open = undefined;
    this.#waiting = [];
    this.#behind.clear();
    this.#reportDropped();
  }

  #reportDropped(): void {
    const count = this.#dropped - this.#reported;
    if (count === 0) return;
    this.#reported = this.#dropped;
    this.#options.log.warn("the inspector is too slow: messages to it were dropped", { count });
  }
}
