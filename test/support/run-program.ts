// Runs a program of this repository to its end, by the Node that runs the tests.
import { spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { environmentFor } from "./rollout-process.ts";

export interface ProgramResult {
  /** Null when a signal ended it. */
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface ProgramOptions {
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** Standard input; without it there is none. */
  readonly input?: string;
}

/** `script` is a path from the root of the repository. */
export async function runProgram(
  script: string,
  args: readonly string[],
  options: ProgramOptions = {},
): Promise<ProgramResult> {
  const path = fileURLToPath(new URL(`../../${script}`, import.meta.url));
  const child = spawn(process.execPath, [path, ...args], {
    cwd: options.cwd,
    env: { ...environmentFor(), ...options.env },
    stdio: "pipe",
  });
  // A program may end before it has read its input, or without reading any.
  child.stdin.on("error", () => {});
  child.stdin.end(options.input ?? "");
  const exited = new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("exit", resolve);
  });
  const [code, stdout, stderr] = await Promise.all([exited, text(child.stdout), text(child.stderr)]);
  return { code, stdout, stderr };
}
