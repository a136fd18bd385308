// SIGINT and SIGTERM ask once: the first is to be obeyed in good order, the second is obeyed at once. SIGHUP asks as they do, and never
// to hurry: a terminal that closes may send it twice. Only where a process reads files anew at it, and hangs on no terminal, it asks for that.
import { failure } from "../base/errors.ts";
import { tellLastWords } from "./exit.ts";
import { spawn } from "node:child_process";
import { fstatSync } from "node:fs";

type StopSignal = "SIGINT" | "SIGTERM" | "SIGHUP";

/** The meaning of SIGHUP to a process: `leave`, as SIGTERM does, or `reload` where it hangs on no terminal (`onHangUp`). */
export type HangUp = "leave" | "reload";

/**
 * Resolves with the first signal. A second SIGINT or SIGTERM calls `atOnce` and ends the process there and then, with the row
 * `interrupted`, and with the sentence that it gives.
 */
export function untilSignalled(
  argv: readonly string[],
  atOnce?: () => string | undefined,
  hangUp: HangUp = "leave",
): Promise<StopSignal> {
  return new Promise((resolve) => {
    let asked = false;
    const onSignal = (signal: StopSignal): void => {
      if (asked && signal === "SIGHUP") return;
      if (asked) {
        tellLastWords(failure("interrupted", {}), argv, atOnce?.());
      }
      asked = true;
      resolve(signal);
    };
    process.on("SIGINT", onSignal);
    process.on("SIGTERM", onSignal);
    if (hangUp === "leave" || process.stdin.isTTY) process.on("SIGHUP", onSignal);
  });
}

/**
 * For a process that is to live no longer than the one that holds the other end of its standard input. It is a process
 * of a local run then, and closes every other descriptor that it was given (`main`): the one that started it has a database open.
 */
export const STOP_AT_END_OF_INPUT = "stop-at-end-of-input";

/** As `untilSignalled`; with `watchesInput` also when standard input ends, as it does when whoever started this has died. */
export function untilToldToStop(
  argv: readonly string[],
  watchesInput: boolean,
  hangUp: HangUp = "leave",
): Promise<StopSignal | "end-of-input"> {
  const signalled = untilSignalled(argv, undefined, hangUp);
  if (!watchesInput) return signalled;
  const ended = new Promise<"end-of-input">((resolve) => {
    for (const event of ["end", "close", "error"]) process.stdin.once(event, () => resolve("end-of-input"));
    process.stdin.resume();
  });
  return Promise.race([signalled, ended]);
}

/**
 * Calls `reload` at each SIGHUP, unless the process hangs on a terminal: then the signal says that the terminal is gone. For who asks
 * `untilToldToStop` with `reload`.
 */
export function onHangUp(reload: () => void): void {
  if (!process.stdin.isTTY) process.on("SIGHUP", reload);
}

/**
 * Resolves as `work` does. Rejects with `interrupted` when a signal comes first; `work` is then left behind. With `giveUp`, which asks
 * `work` to end, it is waited for: it has something to take back.
 */
export function unlessInterrupted<Result>(
  work: Promise<Result>,
  argv: readonly string[],
  giveUp?: () => void,
): Promise<Result> {
  const interruption = untilSignalled(argv).then((): Promise<Result> => {
    if (giveUp === undefined) throw failure("interrupted", {});
    giveUp();
    return work;
  });
  return Promise.race([work, interruption]);
}

// Whether somebody still reads standard output, for commands that may have nothing to write for a long time: Node learns that a
// pipe has lost its reader only when it writes. `tail` of GNU looks for that while it waits, and dies of it by SIGPIPE.

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
