// A relay as `@statelyai/inspect` has one, on loopback alone: each message goes to every other connection. The package's own listens on
// every interface and opens a browser, so it is never started.
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { createWebSocketReceiver } from "@statelyai/inspect";
import type { StatelyInspectionEvent } from "@statelyai/inspect";
import { WebSocket, WebSocketServer } from "ws";

export class StatelyRelay {
  readonly url: string;
  /** As they came. */
  readonly messages: string[] = [];
  readonly #server: WebSocketServer;

  private constructor(server: WebSocketServer) {
    this.#server = server;
    this.url = `ws://127.0.0.1:${(server.address() as AddressInfo).port}/relay?token=t0p-s3cret`;
    server.on("connection", (connection) => {
      connection.on("message", (data: Buffer) => {
        this.messages.push(data.toString());
        for (const other of server.clients)
          if (other !== connection && other.readyState === WebSocket.OPEN) other.send(data.toString());
      });
    });
  }

  static async open(): Promise<StatelyRelay> {
    const server = new WebSocketServer({ host: "127.0.0.1", port: 0 });
    await once(server, "listening");
    return new StatelyRelay(server);
  }

  /** The package's receiver, from now on. */
  async receive(): Promise<Received> {
    const connected = once(this.#server, "connection");
    const receiver = createWebSocketReceiver({ server: this.url });
    await connected;
    return new Received(receiver);
  }

  async close(): Promise<void> {
    for (const connection of this.#server.clients) connection.terminate();
    const closed = once(this.#server, "close");
    this.#server.close();
    await closed;
  }
}

/** All that a receiver has been told, by actor. */
export class Received {
  readonly events: StatelyInspectionEvent[] = [];

  constructor(receiver: ReturnType<typeof createWebSocketReceiver>) {
    receiver.subscribe((event) => void this.events.push(event));
  }

  of(sessionId: string): StatelyInspectionEvent[] {
    return this.events.filter((event) => event.sessionId === sessionId);
  }

  /** The states that the actor was told to be in, without repetitions. */
  states(sessionId: string): string[] {
    const values = this.of(sessionId).flatMap((event) =>
      event.type === "@xstate.event" ? [] : JSON.stringify((event.snapshot as { value: unknown }).value),
    );
    return values.filter((value, at) => value !== values[at - 1]);
  }

  sessions(chart: string): string[] {
    const all = this.events.map(({ sessionId }) => sessionId);
    return [...new Set(all)].filter((sessionId) => sessionId.startsWith(`${chart}/`));
  }
}
