// Files for the hosts of several coordinators, written at once: a directory for each, with its configuration, the CA and its key, and
// certificates with the host's own name; and here the configuration of commands. Keeps true: nothing that is there is
// overwritten; the configuration here is put in place last, so it is there exactly when the directories are whole.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { formatAddress, isHost, isLoopback, parseAddress } from "../base/address.ts";
import type { Address } from "../base/address.ts";
import type { Clock } from "../base/clock.ts";
import { failure } from "../base/errors.ts";
import { makeDirectory } from "../base/file-system.ts";
import type { RunId } from "../base/ids.ts";
import { newUlid } from "../base/ids.ts";
import type { Random } from "../base/random.ts";
import { asUnwritable } from "../base/system-reason.ts";
import { LIMITS } from "../config/limits.ts";
import { CONFIG_FILE_NAME } from "../config/load.ts";
import { openAuthority } from "../transport/tls/authority.ts";
import {
  createFile,
  makePrivateDirectory,
  PUBLIC_MODE,
  SECRET_MODE,
} from "../transport/tls/credential-files.ts";
import { keepHostCredentials } from "../transport/tls/host-credentials.ts";
import { coordinatorNames } from "./server-identity.ts";

/** One of the hosts. */
export interface CoordinatorHost {
  /** Where others reach its coordinator, `host:port`. */
  readonly address: string;
  /** The name of its directory. */
  readonly name: string;
}

const DEFAULT_PORT = 50_051;
const DIRECTORY_MODE = 0o755;
/** Relative to a configuration. */
const TLS_DIR = "data/tls";
/** The database is the user's: nobody else knows where it is. */
const STORAGE_URL = "postgres://rollout@database.example:5432/rollout";

/** The hosts in `h1,h2:50051`; undefined where that names no hosts, one twice, or too many. */
export function parseCoordinatorHosts(text: string): readonly CoordinatorHost[] | undefined {
  const addresses = text.split(",").map((entry) => addressOf(entry.trim()));
  const whole = addresses.filter((address) => address !== undefined);
  const texts = whole.map(formatAddress);
  if (whole.length < addresses.length || whole.length > LIMITS.coordinators) return undefined;
  if (new Set(texts).size < texts.length) return undefined;
  const isByHost = new Set(whole.map(({ host }) => host)).size === whole.length;
  return whole.map((address) => {
    const host = address.host.includes(":") ? `ip${address.host.replaceAll(":", "-")}` : address.host;
    return { address: formatAddress(address), name: isByHost ? host : `${host}-${address.port}` };
  });
}

function addressOf(entry: string): Address | undefined {
  const address = isHost(entry) ? { host: entry, port: DEFAULT_PORT } : parseAddress(entry);
  return address !== undefined && address.port > 0 ? address : undefined;
}

export interface WrittenHosts {
  /** Undefined when another process has put a configuration there meanwhile. */
  readonly runId: RunId | undefined;
  readonly caFile: string;
  /** Whether this call made the CA. */
  readonly createdCa: boolean;
}

/**
 * Writes the directories of all hosts below `directory`, then its own configuration. Throws `usage` when a host's configuration is there
 * already, tls_… rows and file_unwritable.
 */
export async function writeCoordinatorHosts(
  directory: string,
  hosts: readonly CoordinatorHost[],
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): Promise<WrittenHosts> {
  const runId = newUlid<RunId>(clock, random);
  const coordinatorAddr = hosts.map(({ address }) => address);
  const { authority, created, caFile } = await openAuthority({
    ...{ tlsDir: join(directory, TLS_DIR), clock, random },
  });
  const caKey = await readFile(join(directory, TLS_DIR, "ca.key.pem"), "utf8");
  for (const host of hosts) {
    const place = join(directory, host.name);
    const tlsDir = join(place, TLS_DIR);
    await makeDirectory(place, DIRECTORY_MODE).catch(asUnwritable(place));
    await makePrivateDirectory(tlsDir);
    await create(join(tlsDir, "ca.pem"), authority.certificatePem, PUBLIC_MODE, random);
    await create(join(tlsDir, "ca.key.pem"), caKey, SECRET_MODE, random);
    const names = coordinatorNames([listenAddressOf(host), host.address], []);
    await keepHostCredentials({ authority, tlsDir, runId, hosts: names, coordinatorAddr, clock, random });
    await create(
      join(place, CONFIG_FILE_NAME),
      hostConfig(runId, host, coordinatorAddr),
      PUBLIC_MODE,
      random,
    );
  }
  const tlsDir = join(directory, TLS_DIR);
  await keepHostCredentials({
    authority,
    tlsDir,
    runId,
    hosts: ["localhost"],
    coordinatorAddr,
    clock,
    random,
  });
  const file = join(directory, CONFIG_FILE_NAME);
  const isOurs = await createFile(file, commandConfig(runId, coordinatorAddr), PUBLIC_MODE, random);
  return { runId: isOurs ? runId : undefined, caFile, createdCa: created };
}

async function create(file: string, text: string, mode: number, random: Random): Promise<void> {
  if (await createFile(file, text, mode, random)) return;
  const detail = `${file} is there already, and is not overwritten: remove it, or choose another directory with --dir`;
  throw failure("usage", { detail, command: "rollout init" });
}

/** Every interface, unless the address means this machine alone. */
function listenAddressOf({ address }: CoordinatorHost): string {
  const parsed = parseAddress(address);
  if (parsed === undefined || isLoopback(parsed.host)) return address;
  return formatAddress({ ...parsed, host: parsed.host.includes(":") ? "::" : "0.0.0.0" });
}

function list(addresses: readonly string[]): string {
  return `[${addresses.map((address) => `"${address}"`).join(", ")}]`;
}

/** The text of a host's configuration; its storage.url is to be filled in. */
function hostConfig(runId: RunId, host: CoordinatorHost, coordinators: readonly string[]): string {
  return `# rollout: read by the coordinator of ${host.name}, and by workers and commands there.
# Paths are relative to this file. All settings: docs/CONFIGURATION.md

# The run. Certificates and the database are bound to it.
run_id = "${runId}"

[storage]
# The database that all coordinators share: fill it in, the same on each host. A password goes into storage.password_file.
url = "${STORAGE_URL}"

[transport]
# Where this coordinator listens, and where the others, workers and commands reach it.
listen_addr = "${listenAddressOf(host)}"
advertised_addr = "${host.address}"
# Certificates and keys; whoever reads ca.key.pem can make more of them. Every coordinator has the same CA.
tls_dir = "./${TLS_DIR}"

[worker]
# All coordinators: one leads, the others name it and stand by.
coordinator_addr = ${list(coordinators)}
# How many items one worker executes at once.
slots = 1
# What executes them, a manifest each (docs/plugins.md); without any, a mock that gives items back.
# plugins = ["./infer.toml"]
`;
}

/** The text of a configuration for workers and commands. */
function commandConfig(runId: RunId, coordinators: readonly string[]): string {
  return `# rollout: read by workers and commands on this machine. The coordinators have a directory each beside this file.
# Paths are relative to this file. All settings: docs/CONFIGURATION.md

# The run. Certificates and the database are bound to it.
run_id = "${runId}"

[transport]
# Certificates and keys; whoever reads ca.key.pem can make more of them.
tls_dir = "./${TLS_DIR}"

[worker]
# All coordinators: one leads, the others name it and stand by.
coordinator_addr = ${list(coordinators)}
`;
}
