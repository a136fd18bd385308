// Stand-ins at a coordinator's address: nothing, or something that hangs up on everybody.
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import { systemRandom } from "../../src/base/random.ts";

/** An address of loopback where nothing listens. */
export async function unusedAddress(): Promise<string> {
  const server = await listen(createServer());
  const address = addressOf(server);
  await close(server);
  return address;
}

/** Below these the system takes no port for a connection that somebody opens (Linux, unless it was told otherwise). */
const PORTS = { from: 10_000, to: 32_000 };

/**
 * An address of loopback where nothing listens, and that stays free while who has listened there is started again: another
 * test's connections do not take its port meanwhile.
 */
export async function restartableAddress(): Promise<string> {
  for (;;) {
    const port = PORTS.from + Math.floor(systemRandom.unit() * (PORTS.to - PORTS.from));
    const server = await listen(createServer(), port).catch(() => undefined);
    if (server === undefined) continue;
    await close(server);
    return `127.0.0.1:${port}`;
  }
}

export interface DeafListener {
  readonly address: string;
  /** When the first `count` connections came (monotonic, ms); resolves when they have. */
  connections(count: number): Promise<number[]>;
  close(): Promise<void>;
}

/** Takes every connection and ends it without a word; with `silent` it keeps them and says nothing. */
export async function startDeafListener(kind: "hangs-up" | "silent" = "hangs-up"): Promise<DeafListener> {
  const times: number[] = [];
  const held = new Set<Socket>();
  const waiting = new Set<() => void>();
  const server = await listen(
    createServer((socket) => {
      socket.on("error", () => undefined);
      times.push(performance.now());
      if (kind === "hangs-up") socket.destroy();
      else held.add(socket);
      for (const check of [...waiting]) check();
    }),
  );
  return {
    address: addressOf(server),
    connections: (count) =>
      new Promise((resolve) => {
        const check = (): void => {
          if (times.length < count) return;
          waiting.delete(check);
          resolve(times.slice(0, count));
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
