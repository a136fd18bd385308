// A program of a test that speaks to `rollout inspect --listen`, also in ways that no package would.
import { once } from "node:events";
import { WebSocket } from "ws";

export class ProgramClient {
  readonly socket: WebSocket;
  /** The close code, once it has been closed. */
  readonly closed: Promise<number>;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    this.closed = once(socket, "close").then(([code]) => code as number);
    socket.on("error", () => undefined);
  }

  static async connect(url: string): Promise<ProgramClient> {
    const socket = new WebSocket(url);
    const client = new ProgramClient(socket);
    await once(socket, "open");
    return client;
  }

  send(message: object): void {
    this.raw(JSON.stringify(message));
  }

  raw(data: string | Buffer): void {
    this.socket.send(data);
  }

  actor(sessionId: string, more: object = {}): void {
    this.send({ type: "@xstate.actor", ...common(sessionId), name: sessionId, snapshot: {}, ...more });
  }

  machine(sessionId: string, definition: unknown, more: object = {}): void {
    const text = typeof definition === "string" ? definition : JSON.stringify(definition);
    this.actor(sessionId, { definition: text, ...more });
  }

  event(sessionId: string, event: object): void {
    this.send({ type: "@xstate.event", ...common(sessionId), event });
  }

  snapshot(sessionId: string, snapshot: object, event: object = { type: "GO" }): void {
    this.send({ type: "@xstate.snapshot", ...common(sessionId), event, snapshot });
  }

  close(): void {
    this.socket.terminate();
  }
}

function common(sessionId: string): object {
  return { _version: "0.7.2", sessionId, createdAt: "0", id: null, rootId: sessionId };
}
