// Whether somebody still reads standard output, for commands that may have nothing to write for a long time: Node learns that a
// pipe has lost its reader only when it writes. `tail` of GNU looks for that while it waits, and dies of it by SIGPIPE.
import { spawn } from "node:child_process";
import { fstatSync } from "node:fs";
import { untilSignalled } from "./signals.ts";

const STANDARD_OUTPUT = 1;

/** Why a command that goes on and on has ended. */
export interface SeenEnough {
  readonly signal: AbortSignal;
  /** Nobody reads any more: nothing went wrong, and nothing was asked for. */
  readonly isReaderGone: boolean;
}

/**
 * Aborts at the first signal and, if it matters, when nobody reads standard output any more; to be called once, for the rest of the
 * process.
 */
export function untilSeenEnough(argv: readonly string[], needsReader = true): SeenEnough {
  const stop = new AbortController();
  const state = { signal: stop.signal, isReaderGone: false };
  void untilSignalled(argv).then(() => stop.abort());
  if (!needsReader) return state;
  watchReader(() => {
    state.isReaderGone = true;
    stop.abort();
  });
  return state;
}

/**
 * Calls back once when the reader of standard output has gone, within a second or so; never when that is no pipe, or where there is no
 * such `tail`: then the next write finds it out.
 */
function watchReader(onGone: () => void): void {
  if (!isPipe()) return;
  const words = ["-f", "/dev/null", `--pid=${process.pid}`];
  const watcher = spawn("tail", words, { stdio: ["ignore", "inherit", "ignore"] });
  watcher.on("error", () => undefined);
  watcher.on("exit", (_, signal) => {
    if (signal === "SIGPIPE") onGone();
  });
  watcher.unref();
  // It has the pipe open too, and its reader would wait for it.
  process.on("exit", () => watcher.kill());
}

function isPipe(): boolean {
  try {
    return fstatSync(STANDARD_OUTPUT).isFIFO();
  } catch {
    return false;
  }
}
