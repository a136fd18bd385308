// Hooks around a whole mocha run, for what mocha lets pass. A rejection that nobody handles fails the test in which it
// comes. A process left behind fails the run, and so does a handle left open, which would keep mocha from ending.
import { readdirSync, readFileSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { availableParallelism, loadavg } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";

/** Set in this process, so inherited by every process that a test starts, orphans of orphans included. */
const MARK = "MOCHA_RUN";
/** The time in which a killed process is gone, on a quiet machine. */
const GRACE_MS = 10_000;
/** The time in which an idle loop ends after the last hook, there. */
const END_MS = 10_000;

const mark = `${process.pid}-${process.hrtime.bigint()}`;

export function mochaGlobalSetup(): void {
  process.env[MARK] = mark;
  // All files of tests are loaded, and with them what they test: processes that run the same sources need not compile them again.
  flushCompileCache();
  // mocha hands rejections on to whoever else listens, and drops them when there is nobody. Thrown, they are its own.
  process.on("unhandledRejection", (reason) => {
    throw reason;
  });
}

export function mochaGlobalTeardown(): void {
  setTimeout(() => {
    console.error(`still open after the last test: ${process.getActiveResourcesInfo().join(", ")}`);
    // mocha sets the exit code by the failures it counted in an `exit` listener; this one comes after it.
    process.on("exit", () => (process.exitCode = 1));
    process.exit();
  }, END_MS * crowding()).unref();
}

export const mochaHooks = {
  async afterAll(this: Mocha.Context): Promise<void> {
    const graceMs = GRACE_MS * crowding();
    this.timeout(graceMs * 2);
    const end = performance.now() + graceMs;
    let left = leftBehind();
    while (left.length > 0 && performance.now() < end) {
      await sleep(50);
      left = leftBehind();
    }
    for (const { pid } of left) kill(pid);
    const lines = left.map(({ pid, command }) => `${pid} ${command}`);
    if (lines.length > 0) throw new Error(`processes left behind by tests: ${lines.join("; ")}`);
  },
};

/** Processes that this run started. Empty where there is no /proc. */
function leftBehind(): { pid: number; command: string }[] {
  return pids().flatMap((pid) => {
    const environment = contents(`/proc/${pid}/environ`).split("\0");
    if (pid === process.pid || !environment.includes(`${MARK}=${mark}`)) return [];
    return [{ pid, command: contents(`/proc/${pid}/cmdline`).replaceAll("\0", " ").trim() }];
  });
}

function pids(): number[] {
  try {
    return readdirSync("/proc").map(Number).filter(Number.isInteger);
  } catch {
    return [];
  }
}

/** How many processes want each core: 1 on a quiet machine, and no more than 8. The guard imports no module beside it: a canary copies it alone. */
function crowding(): number {
  return Math.min(8, Math.max(1, (loadavg()[0] ?? 0) / availableParallelism()));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // Gone by itself meanwhile.
  }
}

function contents(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
