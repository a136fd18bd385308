// A pooler in transaction mode, as strict as one can be: each transaction goes to another session of the server, and a session that is
// lost while nobody uses it is made anew without a word to the clients. It speaks for itself to clients, so it knows no passwords.
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import type { PostgresServer } from "../../support/postgres-server.ts";
import { isEncryptionRequest, messageOf, WireReader } from "./wire.ts";
import type { WireMessage } from "./wire.ts";

export interface TransactionPooler {
  readonly url: string;
  close(): Promise<void>;
}

/** So many wait for a transaction before one of them gets the next. */
const SESSIONS = 3;
const READY = messageOf("Z", Buffer.from("I"));
const AUTHENTICATED = messageOf("R", Buffer.alloc(4));

export async function startTransactionPooler(server: PostgresServer): Promise<TransactionPooler> {
  const pool = new Pool(join(server.directory, "data", `.s.PGSQL.${server.port}`));
  const clients = new Set<Socket>();
  const listener = createServer((socket) => {
    clients.add(socket.setNoDelay().on("close", () => clients.delete(socket)));
    serve(socket, pool);
  });
  await new Promise<void>((resolve) => listener.listen(0, "127.0.0.1", resolve));
  const { port } = listener.address() as AddressInfo;
  return {
    url: Object.assign(new URL(server.url), { port: String(port) }).href,
    close: async () => {
      for (const client of clients) client.destroy();
      pool.close();
      await new Promise<void>((resolve) => void listener.close(() => resolve()));
    },
  };
}

function serve(client: Socket, pool: Pool): void {
  const reader = new WireReader(false);
  let session: Session | undefined;
  let waiting: Buffer[] = [];
  let isAsking = false;
  const release = (): void => {
    if (session !== undefined) pool.give(session);
    session = undefined;
  };
  client.on("error", () => undefined).on("close", () => session?.end());
  client.on("data", (chunk) => {
    for (const message of reader.read(chunk)) take(message);
  });

  function take(message: WireMessage): void {
    if (isEncryptionRequest(message)) return void client.write("N");
    if (message.type === "") return void client.write(Buffer.concat([AUTHENTICATED, READY]));
    if (message.type === "X") return void client.end();
    if (session !== undefined) return session.write(message.bytes);
    waiting.push(message.bytes);
    if (isAsking) return;
    isAsking = true;
    void pool.take().then(
      (taken) => {
        isAsking = false;
        if (client.destroyed) return taken.end();
        session = taken;
        taken.use({
          onMessage: ({ type, bytes }) => {
            client.write(bytes);
            // Statements that are on their way already go with the transaction before.
            if (type === "Z" && bytes.toString("latin1", 5) === "I") release();
          },
          onLost: () => client.destroy(),
        });
        taken.write(Buffer.concat(waiting));
        waiting = [];
      },
      () => client.destroy(),
    );
  }
}

interface User {
  readonly onMessage: (message: WireMessage) => void;
  readonly onLost: () => void;
}

class Session {
  readonly #socket: Socket;
  readonly ready: Promise<undefined>;
  #user: User | undefined;

  constructor(path: string) {
    const ready = Promise.withResolvers<undefined>();
    this.ready = ready.promise;
    this.#socket = connect(path);
    const reader = new WireReader(true);
    let isReady = false;
    this.#socket.on("data", (chunk) => {
      for (const message of reader.read(chunk)) {
        if (isReady) this.#user?.onMessage(message);
        isReady ||= message.type === "Z";
        if (isReady) ready.resolve(undefined);
      }
    });
    this.#socket.on("error", (error) => ready.reject(error));
    this.#socket.on("close", () => this.#user?.onLost());
    const parameters = Buffer.from("user\0postgres\0database\0postgres\0application_name\0rollout\0\0");
    const start = Buffer.alloc(8);
    start.writeUInt32BE(8 + parameters.length);
    start.writeUInt32BE(3 << 16, 4);
    this.#socket.write(Buffer.concat([start, parameters]));
  }

  get isLost(): boolean {
    return this.#socket.destroyed || this.#socket.readableEnded;
  }

  use(user: User | undefined): void {
    this.#user = user;
  }

  write(bytes: Buffer): void {
    this.#socket.write(bytes);
  }

  end(): void {
    this.#socket.end();
  }
}

class Pool {
  readonly #path: string;
  readonly #idle: Session[] = [];

  constructor(path: string) {
    this.#path = path;
  }

  /** The one that was used longest ago, or a new one while there are few. */
  async take(): Promise<Session> {
    while (this.#idle.length >= SESSIONS) {
      const session = this.#idle.shift();
      if (session?.isLost === false) return session;
    }
    const session = new Session(this.#path);
    await session.ready;
    return session;
  }

  give(session: Session): void {
    session.use(undefined);
    this.#idle.push(session);
  }

  close(): void {
    for (const session of this.#idle) session.end();
  }
}
