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

/** One thread of libuv's pool makes all the calls, because strace counts for each. */
const ONE_THREAD = ["env", "UV_THREADPOOL_SIZE=1"];

/** Words to begin a command with. Throws without strace. */
export function withFailingCalls({ call, error, which, path }: FailingCalls): string[] {
  const filter = path === undefined ? [] : ["-P", path];
  return [...ONE_THREAD, ...strace(call, `error=${error}:when=${which}`), ...filter];
}

interface StallingCalls {
  readonly call: string;
  readonly stallMs: number;
  /** Which of them, counted from the first, as strace has it. */
  readonly which: string;
}

/** The same, where each of these calls takes so much longer, and the main thread goes on. */
export function withStallingCalls({ call, stallMs, which }: StallingCalls): string[] {
  return [...ONE_THREAD, ...strace(call, `delay_enter=${Math.round(stallMs * 1_000)}:when=${which}`)];
}

/** The same, where these calls do nothing and say that they have succeeded. */
export function withLyingCalls(calls: readonly string[]): string[] {
  return strace(calls.join(), "retval=0");
}

function strace(call: string, what: string): string[] {
  if (spawnSync("strace", ["-V"]).status !== 0)
    throw new Error(
      "this test has system calls that fail or stall: it needs `strace`; on Debian: apt-get install strace",
    );
  // With -D the command keeps its own number, and dies when it is killed.
  const quietly = ["strace", "-D", "-f", "-qq", "-o", "/dev/null"];
  return [...quietly, "-e", `trace=${call}`, "-e", `inject=${call}:${what}`];
}
