// Processes of this machine, of the program that was built in this repository.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Launcher, Started, Variables } from "./launcher.ts";

const PROGRAM = fileURLToPath(new URL("../../bin/run.js", import.meta.url));

export class LocalLauncher implements Launcher {
  readonly name: string;
  readonly address = "127.0.0.1";
  #directory: string | undefined;

  constructor(name: string) {
    this.name = name;
  }

  async prepare(): Promise<void> {
    this.#directory = await mkdtemp(join(tmpdir(), `rollout-smoke-${this.name}-`));
  }

  /** The path of a file in its directory. */
  path(file: string): string {
    return join(this.#place, file);
  }

  async write(file: string, text: string): Promise<void> {
    await writeFile(this.path(file), text, { mode: 0o600 });
  }

  read(file: string): Promise<string> {
    return readFile(this.path(file), "utf8");
  }

  start(words: readonly string[], variables: Variables): Started {
    const child = spawn(process.execPath, [PROGRAM, ...words], {
      cwd: this.#place,
      env: { ...environment(), ...variables },
      stdio: ["ignore", "pipe", "pipe"],
    });
    return { child, signal: async (signal) => void child.kill(signal) };
  }

  async remove(): Promise<void> {
    if (this.#directory !== undefined) await rm(this.#directory, { recursive: true, force: true });
  }

  get #place(): string {
    if (this.#directory === undefined) throw new Error("nothing is prepared");
    return this.#directory;
  }
}

/** Without settings of the user's own, which belong to another cluster. */
function environment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("ROLLOUT_")));
}
