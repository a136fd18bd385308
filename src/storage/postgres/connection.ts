// One connection to one server, with what the server said of itself. An answer that does not come in time ends the connection: the
// only way not to take it for the answer to a later statement.
import pg from "pg";
import { readFile } from "node:fs/promises";
import { isDoneWithin } from "../../base/clock.ts";
import type { Clock } from "../../base/clock.ts";
import type { PostgresTls } from "../../config/postgres-url.ts";
import { parseColumn } from "./bytea.ts";
import { ConnectionLost, UNREPLICATED } from "./outcomes.ts";
import { FACTS } from "./statements.ts";

export type Parameter = string | number | Uint8Array;
export type Row = Readonly<Record<string, string | Uint8Array | null>>;

export interface ConnectionOptions {
  readonly host: string;
  readonly port: number;
  readonly user: string;
  readonly database: string;
  readonly tls: PostgresTls;
  readonly password: () => Promise<string>;
  readonly clock: Clock;
  /** Called with each answer. */
  readonly onAnswer: (facts: ServerFacts) => void;
}

export interface ServerFacts {
  readonly inRecovery: boolean;
  readonly readOnly: boolean;
  /** Settings of the server that have to be on, and are not. */
  readonly unsafe: readonly string[];
  /** A value of synchronous_commit for what has to last: what is set there, or at least `on`. */
  readonly lasting: string;
  /** Whether a commit waits for another server. */
  readonly hasStandby: boolean;
  readonly system: string;
  /** A primary's; one that is higher, as text too, was promoted later. */
  readonly timeline: string;
  /** The system and its timeline. */
  readonly generation: string;
}

export interface Answer {
  readonly rows: readonly Row[];
  readonly count: number;
  /** The verb of what was done: ROLLBACK in place of COMMIT says that a transaction had failed. */
  readonly command: string;
}

const CONNECT_MS = 3_000;
const FACTS_MS = 3_000;
const KEEPALIVE_MS = 5_000;
const CLOSE_MS = 1_000;

export class Connection {
  readonly #client: pg.Client;
  readonly #clock: Clock;
  readonly #onAnswer: ConnectionOptions["onAnswer"];
  #facts: ServerFacts | undefined;
  #lost: Error | undefined;
  /** Why it was ended by this side while something was asked. */
  #late: ConnectionLost | undefined;
  #unreplicated = false;

  private constructor(client: pg.Client, { clock, onAnswer }: ConnectionOptions) {
    this.#client = client;
    this.#clock = clock;
    this.#onAnswer = onAnswer;
    // With nobody to hear it, an error of an idle connection would end the process.
    client.on("error", (error) => (this.#lost ??= error));
    client.on("end", () => (this.#lost ??= new ConnectionLost("the connection has ended")));
    client.on("notice", ({ code }) => (this.#unreplicated ||= code === UNREPLICATED));
  }

  /** Rejects with what the driver says. */
  static async open(options: ConnectionOptions): Promise<Connection> {
    const { host, port, user, database, tls, password } = options;
    const client = new pg.Client({
      ...{ host, port, user, database },
      // A function, or the driver would look for one in the environment and in the user's files.
      password,
      ssl: await sslOf(tls),
      application_name: "rollout",
      connectionTimeoutMillis: CONNECT_MS,
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_MS,
      types: { getTypeParser: (oid: number) => (text: string) => parseColumn(oid, text) },
    });
    const connection = new Connection(client, options);
    try {
      await client.connect();
      const { rows } = await connection.ask(FACTS, [], FACTS_MS);
      connection.#facts = factsOf(rows[0] ?? {});
      return connection;
    } catch (error) {
      connection.end();
      throw error;
    }
  }

  get facts(): ServerFacts {
    if (this.#facts === undefined) throw new ConnectionLost("the server has not said yet what it is");
    return this.#facts;
  }

  get isLost(): boolean {
    return this.#lost !== undefined;
  }

  /** Whether the server gave up waiting for its standby since this was asked last. */
  takeUnreplicated(): boolean {
    const was = this.#unreplicated;
    this.#unreplicated = false;
    return was;
  }

  /** Rejects with what the driver says; behind `limitMs` the connection has ended, and the statement may go on at the server. */
  async ask(text: string, values: readonly Parameter[], limitMs: number): Promise<Answer> {
    if (this.#lost !== undefined) throw new ConnectionLost("the connection has ended", { cause: this.#lost });
    const late = this.#clock.after(limitMs, () => {
      this.#late = new ConnectionLost(`the server did not answer within ${limitMs} ms`);
      this.end();
    });
    try {
      const { rows, rowCount, command } = await this.#client.query<Row>({ text, values: [...values] });
      if (this.#facts !== undefined) this.#onAnswer(this.#facts);
      return { rows, count: rowCount ?? 0, command };
    } catch (error) {
      throw this.#late ?? error;
    } finally {
      late.cancel();
    }
  }

  /** At once, whatever is on its way. Idempotent. */
  end(): void {
    this.#lost ??= new ConnectionLost("the connection was closed");
    void this.#client.end().catch(() => undefined);
    this.#client.connection.stream.destroy();
  }

  /** In good order. Never rejects. */
  async close(): Promise<void> {
    this.#lost ??= new ConnectionLost("the connection was closed");
    const ended = this.#client.end().catch(() => undefined);
    if (!(await isDoneWithin(this.#clock, CLOSE_MS, ended))) this.#client.connection.stream.destroy();
  }
}

async function sslOf(tls: PostgresTls): Promise<false | { ca?: string }> {
  if (tls.kind === "off") return false;
  return tls.caFile === undefined ? {} : { ca: await readFile(tls.caFile, "utf8") };
}

/** Levels that wait for the disk here, and for a standby where there is one. */
const LASTING: readonly string[] = ["on", "remote_apply"];
const TIMELINE_DIGITS = 8;

function factsOf(row: Row): ServerFacts {
  const text = (name: string): string => {
    const value = row[name];
    return typeof value === "string" ? value : "";
  };
  const [system, timeline] = [text("system"), text("wal").slice(0, TIMELINE_DIGITS)];
  return {
    inRecovery: text("in_recovery") === "t",
    readOnly: text("read_only") === "on",
    unsafe: ["fsync", "full_page_writes"].filter((name) => text(name) !== "on"),
    lasting: LASTING.find((level) => level === text("synchronous_commit")) ?? "on",
    hasStandby: text("standbys") !== "",
    ...{ system, timeline, generation: `${system}/${timeline}` },
  };
}
