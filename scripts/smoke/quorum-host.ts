// One host of a quorum: a directory of its own with an etcd, a Patroni and its Postgres. Its keeper, a shell, ends all of them and removes
// the directory when its input ends, so that nothing outlives the smoke, however that ends.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import {
  chownSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
} from "node:fs";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { isRoot, OTHER_USER, placeForData } from "../../test/support/postgres-server.ts";
import { DATA, etcdWords, hostName, patroniVariables } from "./quorum-plan.ts";
import type { QuorumPlan } from "./quorum-plan.ts";

export type Program = "etcd" | "patroni";

const SETTINGS = fileURLToPath(new URL("../../packaging/quorum/patroni.yml", import.meta.url));
/** For a machine that has the three of them, and whose servers are killed: they leave nothing outside their directories. */
const OWN_SETTINGS = `
postgresql:
  parameters:
    unix_socket_directories: ".."
    dynamic_shared_memory_type: mmap
    shared_buffers: 64MB
`;
/** Each line of its input starts a program. While one runs its number stands in a file. */
const KEEPER = `
serve() {
  name=$1
  shift
  "$@" </dev/null >>"$name.log" 2>&1 &
  echo $! >"$name.pid"
  wait $!
  rm -f "$name.pid"
}
while read -r words; do
  serve $words &
done
for name in patroni etcd; do
  if [ -s $name.pid ]; then kill -KILL "$(cat $name.pid)"; fi
done
wait
if [ -e data/postmaster.pid ]; then
  number=$(head -1 data/postmaster.pid)
  set -- $(sed -n 7p data/postmaster.pid)
  if [ "$(readlink /proc/$number/cwd)" = "$PWD/data" ]; then kill -QUIT $number; fi
  for look in $(seq 100); do
    if [ ! -e data/postmaster.pid ] || [ ! -e /proc/$number ]; then break; fi
    sleep 0.1
  done
  if [ -e data/postmaster.pid ] && [ -n "$2" ]; then ipcrm -m "$2"; fi
fi 2>/dev/null
directory=$PWD
cd / && rm -rf "$directory"
`;
const LOOK_MS = 20;
const LAST_LINES = 40;

export class QuorumHost {
  readonly name: string;
  readonly #directory: string;
  readonly #keeper: ChildProcess;
  readonly #words: Readonly<Record<Program, readonly string[]>>;

  constructor(plan: QuorumPlan, at: number) {
    this.name = hostName(at);
    this.#directory = realpathSync(mkdtempSync(join(placeForData(), `rollout-smoke-${this.name}-`)));
    this.#words = { etcd: ["etcd", ...etcdWords(plan, at)], patroni: ["patroni", "patroni", "settings"] };
    const settings = join(this.#directory, "settings");
    mkdirSync(settings);
    copyFileSync(SETTINGS, join(settings, "1-patroni.yml"));
    writeFileSync(join(settings, "2-own.yml"), OWN_SETTINGS);
    if (isRoot())
      for (const path of [this.#directory, settings]) chownSync(path, OTHER_USER.uid, OTHER_USER.gid);
    this.#keeper = spawn("sh", ["-c", KEEPER], {
      cwd: this.#directory,
      // A group of its own: the end of this process's group leaves it the time to clean up.
      detached: true,
      stdio: ["pipe", "ignore", "ignore"],
      env: {
        ...{ PATH: process.env["PATH"] ?? "", HOME: this.#directory, TZ: "UTC", LC_ALL: "C.UTF-8" },
        ...patroniVariables(plan, at),
      },
      ...(isRoot() && OTHER_USER),
    });
  }

  async start(program: Program): Promise<void> {
    this.#keeper.stdin?.write(`${this.#words[program].join(" ")}\n`);
    await this.#until(() => this.#numberOf(program) !== undefined);
  }

  /** By force. */
  async kill(program: Program): Promise<void> {
    const number = this.#numberOf(program);
    if (number === undefined) throw new Error(`there is no ${program} on ${this.name}`);
    process.kill(number, "SIGKILL");
    await this.#until(() => this.#numberOf(program) === undefined);
  }

  /** By force; its other processes notice and end. */
  killPostgres(): void {
    const [number] = this.#read(join(DATA, "postmaster.pid")).split("\n");
    if (number === undefined || number === "") throw new Error(`there is no Postgres on ${this.name}`);
    process.kill(Number(number), "SIGKILL");
  }

  get lastWords(): string {
    const lines = ["etcd.log", "patroni.log"].flatMap((log) => {
      const said = this.#read(log).trimEnd().split("\n");
      return said.filter((line) => !line.includes("no action.")).slice(-LAST_LINES);
    });
    return lines.map((line) => `  ${this.name} | ${line}`).join("\n");
  }

  /** Nothing of it is left. */
  async end(): Promise<void> {
    if (this.#keeper.exitCode !== null) return;
    const exited = new Promise((resolve) => this.#keeper.once("exit", resolve));
    this.#keeper.stdin?.end();
    await exited;
  }

  async #until(look: () => boolean): Promise<void> {
    while (!look()) {
      if (this.#keeper.exitCode !== null) throw new Error(`${this.name} has ended`);
      await sleep(systemClock, LOOK_MS);
    }
  }

  #numberOf(program: Program): number | undefined {
    const text = this.#read(`${program}.pid`).trim();
    return text === "" ? undefined : Number(text);
  }

  /** Nothing where there is no such file. */
  #read(file: string): string {
    const path = join(this.#directory, file);
    return existsSync(path) ? readFileSync(path, "utf8") : "";
  }
}
