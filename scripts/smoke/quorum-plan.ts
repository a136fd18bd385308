// Three hosts of a quorum, all of them this machine: who listens where, and how the programs of each are told. docs/OPERATIONS.md shows
// the same for hosts of their own.
import type { Variables } from "./launcher.ts";

/** Ports of loopback. */
export interface HostPorts {
  readonly postgres: number;
  /** Patroni's, by which it says who is the primary. */
  readonly patroni: number;
  readonly etcd: number;
  readonly peers: number;
}

export interface QuorumPlan {
  readonly hosts: readonly HostPorts[];
  /** The passwords of the superuser, of standbys, and of coordinators. */
  readonly passwords: Readonly<Record<"postgres" | "replicator" | "rollout", string>>;
  /** The directory of Postgres' programs. */
  readonly programs: string;
}

/** Where a host keeps things, in the directory that is its own. */
export const DATA = "data";
const LOOPBACK = "127.0.0.1";

export function hostName(at: number): string {
  return `host${at + 1}`;
}

/** The etcd of this host. */
export function etcdWords({ hosts }: QuorumPlan, at: number): readonly string[] {
  const { etcd, peers } = portsOf(hosts, at);
  const cluster = hosts.map((host, each) => `${hostName(each)}=${urlOf(host.peers)}`).join();
  return [
    ...["etcd", "--name", hostName(at), "--data-dir", "etcd-data", "--log-level", "warn"],
    ...["--listen-client-urls", urlOf(etcd), "--advertise-client-urls", urlOf(etcd)],
    ...["--listen-peer-urls", urlOf(peers), "--initial-advertise-peer-urls", urlOf(peers)],
    ...["--initial-cluster", cluster, "--initial-cluster-state", "new"],
  ];
}

/** The environment of this host's Patroni: settings beside its file. */
export function patroniVariables({ hosts, passwords, programs }: QuorumPlan, at: number): Variables {
  const { postgres, patroni } = portsOf(hosts, at);
  return {
    PATRONI_NAME: hostName(at),
    PATRONI_ETCD3_HOSTS: hosts.map(({ etcd }) => `${LOOPBACK}:${etcd}`).join(),
    PATRONI_RESTAPI_LISTEN: `${LOOPBACK}:${patroni}`,
    PATRONI_RESTAPI_CONNECT_ADDRESS: `${LOOPBACK}:${patroni}`,
    PATRONI_POSTGRESQL_LISTEN: `${LOOPBACK}:${postgres}`,
    PATRONI_POSTGRESQL_CONNECT_ADDRESS: `${LOOPBACK}:${postgres}`,
    PATRONI_POSTGRESQL_DATA_DIR: DATA,
    PATRONI_POSTGRESQL_BIN_DIR: programs,
    PATRONI_POSTGRESQL_PGPASS: "pgpass",
    PATRONI_SUPERUSER_USERNAME: "postgres",
    PATRONI_SUPERUSER_PASSWORD: passwords.postgres,
    PATRONI_REPLICATION_USERNAME: "replicator",
    PATRONI_REPLICATION_PASSWORD: passwords.replicator,
  };
}

/** The database of the run, wherever its primary is. */
export function storageUrl({ hosts, passwords }: QuorumPlan): string {
  const addresses = hosts.map(({ postgres }) => `${LOOPBACK}:${postgres}`).join();
  return `postgres://rollout:${passwords.rollout}@${addresses}/work`;
}

/** Each member and its role, as Patroni has them. */
export interface Roles {
  readonly primary: number | undefined;
  /** The standby that commits wait for. */
  readonly synchronous: number | undefined;
  /** Standbys that follow, that one included. */
  readonly following: number;
}

/** The roles in Patroni's answer on `/cluster`. */
export function rolesIn(answer: unknown, names: readonly string[]): Roles {
  const all = answer as { readonly members?: readonly Readonly<Record<string, unknown>>[] };
  const running = (all.members ?? []).filter(({ state }) => state === "running" || state === "streaming");
  const at = (role: string): number | undefined => {
    const name = running.find((member) => member["role"] === role)?.["name"];
    const found = names.findIndex((each) => each === name);
    return found < 0 ? undefined : found;
  };
  const following = running.filter(({ role }) => role === "sync_standby" || role === "replica").length;
  return { primary: at("leader"), synchronous: at("sync_standby"), following };
}

function portsOf(hosts: readonly HostPorts[], at: number): HostPorts {
  const ports = hosts[at];
  if (ports === undefined) throw new Error(`there is no ${hostName(at)}`);
  return ports;
}

function urlOf(port: number): string {
  return `http://${LOOPBACK}:${port}`;
}
