// A proxy between a client and Postgres that knows where a statement begins and where its answer ends, so that it can cut the
// connection exactly before a commit reaches the server, or after the server has answered and before the client hears it.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { Relay } from "./relay.ts";
import type { FateOf } from "./relay.ts";

export interface PostgresProxy {
  /** The URL of the server, by way of the proxy. */
  readonly url: string;
  /** Decides on every statement from now on; without it all pass. */
  decide(fateOf?: FateOf): void;
  /** From now on nothing passes either way; connections stay open and new ones get no answer. */
  freeze(): void;
  /** Connections go on where they stood. */
  thaw(): void;
  /** Breaks all connections that there are. */
  breakAll(): void;
  /** New connections are broken at once, or served again. */
  refuse(isRefusing: boolean): void;
  close(): Promise<void>;
}

/** Connections to this server pass through it. */
export async function startPostgresProxy(url: string): Promise<PostgresProxy> {
  const target = new URL(url);
  const sockets = new Set<Socket>();
  let fateOf: FateOf | undefined;
  let [isFrozen, isRefusing] = [false, false];
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    return socket.setNoDelay().on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    if (isRefusing) return void client.destroy();
    const upstream = track(connect(Number(target.port), target.hostname));
    new Relay(track(client), upstream, (statement) => fateOf?.(statement));
    if (isFrozen) client.pause();
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: Object.assign(new URL(url), { port: String(port) }).href,
    decide: (next) => {
      fateOf = next;
    },
    freeze: () => {
      isFrozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw: () => {
      isFrozen = false;
      for (const socket of sockets) socket.resume();
    },
    breakAll: () => {
      for (const socket of sockets) socket.destroy();
    },
    refuse: (refusing) => {
      isRefusing = refusing;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
