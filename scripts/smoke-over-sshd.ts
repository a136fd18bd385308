// `make smoke-ssh`: the smoke over ssh, to this machine. An sshd of its own on a free port of loopback, with keys and
// configuration of its own in a temporary directory: the system's is neither read nor changed. Where there is no sshd it says so.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmdirSync, rmSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import type { AddressInfo } from "node:net";
import { tmpdir, userInfo } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { sleep, systemClock } from "../src/base/clock.ts";

const SMOKE = fileURLToPath(new URL("smoke-3node.ts", import.meta.url));
const PROGRAM = fileURLToPath(new URL("../bin/run.js", import.meta.url));
/** Where sshd, run by root, wants an empty directory; its service makes it, and here there is no service. */
const EMPTY_DIRECTORY = "/run/sshd";
const HOST = "127.0.0.1";
const TRIES = 100;
const TRY_EVERY_MS = 50;

function sshdProgram(): string | undefined {
  const found = spawnSync("which", ["sshd"], { encoding: "utf8" }).stdout.trim();
  return [found, "/usr/sbin/sshd"].find((path) => path !== "" && existsSync(path));
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, HOST, resolve));
  const { port } = server.address() as AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function makeKey(file: string): string {
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "rollout-smoke", "-f", file]);
  return readFileSync(`${file}.pub`, "utf8").trim();
}

/** Writes keys and both sides' configuration. */
function configure(directory: string, port: number): { sshd: string; ssh: string } {
  const at = (name: string): string => join(directory, name);
  const write = (name: string, lines: readonly string[]): string => {
    writeFileSync(at(name), `${lines.join("\n")}\n`, { mode: 0o600 });
    return at(name);
  };
  const hostKey = makeKey(at("host_key"));
  const authorized = write("authorized_keys", [makeKey(at("user_key"))]);
  const knownHosts = write("known_hosts", [`[${HOST}]:${port} ${hostKey}`]);
  const sshd = write("sshd_config", [
    `ListenAddress ${HOST}:${port}`,
    `HostKey ${at("host_key")}`,
    `AuthorizedKeysFile ${authorized}`,
    `AllowUsers ${userInfo().username}`,
    "PidFile none",
    "StrictModes no",
    "UsePAM no",
    "PasswordAuthentication no",
    "KbdInteractiveAuthentication no",
    "PermitRootLogin prohibit-password",
    "AllowTcpForwarding no",
    "X11Forwarding no",
    "MaxStartups 100",
    "LogLevel ERROR",
  ]);
  const ssh = write("ssh_config", [
    `Port ${port}`,
    `User ${userInfo().username}`,
    `IdentityFile ${at("user_key")}`,
    "IdentitiesOnly yes",
    `UserKnownHostsFile ${knownHosts}`,
    "StrictHostKeyChecking yes",
    "BatchMode yes",
    "LogLevel ERROR",
  ]);
  return { sshd, ssh };
}

async function listens(port: number, sshd: ChildProcess): Promise<void> {
  for (let tries = 0; tries < TRIES && sshd.exitCode === null; tries++) {
    const isThere = await new Promise<boolean>((resolve) => {
      const socket = connect(port, HOST, () => resolve(true));
      socket.once("error", () => resolve(false)).once("connect", () => socket.destroy());
    });
    if (isThere) return;
    await sleep(systemClock, TRY_EVERY_MS);
  }
  throw new Error("sshd does not listen");
}

/** The smoke's exit code. */
async function runSmoke(sshConfig: string, words: readonly string[]): Promise<number> {
  const smoke = spawn(process.execPath, [SMOKE, ...words, "--simulate-preemption"], {
    stdio: "inherit",
    env: {
      ...process.env,
      ROLLOUT_SMOKE_CLOUD: "1",
      ROLLOUT_SMOKE_HOSTS: Array.from({ length: 4 }, () => HOST).join(),
      ROLLOUT_SMOKE_SSH: `ssh -F ${sshConfig}`,
      ROLLOUT_SMOKE_PROGRAM: `${process.execPath} ${PROGRAM}`,
      ROLLOUT_SMOKE_PORT: "0",
      ROLLOUT_SMOKE_MINUTES: "1",
    },
  });
  const pass = (signal: NodeJS.Signals): void => void smoke.kill(signal);
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, pass);
  return new Promise((resolve) => {
    smoke.once("error", () => resolve(1));
    smoke.once("exit", (code) => resolve(code ?? 1));
  });
}

async function main(words: readonly string[]): Promise<number> {
  const program = sshdProgram();
  if (program === undefined) {
    console.error("sshd is not here, so nothing was tried; on Debian: apt-get install openssh-server");
    return 2;
  }
  const directory = mkdtempSync(join(tmpdir(), "rollout-sshd-"));
  const makesEmpty = process.getuid?.() === 0 && !existsSync(EMPTY_DIRECTORY);
  if (makesEmpty) mkdirSync(EMPTY_DIRECTORY, { mode: 0o755 });
  let sshd: ChildProcess | undefined;
  try {
    const port = await freePort();
    const files = configure(directory, port);
    sshd = spawn(program, ["-D", "-e", "-f", files.sshd], { stdio: ["ignore", "ignore", "inherit"] });
    await listens(port, sshd);
    return await runSmoke(files.ssh, words.length > 0 ? words : ["gcp"]);
  } finally {
    sshd?.kill();
    rmSync(directory, { recursive: true, force: true });
    if (makesEmpty) rmdirSync(EMPTY_DIRECTORY);
  }
}

process.exitCode = await main(process.argv.slice(2));
