// Debian's pgbouncer in transaction mode before a Postgres of the tests, where it is installed (scripts/setup-extras.ts). It ends with
// this process: a shell beside it waits for the end of its input.
import { spawn, spawnSync } from "node:child_process";
import { chownSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { eventually } from "../support/eventually.ts";
import { query } from "../support/postgres-database.ts";
import { freePort } from "../support/listeners.ts";
import { isRoot, OTHER_USER } from "../support/postgres-server.ts";
import type { PostgresServer } from "../support/postgres-server.ts";
import type { TransactionPooler } from "./postgres/transaction-pooler.ts";

const KEEPER = `
pgbouncer --quiet settings.ini >log 2>&1 &
while read -r _; do :; done
kill -KILL $!
wait
`;

export function hasPgbouncer(): boolean {
  return spawnSync("which", ["pgbouncer"]).status === 0;
}

export async function startPgbouncer({ url }: PostgresServer): Promise<TransactionPooler> {
  const { port, password } = new URL(url);
  const own = await freePort();
  const directory = mkdtempSync(join(tmpdir(), "rollout-test-"));
  const settings = `
[databases]
* = host=127.0.0.1 port=${port} user=postgres password=${password}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${own}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
server_round_robin = 1
`;
  writeFileSync(join(directory, "settings.ini"), settings);
  if (isRoot()) chownSync(directory, OTHER_USER.uid, OTHER_USER.gid);
  const keeper = spawn("sh", ["-c", KEEPER], {
    cwd: directory,
    detached: true,
    stdio: ["pipe", "ignore", "ignore"],
    env: { PATH: `${process.env["PATH"] ?? ""}:/usr/sbin` },
    ...(isRoot() && OTHER_USER),
  });
  const exited = new Promise((resolve) => keeper.once("exit", resolve));
  keeper.unref();
  (keeper.stdin as Socket).unref();
  const through = Object.assign(new URL(url), { port: String(own) }).href;
  await eventually("pgbouncer answers", () => query(through, "SELECT 1").catch(() => undefined));
  return {
    url: through,
    close: async () => {
      keeper.ref();
      keeper.stdin.end();
      await exited;
      rmSync(directory, { recursive: true, force: true });
    },
  };
}
