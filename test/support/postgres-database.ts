// A database of its own for the tests of one suite, on the server that all tests share.
import { join } from "node:path";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import pg from "pg";
import { systemRandom } from "../../src/base/random.ts";
import { sharedPostgresUrl } from "./postgres-server.ts";

export interface PostgresDatabase {
  /** As the superuser, password included. */
  readonly url: string;
  /** The same without the password, which stands alone in `passwordFile`. */
  readonly urlWithoutPassword: string;
  readonly passwordFile: string;
  /** The rows that one statement gives, on a connection of its own. */
  query(statement: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>;
}

/** To be called in a `describe`: makes the database before its tests, and removes it, whoever still uses it, after them. */
export function usePostgresDatabase(): PostgresDatabase {
  const name = newName();
  let server = "";
  let directory = "";
  const url = (): URL => {
    const own = new URL(server);
    own.pathname = `/${name}`;
    return own;
  };
  before(async () => {
    server = await sharedPostgresUrl();
    await query(server, `CREATE DATABASE ${name} TEMPLATE template0`);
    directory = mkdtempSync(join(tmpdir(), "rollout-test-"));
    writeFileSync(join(directory, "password"), decodeURIComponent(url().password), { mode: 0o600 });
  });
  after(async () => {
    rmSync(directory, { recursive: true, force: true });
    await query(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
  });
  return {
    get url() {
      return url().href;
    },
    get urlWithoutPassword() {
      return Object.assign(url(), { password: "" }).href;
    },
    get passwordFile() {
      return join(directory, "password");
    },
    query: (statement, values) => query(url().href, statement, values),
  };
}

/** Gives `use` the URL of a database of its own on this server, and removes it afterwards, whoever still uses it. */
export async function inNewDatabase<Result>(
  server: string,
  use: (url: string) => Promise<Result>,
): Promise<Result> {
  const url = Object.assign(new URL(server), { pathname: `/${newName()}` });
  await query(server, `CREATE DATABASE ${url.pathname.slice(1)} TEMPLATE template0`);
  try {
    return await use(url.href);
  } finally {
    await query(server, `DROP DATABASE IF EXISTS ${url.pathname.slice(1)} WITH (FORCE)`);
  }
}

function newName(): string {
  return `test_${Buffer.from(systemRandom.bytes(6)).toString("hex")}`;
}

/** The rows that one statement gives, on a connection of its own. */
export async function query(
  url: string,
  statement: string,
  values: readonly unknown[] = [],
): Promise<Record<string, unknown>[]> {
  const client = new pg.Client({ connectionString: url });
  // The statement rejects; a connection that breaks besides ends no process.
  client.on("error", () => undefined);
  await client.connect();
  try {
    const { rows } = await client.query<Record<string, unknown>>(statement, [...values]);
    return rows;
  } finally {
    await client.end();
  }
}
