// Effect's cluster over a Postgres that syncs each commit: a runner and who calls it, each a process of its own. No dependency: where it cannot be had
// it is named with the reason.
import { fork } from "node:child_process";
import { once } from "node:events";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { freePort } from "../../../test/support/listeners.ts";
import { inNewDatabase, query } from "../../../test/support/postgres-database.ts";
import { PostgresServer } from "../../../test/support/postgres-server.ts";
import { installedPackage } from "../peers/server.ts";

const VERSION = "4.0.0-rc.117";
const PACKAGE = {
  ...{ name: "effect", version: VERSION },
  beside: [`@effect/platform-node@${VERSION}`, `@effect/sql-pg@${VERSION}`],
  // The newer ones that it would take do not load with it.
  overrides: { "@effect/platform-node-shared": VERSION },
};
const NAME = `Effect Cluster ${VERSION}`;
const POSTGRES = { shared_buffers: "512MB", max_wal_size: "8GB" };
const AT_ONCE = 256;
/** Until a runner has taken its shards. */
const SETTLE_MS = 8_000;

export async function effectCluster(
  { events, keys }: { readonly events: number; readonly keys: number },
  note: (line: string) => void,
): Promise<{ readonly perSecond: number } | { readonly name: string; readonly skipped: string }> {
  const found = installedPackage(PACKAGE, note);
  if ("skipped" in found) return { name: NAME, skipped: found.skipped };
  let server: PostgresServer;
  try {
    server = await PostgresServer.start({ place: tmpdir(), settings: POSTGRES });
  } catch (error) {
    return {
      name: NAME,
      skipped: `there is no Postgres: ${error instanceof Error ? error.message : "it does not start"}`,
    };
  }
  try {
    return await inNewDatabase(server.url, async (url) => {
      await query(url, "CREATE TABLE counters (k text PRIMARY KEY, count int NOT NULL, pad text NOT NULL)");
      const words = [
        found.directory,
        url,
        String(await freePort()),
        String(events),
        String(keys),
        String(AT_ONCE),
      ];
      return { perSecond: await measured(words) };
    });
  } finally {
    await server.close();
  }
}

async function measured(words: readonly string[]): Promise<number> {
  const start = (role: string): ReturnType<typeof fork> =>
    fork(join(import.meta.dirname, "effect-program.ts"), [role, ...words], {
      stdio: ["ignore", "ignore", "inherit", "ipc"],
    });
  const runner = start("runner");
  try {
    await once(runner, "message");
    await sleep(systemClock, SETTLE_MS);
    const caller = start("caller");
    const said = once(caller, "message") as Promise<[{ readonly perSecond: number }]>;
    const ended = once(caller, "exit").then(([code]: unknown[]) => {
      throw new Error(`who calls Effect's entities ended with ${String(code)}`);
    });
    const [{ perSecond }] = await Promise.race([said, ended]);
    await ended.catch(() => undefined);
    return perSecond;
  } finally {
    runner.kill("SIGKILL");
  }
}
