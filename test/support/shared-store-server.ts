// A store that several processes have open at once: one store here, a socket on loopback for each of them. Each one's
// tries are written down, and the answers to some calls can be kept back, as a slow network does.
import { createServer } from "node:net";
import type { AddressInfo, Server, Socket } from "node:net";
import type { Batch, CommitOutcome, Store } from "../../src/storage/store.ts";
import type { Numbered, SharedAnswer, SharedCall } from "./shared-store-wire.ts";
import { readLines, sendLine } from "./shared-store-wire.ts";

/** A commit that somebody tried. */
export interface TriedCommit {
  readonly by: string;
  readonly batch: Batch;
  readonly outcome: CommitOutcome["kind"];
}

interface Client {
  readonly socket: Socket;
  name: string;
}

interface Held {
  readonly by: string;
  readonly call: SharedCall;
  readonly send: () => void;
}

export class SharedStoreServer {
  readonly address: string;
  /** In the order in which they took effect, or did not. */
  readonly commits: TriedCommit[] = [];
  /** Answers that wait. */
  readonly held: Held[] = [];
  readonly #store: Store;
  readonly #server: Server;
  readonly #clients = new Set<Client>();
  #keepsBack: (by: string, call: SharedCall) => boolean = () => false;

  private constructor(store: Store, server: Server) {
    this.#store = store;
    this.#server = server;
    const { port } = server.address() as AddressInfo;
    this.address = `127.0.0.1:${port}`;
    server.on("connection", (socket) => this.#accept(socket));
  }

  static async start(store: Store): Promise<SharedStoreServer> {
    const server = createServer({ noDelay: true });
    await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
    return new SharedStoreServer(store, server);
  }

  /** From now on calls like these are carried out at once, and answered when `letAnswersGo` is called. */
  keepAnswersBack(matches: (by: string, call: SharedCall) => boolean): void {
    this.#keepsBack = matches;
  }

  letAnswersGo(): void {
    this.#keepsBack = () => false;
    for (const { send } of this.held.splice(0)) send();
  }

  /** The names of those who are connected. */
  get connected(): string[] {
    return [...this.#clients].map(({ name }) => name);
  }

  async close(): Promise<void> {
    const closed = new Promise((resolve) => this.#server.close(resolve));
    for (const { socket } of this.#clients) socket.destroy();
    await closed;
  }

  #accept(socket: Socket): void {
    const client: Client = { socket, name: "" };
    this.#clients.add(client);
    socket.on("close", () => this.#clients.delete(client));
    // A process that is killed resets its connection.
    socket.on("error", () => undefined);
    readLines<SharedCall>(socket, (call) => void this.#answer(client, call));
  }

  async #answer(client: Client, { number, message: call }: Numbered<SharedCall>): Promise<void> {
    if (call.kind === "hello") client.name = call.name;
    const isHeld = this.#keepsBack(client.name, call);
    const message = await this.#carryOut(client.name, call);
    const send = (): void => sendLine(client.socket, { number, message });
    if (isHeld) this.held.push({ by: client.name, call, send });
    else send();
  }

  async #carryOut(by: string, call: SharedCall): Promise<SharedAnswer> {
    switch (call.kind) {
      case "hello": {
        const { everWritten, generation } = this.#store;
        return { kind: "welcome", everWritten, generation };
      }
      case "get":
        return { kind: "value", value: (await this.#store.get(call.key)) ?? null };
      case "scan":
        return { kind: "entries", entries: await this.#store.scan(call.range) };
      case "commit": {
        const outcome = await this.#store.commit(call.batch);
        this.commits.push({ by, batch: call.batch, outcome: outcome.kind });
        return { kind: "outcome", outcome };
      }
    }
  }
}
