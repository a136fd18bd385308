// The end of the process: when everything that was written has left, and not before; and at once, in one line, when the
// program met a bug.
import type { Writable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { isDoneWithin, sleep } from "../base/clock.ts";
import { EXIT } from "../base/error-row.ts";
import { describeError, errnoOf, failure } from "../base/errors.ts";
import type { ExitCode } from "../base/error-row.ts";
import type { RolloutError } from "../base/errors.ts";
import { systemReason } from "../base/system-reason.ts";
import { printableLines, redactSecrets } from "../base/safe-text.ts";
import { writeAllSync } from "../observe/line-output.ts";
import { namedConfig, splitAtDashes, wantsJson } from "./arguments.ts";
import { errorLine, errorObject } from "./render/error.ts";

/** System calls that are under way at the end have so long to be done. */
const HELD_DEADLINE_MS = 500;
const HELD_POLL_MS = 5;
/** A reader that takes nothing for this long loses the rest. */
const DRAIN_DEADLINE_MS = 5_000;

/** Waits until both streams have given away what they hold, then ends the process. */
export async function endProcess(code: ExitCode, clock: Clock): Promise<never> {
  // A write that has failed is told of in a later turn.
  await new Promise<void>((resolve) => clock.nextTurn(resolve));
  await isDoneWithin(clock, DRAIN_DEADLINE_MS, Promise.all([drain(process.stdout), drain(process.stderr)]));
  for (let waitedMs = 0; isHeld() && waitedMs < HELD_DEADLINE_MS; waitedMs += HELD_POLL_MS)
    await sleep(clock, HELD_POLL_MS);
  return exitNow(code);
}

/** An exception that nobody caught, or a rejection that nobody awaited, ends the process as a bug. */
export function endOnBugs(argv: readonly string[]): void {
  const end = (error: unknown): never => tellLastWords(bugFrom(error), argv);
  process.on("uncaughtException", end);
  process.on("unhandledRejection", end);
}

/**
 * Standard output that cannot be written is no bug of ours, as the parser's own listener would have it: a full disk ends the
 * process with its row, a reader that has left is nothing. A process that writes events listens too, and goes on without.
 */
export function endOnFullOutput(argv: readonly string[]): void {
  process.stdout.removeAllListeners("error");
  // There is nobody left to tell.
  process.stderr.on("error", () => undefined);
  process.stdout.on("error", (error) => {
    if (errnoOf(error) === "EPIPE" || process.stdout.listenerCount("error") > 1) return;
    tellLastWords(
      failure("output_unwritten", { file: "standard output", reason: systemReason(error) }),
      argv,
    );
  });
}

/**
 * Says the error, and to a person `more`, and ends the process there and then: nothing else that waits to be written or done is
 * waited for.
 */
export function tellLastWords(error: RolloutError, argv: readonly string[], more?: string): never {
  if (wantsJson(argv))
    writeAllSync(process.stdout.fd, `${JSON.stringify(errorObject(error, namedConfig(argv)))}\n`);
  writeAllSync(process.stderr.fd, bugReport(error, argv));
  if (more !== undefined && !wantsJson(argv)) writeAllSync(process.stderr.fd, `${more}\n`);
  return exitNow(error.row.exit);
}

/**
 * The end, also where a thread is held by a system call, as by a pipe that nobody opens at its other end: `process.exit` waits for
 * all of them, for ever. The process then becomes one that has no threads and nothing to do but to end with the code.
 */
function exitNow(code: ExitCode): never {
  if (isHeld() && process.platform !== "win32")
    process.execve?.(process.execPath, [process.execPath, "-e", `process.exit(${code})`], {});
  return process.exit(code);
}

/** Whether a call to the file system or to the name service is under way. */
function isHeld(): boolean {
  return process.getActiveResourcesInfo().some((name) => /^FSReq|^GetAddrInfo/.test(name));
}

/** An error that is no row of the table was not expected by anybody. */
export function bugFrom(error: unknown): RolloutError {
  const detail = error instanceof Error ? `${error.name}: ${describeError(error)}` : describeError(error);
  return failure("internal", { detail }, error);
}

/** The error's line; at level debug followed by where it was thrown. */
export function bugReport(error: RolloutError, argv: readonly string[]): string {
  const line = `${errorLine(error, wantsColour(process.stderr), namedConfig(argv))}\n`;
  if (error.row.exit !== EXIT.bug || !wantsDebug(argv)) return line;
  const stack = error.cause instanceof Error ? (error.cause.stack ?? "") : "";
  return `${line}${printableLines(redactSecrets(stack))}\n`;
}

/** A terminal, and nobody who asked for no colours (https://no-color.org). */
export function wantsColour(stream: { readonly isTTY?: boolean }): boolean {
  return stream.isTTY === true && (process.env["NO_COLOR"] ?? "") === "" && process.env["TERM"] !== "dumb";
}

function wantsDebug(argv: readonly string[]): boolean {
  const { own } = splitAtDashes(argv);
  const flag = own.indexOf("--log-level");
  const level = flag === -1 ? process.env["ROLLOUT_LOG_LEVEL"] : own[flag + 1];
  return level === "debug" || own.includes("--log-level=debug");
}

function drain(stream: Writable): Promise<void> {
  return new Promise((resolve) => {
    // The reader has gone: nothing that is held will ever leave.
    if (stream.destroyed || stream.writableLength === 0) return resolve();
    // Called too when what was written before it fails.
    stream.write("", () => resolve());
  });
}
