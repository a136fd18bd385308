// Two real servers, of which the second is the standby of the first, for whom commits wait unless that is turned off.
import { eventually } from "./eventually.ts";
import { query } from "./postgres-database.ts";
import { PostgresServer } from "./postgres-server.ts";

/** Commits that have to last wait for the server of this name, which is that of every standby of a test. */
export const WAITS_FOR_STANDBY = { synchronous_standby_names: "standby" };

export class PostgresPair {
  readonly primary: PostgresServer;
  readonly standby: PostgresServer;

  private constructor(primary: PostgresServer, standby: PostgresServer) {
    this.primary = primary;
    this.standby = standby;
  }

  static async start(settings: Readonly<Record<string, string>> = WAITS_FOR_STANDBY): Promise<PostgresPair> {
    const primary = await PostgresServer.start();
    await primary.halt("SIGINT");
    const pair = new PostgresPair(primary, await PostgresServer.start({ standbyOf: primary }));
    await primary.start(settings);
    await eventually("the standby follows", () =>
      pair.#any("SELECT FROM pg_stat_replication WHERE state = 'streaming'"),
    );
    return pair;
  }

  async close(): Promise<void> {
    await this.standby.close();
    await this.primary.close();
  }

  /** The standby receives nothing until the function that this gives is called, and is there all the same. */
  async stopReceiving(): Promise<() => void> {
    const [row] = await query(
      this.standby.url,
      "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walreceiver'",
    );
    const pid = Number(row?.["pid"]);
    process.kill(pid, "SIGSTOP");
    return () => void process.kill(pid, "SIGCONT");
  }

  /** When the standby has what the primary has. */
  async received(): Promise<void> {
    const lag = "SELECT FROM pg_stat_replication WHERE replay_lsn = pg_current_wal_flush_lsn()";
    await eventually("the standby has everything", () => this.#any(lag));
  }

  /** The session of a commit that waits for the standby. */
  waitingForStandby(): Promise<number> {
    return eventually("a commit waits for the standby", async () => {
      const [row] = await query(
        this.primary.url,
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'SyncRep'",
      );
      return row === undefined ? undefined : Number(row["pid"]);
    });
  }

  /** When something waits for a lock. */
  waitingForLock(): Promise<boolean> {
    return eventually("a statement waits for a lock", () =>
      this.#any("SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock'"),
    );
  }

  async promote(): Promise<void> {
    await query(this.standby.url, "SELECT pg_promote()");
  }

  async #any(statement: string): Promise<boolean> {
    return (await query(this.primary.url, statement)).length > 0;
  }
}

/** The URL of the first with several hosts, in this order. */
export function urlOfHosts(url: string, ...ports: readonly number[]): string {
  return url.replace(/127\.0\.0\.1:\d+/, ports.map((port) => `127.0.0.1:${port}`).join());
}
