// The network of a simulated cluster: connections to whoever listens, and the weather over them. Frames of one stream keep
// their order, as on TCP, and all else is chance: how long each takes, when a connection breaks, which way is blocked.
import type { SimProcess } from "./process.ts";
import type { SimWorld } from "./world.ts";
import { between, happens } from "./world.ts";

export interface NetworkWeather {
  /** The longest that an ordinary frame takes. */
  delayMaxMs: number;
  /** The chance that a frame takes up to three seconds. */
  slowChance: number;
  /** For each frame, the chance that its connection breaks. */
  breakChance: number;
  /** For each unary call, the chance that its request, and again its answer, is lost. */
  lossChance: number;
  /** For each unary call, the chance that its request arrives twice. */
  duplicateChance: number;
}

export type Direction = "up" | "down";

const SLOW_MAX_MS = 3_000;
/** When the end of a connection is noticed that was cut without a word: by pings, as in src/transport/limits.ts. */
const PING_MIN_MS = 2_000;
const PING_MAX_MS = 7_000;
/** When a server gives up a connection on which nothing comes. */
const IDLE_MS = 60_000;

/** Between one process and the one that listened when it was opened. */
export class Connection {
  readonly client: SimProcess;
  readonly server: SimProcess;
  readonly #network: Network;
  #isBroken = false;
  /** Frames that wait until their way is free. */
  readonly #held: Record<Direction, (() => void)[]> = { up: [], down: [] };
  readonly #onEnd: { readonly side: "client" | "server"; readonly tell: () => void }[] = [];
  readonly #ended = { client: false, server: false };

  constructor(network: Network, client: SimProcess, server: SimProcess) {
    this.#network = network;
    this.client = client;
    this.server = server;
  }

  /** For new calls. One side may not know yet. */
  get isUsable(): boolean {
    return !this.#isBroken && !this.#ended.client;
  }

  /** `tell` is called in the process of that side, when it notices that the connection has ended; now, if it has. */
  onEnd(side: "client" | "server", tell: () => void): void {
    if (this.#ended[side]) this[side].after(0, tell);
    else this.#onEnd.push({ side, tell });
  }

  /** Hands `deliver` to the other end, if its way is free, else when it is. */
  arrive(direction: Direction, deliver: () => void): void {
    if (this.#isBroken) return;
    if (this.#network.isBlocked(this, direction)) return void this.#held[direction].push(deliver);
    const receiver = direction === "up" ? this.server : this.client;
    receiver.receive(deliver);
  }

  /** Frames that were held come, in order. */
  unblock(): void {
    for (const direction of ["up", "down"] as const)
      for (const deliver of this.#held[direction].splice(0))
        this.#network.world.after(0, () => this.arrive(direction, deliver));
  }

  get isHeldUp(): boolean {
    return this.#network.isBlocked(this, "up") || this.#network.isBlocked(this, "down");
  }

  /** No frame comes any more; each side notices in its time. */
  breakUp(noticedByClientMs: number, noticedByServerMs: number): void {
    if (this.#isBroken) return;
    this.#isBroken = true;
    this.#network.forget(this);
    this.#notice("client", noticedByClientMs);
    this.#notice("server", noticedByServerMs);
  }

  #notice(side: "client" | "server", afterMs: number): void {
    this[side].after(afterMs, () => {
      this.#ended[side] = true;
      for (const end of this.#onEnd) if (end.side === side) end.tell();
    });
  }
}

export class Network {
  readonly world: SimWorld;
  readonly weather: NetworkWeather;
  /** By the name of the machine. */
  readonly #listening = new Map<string, SimProcess>();
  readonly #connections = new Set<Connection>();
  /** By the name of the machine at either end. */
  readonly #blocked: Record<Direction, Set<string>> = { up: new Set(), down: new Set() };

  constructor(world: SimWorld, weather: NetworkWeather) {
    this.world = world;
    this.weather = weather;
  }

  /** From now on new connections to its machine go there. */
  listen(process: SimProcess): void {
    const { name } = process.machine;
    this.#listening.set(name, process);
    process.onDeath(() => {
      if (this.#listening.get(name) === process) this.#listening.delete(name);
    });
  }

  /** Undefined when nobody listens there, or it cannot be reached. */
  connect(client: SimProcess, machine: string): Connection | undefined {
    const server = this.#listening.get(machine);
    if (server === undefined) return undefined;
    const connection = new Connection(this, client, server);
    if (connection.isHeldUp) return undefined;
    this.#connections.add(connection);
    // Its kernel takes the connection, and nobody answers.
    if (server.isStopped) this.#givesUpUnless(connection, () => !server.isStopped);
    return connection;
  }

  /** Whether a call to the machine would be answered now. */
  reaches(client: SimProcess, machine: string): boolean {
    const server = this.#listening.get(machine);
    if (server === undefined || server.isStopped) return false;
    return !new Connection(this, client, server).isHeldUp;
  }

  forget(connection: Connection): void {
    this.#connections.delete(connection);
  }

  isBlocked({ client, server }: Connection, direction: Direction): boolean {
    const blocked = this.#blocked[direction];
    return blocked.has(client.machine.name) || blocked.has(server.machine.name);
  }

  block(machine: string, direction: Direction): void {
    this.#blocked[direction].add(machine);
    for (const connection of this.#connections)
      if (isAt(connection, machine)) this.#givesUpUnless(connection, () => !connection.isHeldUp);
  }

  unblock(machine: string): void {
    this.#blocked.up.delete(machine);
    this.#blocked.down.delete(machine);
    for (const connection of this.#connections) if (isAt(connection, machine)) connection.unblock();
  }

  /** The process was killed: its kernel says so to all its peers, if the way is free. */
  hangUp(process: SimProcess): void {
    for (const connection of this.#of(process)) connection.breakUp(this.delayMs(), this.delayMs());
  }

  /** The machine went dark: nobody says anything. */
  goDark(process: SimProcess): void {
    for (const connection of this.#of(process)) connection.breakUp(this.#pingMs(), IDLE_MS);
  }

  /** Stopped: a client that gets no answer to its pings gives the connection up. */
  stopped(server: SimProcess): void {
    for (const connection of this.#of(server))
      if (connection.server === server) this.#givesUpUnless(connection, () => !server.isStopped);
  }

  /** One connection breaks, whichever. */
  maybeBreak(connection: Connection): boolean {
    if (!happens(this.world.random, this.weather.breakChance)) return false;
    this.world.say("net", `the connection of ${connection.client.name} breaks`);
    connection.breakUp(this.delayMs(), this.delayMs());
    return true;
  }

  delayMs(): number {
    const { random } = this.world;
    const { slowChance, delayMaxMs } = this.weather;
    return happens(random, slowChance) ? between(random, 0, SLOW_MAX_MS) : between(random, 0.05, delayMaxMs);
  }

  /** How long a call takes that gets no answer. */
  silenceMs(): number {
    return between(this.world.random, 1_000, 5_000);
  }

  #of(process: SimProcess): Connection[] {
    return [...this.#connections].filter(({ client, server }) => client === process || server === process);
  }

  #pingMs(): number {
    return between(this.world.random, PING_MIN_MS, PING_MAX_MS);
  }

  #givesUpUnless(connection: Connection, isFine: () => boolean): void {
    this.world.after(this.#pingMs(), () => {
      if (!isFine() && connection.client.isAlive) connection.breakUp(0, this.delayMs());
    });
  }
}

function isAt({ client, server }: Connection, machine: string): boolean {
  return client.machine.name === machine || server.machine.name === machine;
}
