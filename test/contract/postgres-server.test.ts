// The database server that the tests themselves start, and the database that a suite gets.
import { expect } from "chai";
import { spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { environmentFor } from "../support/rollout-process.ts";
import { eventually } from "../support/eventually.ts";
import { query, usePostgresDatabase } from "../support/postgres-database.ts";
import { PostgresServer, sharedPostgresUrl } from "../support/postgres-server.ts";

const PROGRAM = fileURLToPath(new URL("./postgres-user-program.ts", import.meta.url));

describe("a Postgres for tests", () => {
  const [one, other] = [usePostgresDatabase(), usePostgresDatabase()];

  it("is one server for all, and each suite has a database of its own", async () => {
    await one.query("CREATE TABLE here (n int)");
    expect(await other.query("SELECT to_regclass('here') AS found")).to.deep.equal([{ found: null }]);
    expect(await sharedPostgresUrl()).to.equal(await sharedPostgresUrl());
    const [row] = await one.query("SELECT current_setting('fsync') AS fsync, $1::int + 1 AS n", [1]);
    expect(row).to.deep.equal({ fsync: "on", n: 2 });
  });

  it("keeps what was committed over a crash, and ends with nothing left", async () => {
    const server = await PostgresServer.start({ settings: { max_connections: "7" } });
    await query(server.url, "CREATE TABLE kept AS SELECT 1 AS n");
    await server.halt("SIGQUIT");
    await server.start();
    expect(await query(server.url, "SELECT n FROM kept")).to.deep.equal([{ n: 1 }]);
    await server.close();
    expect(existsSync(server.directory)).to.equal(false);
    await server.close();
  });

  it("ends with the process that started it, also when that is killed", async () => {
    const user = spawn(process.execPath, [PROGRAM], {
      env: environmentFor(),
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line = ""] = await createInterface({ input: user.stdout })
      [Symbol.asyncIterator]()
      .next()
      .then(({ value }) => [value as string]);
    const { directory, pid } = JSON.parse(line) as { directory: string; pid: number };
    expect(isAlive(pid)).to.equal(true);
    user.kill("SIGKILL");
    await eventually("nothing is left", () => !isAlive(pid) && !existsSync(directory));
  });
});

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
