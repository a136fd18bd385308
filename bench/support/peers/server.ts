// Servers of peers: programs of this machine, each with a directory of its own for what it keeps, on the disk where a measured coordinator has
// its database; and packages that npm installs into a cache of the benchmarks.
import { spawn, spawnSync } from "node:child_process";
import { accessSync, constants, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import type { Socket } from "node:net";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { sleep, systemClock } from "../../../src/base/clock.ts";
import { freePort } from "../../../test/support/listeners.ts";

const CACHE = resolve(import.meta.dirname, "../../../.cache/bench");
const PATIENCE_MS = 30_000;
const LOOK_MS = 20;

/** Where the program is; undefined when PATH does not have it. */
export function programOnPath(name: string): string | undefined {
  const places = (process.env["PATH"] ?? "").split(delimiter).map((directory) => join(directory, name));
  return places.find((place) => {
    try {
      accessSync(place, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

export interface Installed {
  /** The package with its version. */
  readonly name: string;
  readonly directory: string;
}

export interface Package {
  readonly name: string;
  readonly version: string;
  /** Packages that it needs and does not install itself, with versions. */
  readonly beside?: readonly string[];
  /** Versions that others of its packages take in place of those that they ask for. */
  readonly overrides?: Readonly<Record<string, string>>;
}

/** Installs the package once. */
export function installedPackage(
  { name, version, beside = [], overrides = {} }: Package,
  note: (line: string) => void,
): Installed | { readonly name: string; readonly skipped: string } {
  const directory = join(CACHE, `${name}-${version}`);
  const installed = { name: `${name} ${version}`, directory };
  if (existsSync(join(directory, "node_modules", name, "package.json"))) return installed;
  note(`installs ${name} ${version}`);
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "package.json"), `${JSON.stringify({ overrides })}\n`);
  const words = ["install", "--no-audit", "--no-fund", "--loglevel=error", `${name}@${version}`, ...beside];
  const { status } = spawnSync("npm", words, { cwd: directory, stdio: ["ignore", "ignore", "inherit"] });
  return status === 0 ? installed : { name: installed.name, skipped: "npm could not install it" };
}

export interface Server {
  readonly pid: number;
  readonly port: number;
  close(): Promise<void>;
}

/** Resolves when the program listens at its port. */
export async function startServer(
  program: string,
  argsFor: (port: number, directory: string) => readonly string[],
): Promise<Server> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
  const port = await freePort();
  const child = spawn(program, argsFor(port, directory), { cwd: directory, stdio: "ignore" });
  let ended: string | undefined;
  const exited = new Promise<void>((exit) => {
    const end = (how: string): void => {
      ended = how;
      exit();
    };
    child.once("error", ({ message }) => end(message));
    child.once("exit", (code, signal) => end(`it ended with ${signal ?? code}`));
  });
  const close = async (): Promise<void> => {
    if (ended === undefined) child.kill("SIGKILL");
    await exited;
    rmSync(directory, { recursive: true, force: true });
  };
  const lateMs = systemClock.monotonicMs() + PATIENCE_MS;
  while (!(await listens(port))) {
    if (ended === undefined && systemClock.monotonicMs() < lateMs) await sleep(systemClock, LOOK_MS);
    else {
      await close();
      throw new Error(`${program} does not listen: ${ended ?? "not in time"}`);
    }
  }
  return { pid: child.pid ?? 0, port, close };
}

async function listens(port: number): Promise<boolean> {
  const socket = connect(port, "127.0.0.1");
  try {
    await opened(socket);
    return true;
  } catch {
    return false;
  } finally {
    socket.destroy();
  }
}

/** Says a line to a server that speaks lines; returns what it answers first. */
export async function askLine(port: number, line: string): Promise<string> {
  const socket = connect(port, "127.0.0.1");
  try {
    await opened(socket);
    socket.write(`${line}\r\n`);
    return await new Promise((answer, reject) => {
      socket.once("data", (bytes: Buffer) => answer(bytes.toString()));
      socket.once("error", reject);
    });
  } finally {
    socket.destroy();
  }
}

function opened(socket: Socket): Promise<void> {
  return new Promise((open, reject) => {
    socket.once("connect", open);
    socket.once("error", reject);
  });
}
