// Stand-ins at a coordinator's address: nothing, or something that hangs up on everybody.
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { systemRandom } from "../../src/base/random.ts";

/** Below these the system takes no port for a connection or a listener that names none (Linux, unless it was told otherwise). */
const PORTS = { from: 10_000, blocks: 110, perBlock: 200 };

/** The first port of this process's block, at which it listens until it ends, and how many of the block it has given. */
let block: Promise<number> | undefined;
let given = 0;

/**
 * A port of loopback where nothing listens. It stays free while who has listened there is started again, or where nobody is to listen: no
 * other test's connection or server takes it meanwhile.
 */
export async function freePort(): Promise<number> {
  block ??= ownBlock();
  const first = await block;
  for (;;) {
    const port = first + 1 + (given++ % (PORTS.perBlock - 1));
    const server = await listen(createServer(), port).catch(() => undefined);
    if (server === undefined) continue;
    await close(server);
    return port;
  }
}

/** A block that no other process of tests has. */
async function ownBlock(): Promise<number> {
  for (;;) {
    const first = PORTS.from + Math.floor(systemRandom.unit() * PORTS.blocks) * PORTS.perBlock;
    const holder = await listen(createServer(), first).catch(() => undefined);
    if (holder === undefined) continue;
    holder.unref();
    return first;
  }
}

/** The same as an address. */
export async function restartableAddress(): Promise<string> {
  return `127.0.0.1:${await freePort()}`;
}

export interface DeafListener {
  readonly address: string;
  /** How many connections have come. */
  readonly count: number;
  /** Resolves when so many have come. */
  connections(count: number): Promise<void>;
  close(): Promise<void>;
}

/** Takes every connection and ends it without a word; with `silent` it keeps them and says nothing. */
export async function startDeafListener(kind: "hangs-up" | "silent" = "hangs-up"): Promise<DeafListener> {
  let count = 0;
  const held = new Set<Socket>();
  const waiting = new Set<() => void>();
  const server = await listen(
    createServer((socket) => {
      socket.on("error", () => undefined);
      count++;
      if (kind === "hangs-up") socket.destroy();
      else held.add(socket);
      for (const check of [...waiting]) check();
    }),
  );
  return {
    address: addressOf(server),
    get count() {
      return count;
    },
    connections: (wanted) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (count < wanted) return;
          waiting.delete(check);
          resolve();
        };
        waiting.add(check);
        check();
      }),
    close: () => {
      for (const socket of held) socket.destroy();
      return close(server);
    },
  };
}

function listen(server: Server, port = 0): Promise<Server> {
  return new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(port, "127.0.0.1", () => resolve(server));
  });
}

function addressOf(server: Server): string {
  const { port } = server.address() as AddressInfo;
  return `127.0.0.1:${port}`;
}

function close(server: Server): Promise<void> {
  return new Promise((resolve) => void server.close(() => resolve()));
}
