// A process whose system calls fail as those of a broken machine do, by strace.
import { spawnSync } from "node:child_process";

interface FailingCalls {
  readonly call: string;
  /** The errno name. */
  readonly error: string;
  /** Which of them, counted from the first, as strace has it: "15+", "1..6". */
  readonly which: string;
  /** Only those about this path. */
  readonly path?: string;
}

/** Words to begin a command with. One thread does all of them, because strace counts for each. Throws without strace. */
export function withFailingCalls({ call, error, which, path }: FailingCalls): string[] {
  if (spawnSync("strace", ["-V"]).status !== 0)
    throw new Error(
      "this test lets a system call fail: it needs `strace`; on Debian: apt-get install strace",
    );
  const filter = path === undefined ? [] : ["-P", path];
  const inject = ["-e", `trace=${call}`, "-e", `inject=${call}:error=${error}:when=${which}`];
  // With -D the command keeps its own number, and dies when it is killed.
  return [
    "env",
    "UV_THREADPOOL_SIZE=1",
    "strace",
    "-D",
    "-f",
    "-qq",
    "-o",
    "/dev/null",
    ...filter,
    ...inject,
  ];
}
