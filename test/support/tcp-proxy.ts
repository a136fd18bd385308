// A TCP proxy on loopback that can stop forwarding without closing anything: what a cut cable looks like from both ends.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";

export interface TcpProxy {
  /** `127.0.0.1:port` */
  readonly address: string;
  /** From now on nothing passes either way; connections stay open and new ones are accepted and get no answer. */
  cut(): void;
  /** New connections pass again; the ones that were cut stay dead. */
  heal(): void;
  close(): Promise<void>;
}

export async function startTcpProxy(targetPort: number): Promise<TcpProxy> {
  const sockets = new Set<Socket>();
  let isCut = false;
  const track = (socket: Socket): Socket => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
    return socket;
  };
  const server = createServer((incoming) => {
    track(incoming);
    if (isCut) return void incoming.pause();
    const outgoing = track(connect(targetPort, "127.0.0.1"));
    incoming.pipe(outgoing);
    outgoing.pipe(incoming);
    // A side that is reset, or refused, resets the other: a pipe tells of an orderly end alone.
    const relay = (to: Socket) => (hadError: boolean) => void (hadError && !isCut && to.resetAndDestroy());
    incoming.on("close", relay(outgoing));
    outgoing.on("close", relay(incoming));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    address: `127.0.0.1:${port}`,
    cut: () => {
      isCut = true;
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    heal: () => {
      isCut = false;
    },
    close: async () => {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((resolve) => void server.close(() => resolve()));
    },
  };
}
