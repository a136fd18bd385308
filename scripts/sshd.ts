// An sshd of its own on free ports of loopback, with keys and configuration of its own in a directory: the system's is neither read nor
// changed. It ends with the process that has started it.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { userInfo } from "node:os";
import { join } from "node:path";
import { sleep, systemClock } from "../src/base/clock.ts";

export interface Sshd {
  /** The client's configuration, for `ssh -F`. */
  readonly config: string;
  /** A key with which a login prints before and behind what it runs. */
  readonly printingKey: string;
  /** The first is as Debian has it, at the second nobody may forward a port. */
  readonly ports: readonly [number, number];
  close(): Promise<void>;
}

export interface SshdOptions {
  /** Empty, and the caller's to remove. */
  readonly directory: string;
  /** Names of this machine for the client, beside its address. */
  readonly names?: readonly string[];
  /** Lines for the client, before the others. */
  readonly client?: readonly string[];
  /** Lines for the server, before the others. */
  readonly server?: readonly string[];
}

export const SSHD_PACKAGE = "openssh-server";
const HOST = "127.0.0.1";
/** Where sshd, run by root, wants an empty directory; its service makes it, and here there may be no service. It stays: others may use it by then. */
const EMPTY_DIRECTORY = "/run/sshd";
const TRIES = 200;
const TRY_EVERY_MS = 25;
const PRINTING_LOGIN = 'echo welcome; echo watch out >&2; eval \\"$SSH_ORIGINAL_COMMAND\\"; echo bye';
/** Its own end of the pipe says when the one who has started it is gone. */
const KEEPER = '"$@" 2>&1 & while read -r _; do :; done; kill $!; wait';

/** Undefined where there is none. */
export function sshdProgram(): string | undefined {
  const found = spawnSync("which", ["sshd"], { encoding: "utf8" }).stdout.trim();
  return [found, "/usr/sbin/sshd"].find((path) => path !== "" && existsSync(path));
}

/** Throws where there is no sshd. */
export async function startSshd(options: SshdOptions): Promise<Sshd> {
  const program = sshdProgram();
  if (program === undefined)
    throw new Error(`not here: sshd (hosts by ssh); on Debian: apt-get install ${SSHD_PACKAGE}`);
  if (process.getuid?.() === 0) mkdirSync(EMPTY_DIRECTORY, { recursive: true, mode: 0o755 });
  const ports: [number, number] = [await freePort(), await freePort()];
  const { sshd: file, ssh: config, printingKey } = configure(options, ports);
  const keeper = spawn("sh", ["-c", KEEPER, "sh", program, "-D", "-e", "-f", file], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const ended = new Promise<void>((resolve) => keeper.once("exit", () => resolve()));
  keeper.unref();
  (keeper.stdin as Socket).unref();
  const close = async (): Promise<void> => {
    keeper.ref();
    keeper.stdin.end();
    await ended;
  };
  try {
    for (const port of ports) await listens(port, () => keeper.exitCode === null);
  } catch (error) {
    await close();
    throw error;
  }
  return { config, printingKey, ports, close };
}

/** Makes a key without a passphrase; returns its public half. */
export function makeKey(file: string): string {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "rollout-test", "-f", file]);
  return readFileSync(`${file}.pub`, "utf8").trim();
}

/** Writes keys and both sides' configuration. */
function configure(
  { directory, names = [], client = [], server = [] }: SshdOptions,
  [port, closedPort]: readonly [number, number],
): { readonly sshd: string; readonly ssh: string; readonly printingKey: string } {
  const at = (name: string): string => join(directory, name);
  const write = (name: string, lines: readonly string[]): string => {
    writeFileSync(at(name), `${lines.join("\n")}\n`, { mode: 0o600 });
    return at(name);
  };
  const hostKey = makeKey(at("host_key"));
  const printingKey = at("printing_key");
  const authorized = write("authorized_keys", [
    makeKey(at("user_key")),
    `command="${PRINTING_LOGIN}" ${makeKey(printingKey)}`,
  ]);
  const hosts = [port, closedPort].map((each) => `[${HOST}]:${each} ${hostKey}`);
  const knownHosts = write("known_hosts", hosts);
  const user = userInfo().username;
  const sshd = write("sshd_config", [
    ...server,
    ...[`ListenAddress ${HOST}:${port}`, `ListenAddress ${HOST}:${closedPort}`],
    ...[`HostKey ${at("host_key")}`, `AuthorizedKeysFile ${authorized}`, `AllowUsers ${user}`],
    ...["PidFile none", "StrictModes no", "UsePAM no", "PasswordAuthentication no"],
    ...["KbdInteractiveAuthentication no", "PermitRootLogin prohibit-password", "X11Forwarding no"],
    ...["LogLevel QUIET", `Match LocalPort ${closedPort}`, "AllowTcpForwarding no"],
  ]);
  const ssh = write("ssh_config", [
    ...client,
    ...(names.length === 0 ? [] : [`Host ${names.join(" ")}`, `HostName ${HOST}`]),
    ...["Host *", `Port ${port}`, `User ${user}`, `IdentityFile ${at("user_key")}`, "IdentitiesOnly yes"],
    ...[`UserKnownHostsFile ${knownHosts}`, "GlobalKnownHostsFile none"],
    ...["StrictHostKeyChecking yes", "BatchMode yes", "LogLevel ERROR"],
    // A tenth of the processor time of the default, and tests log in often.
    "KexAlgorithms curve25519-sha256",
  ]);
  return { sshd, ssh, printingKey };
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function listens(port: number, isAlive: () => boolean): Promise<void> {
  for (let tries = 0; tries < TRIES && isAlive(); tries++) {
    const isThere = await new Promise<boolean>((resolve) => {
      const socket = connect(port, HOST, () => resolve(true));
      socket.once("error", () => resolve(false)).once("connect", () => socket.destroy());
    });
    if (isThere) return;
    await sleep(systemClock, TRY_EVERY_MS);
  }
  throw new Error("sshd does not listen");
}
