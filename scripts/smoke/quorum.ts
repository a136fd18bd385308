// A Postgres on three hosts under Patroni and etcd, from Debian's packages, all on loopback of this machine.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import pg from "pg";
import { findFreePort } from "../../src/base/address.ts";
import { sleep, systemClock } from "../../src/base/clock.ts";
import { systemRandom } from "../../src/base/random.ts";
import { adviceOn, obtain } from "../extras.ts";
import type { Extra } from "../extras.ts";
import { CommitProbe } from "./commit-probe.ts";
import { QuorumHost } from "./quorum-host.ts";
import { hostName, rolesIn, storageUrl } from "./quorum-plan.ts";
import type { HostPorts, QuorumPlan, Roles } from "./quorum-plan.ts";

const HOSTS = 3;
const LOOK_MS = 100;
const ANSWER_MS = 2_000;
const DEBIAN = "/usr/lib/postgresql";
const PROGRAMS = ["initdb", "postgres", "pg_basebackup", "pg_rewind"];

const EXTRAS: readonly Extra[] = [
  {
    program: "etcd",
    aptPackage: "etcd-server",
    use: "where Patroni keeps who is the primary",
    isService: true,
  },
  { program: "patroni", aptPackage: "patroni", use: "who promotes a standby", isService: true },
  {
    ...{
      program: "Postgres' programs",
      aptPackage: "postgresql",
      use: "the database itself",
      isService: true,
    },
    isHere: () => programsOfPostgres() !== undefined,
  },
];

/** Installs what is missing where that is possible. Throws with what to do where it is not. */
export function demandPrograms(): void {
  const missing = obtain(EXTRAS);
  if (missing.length > 0) throw new Error(missing.map(adviceOn).join("\n"));
}

/** The newest version's. */
function programsOfPostgres(): string | undefined {
  if (!existsSync(DEBIAN)) return undefined;
  const directories = readdirSync(DEBIAN)
    .toSorted((one, other) => Number(other) - Number(one))
    .map((version) => join(DEBIAN, version, "bin"));
  return directories.find((directory) => PROGRAMS.every((program) => existsSync(join(directory, program))));
}

export class Quorum {
  readonly hosts: readonly QuorumHost[];
  readonly #plan: QuorumPlan;
  readonly #over = new AbortController();

  private constructor(plan: QuorumPlan) {
    this.#plan = plan;
    this.hosts = plan.hosts.map((_, at) => new QuorumHost(plan, at));
  }

  /** Directories, and nothing that runs yet. */
  static async prepare(): Promise<Quorum> {
    const hosts: HostPorts[] = [];
    while (hosts.length < HOSTS) {
      const [postgres, patroni] = [await findFreePort(), await findFreePort()];
      hosts.push({ postgres, patroni, etcd: await findFreePort(), peers: await findFreePort() });
    }
    const secret = (): string => Buffer.from(systemRandom.bytes(16)).toString("hex");
    const passwords = { postgres: secret(), replicator: secret(), rollout: secret() };
    return new Quorum({ hosts, passwords, programs: programsOfPostgres() ?? "" });
  }

  /** Starts everything, and makes the user and the database of the run. */
  async begin(): Promise<void> {
    await Promise.all(this.hosts.map((host) => host.start("etcd")));
    await Promise.all(this.hosts.map((host) => host.start("patroni")));
    const { primary } = await this.untilWhole();
    const port = this.#plan.hosts[primary]?.postgres;
    const url = `postgres://postgres:${this.#plan.passwords.postgres}@127.0.0.1:${port}/postgres`;
    const client = new pg.Client({ connectionString: url });
    await client.connect();
    try {
      await client.query(`CREATE ROLE rollout LOGIN PASSWORD '${this.#plan.passwords.rollout}'`);
      await client.query("CREATE DATABASE work OWNER rollout TEMPLATE template0");
    } finally {
      await client.end();
    }
  }

  /** For coordinators. */
  get url(): string {
    return storageUrl(this.#plan);
  }

  host(at: number): QuorumHost {
    const host = this.hosts[at];
    if (host === undefined) throw new Error(`there is no ${hostName(at)}`);
    return host;
  }

  /** A primary that a synchronous standby and another one follow, and an etcd on each host. */
  async untilWhole(): Promise<{ readonly primary: number; readonly synchronous: number }> {
    for (;;) {
      this.#over.signal.throwIfAborted();
      const [{ primary, synchronous, following }, ...others] = await this.#looks();
      const isOne = others.every((roles) => roles.primary === primary && roles.following === following);
      const isWhole = isOne && following === HOSTS - 1 && (await this.#areEtcdsWell());
      if (isWhole && primary !== undefined && synchronous !== undefined) return { primary, synchronous };
      await sleep(systemClock, LOOK_MS);
    }
  }

  /** Asks for commits on these hosts, and says when one was acknowledged. */
  probe(hosts: readonly number[]): CommitProbe {
    const all = storageUrl(this.#plan);
    const urls = hosts.map((at) => all.replace(/@[^/]*/, `@127.0.0.1:${this.#plan.hosts[at]?.postgres}`));
    return new CommitProbe(urls, this.#over.signal);
  }

  /** The host whose etcd leads the others. */
  async etcdLeader(): Promise<number> {
    for (;;) {
      this.#over.signal.throwIfAborted();
      for (const [at, { etcd }] of this.#plan.hosts.entries()) {
        const status = await ask(etcd, "/v3/maintenance/status", "{}");
        const header = status?.["header"] as Readonly<Record<string, unknown>> | undefined;
        if (header !== undefined && status?.["leader"] === header["member_id"]) return at;
      }
      await sleep(systemClock, LOOK_MS);
    }
  }

  get lastWords(): string {
    return this.hosts.map(({ lastWords }) => lastWords).join("\n");
  }

  /** Nothing of it is left. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.hosts.map((host) => host.end()));
  }

  /** As the Patroni of each host sees it. */
  #looks(): Promise<[Roles, ...Roles[]]> {
    const names = this.#plan.hosts.map((_, at) => hostName(at));
    const looks = this.#plan.hosts.map(async ({ patroni }) =>
      rolesIn((await ask(patroni, "/cluster")) ?? {}, names),
    );
    return Promise.all(looks) as Promise<[Roles, ...Roles[]]>;
  }

  async #areEtcdsWell(): Promise<boolean> {
    const answers = await Promise.all(this.#plan.hosts.map(({ etcd }) => ask(etcd, "/health")));
    return answers.every((answer) => answer?.["health"] === "true");
  }
}

/** Undefined while nobody answers in JSON. */
async function ask(
  port: number,
  path: string,
  body?: string,
): Promise<Readonly<Record<string, unknown>> | undefined> {
  const late = new AbortController();
  const timer = systemClock.after(ANSWER_MS, () => late.abort());
  try {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      signal: late.signal,
      ...(body !== undefined && { method: "POST", body }),
    });
    return (await response.json()) as Readonly<Record<string, unknown>>;
  } catch {
    return undefined;
  } finally {
    timer.cancel();
  }
}
