// A program of another system, run to its end: its time and its output are limited, and its process group ends with it.
//
// Keeps true: never rejects; nothing of the group that it was started in is left when it resolves. A child that has left that group on purpose,
// as a worker does that outlives its coordinator, goes on.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import type { Readable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import { sleep } from "../base/clock.ts";
import { errnoOf } from "../base/errors.ts";
import { systemReason } from "../base/system-reason.ts";

export interface BoundedRequest {
  /** The program and its arguments. */
  readonly command: readonly [string, ...string[]];
  readonly directory: string;
  /** All of its standard input. */
  readonly input: string;
  /** The input is given only when its output has had this line: before that it was told nothing. */
  readonly inputAfter?: string;
  readonly timeLimitMs: number;
  /** The limit of each of its two outputs. */
  readonly outputBytesMax: number;
}

export type BoundedOutcome =
  /** `isTold`: it was given its input. */
  | {
      readonly kind: "exited";
      readonly code: number;
      readonly stdout: string;
      readonly stderr: string;
      readonly isTold: boolean;
    }
  /** It was killed: `reason` says why. Nobody knows what it has done with what it was told. */
  | { readonly kind: "killed"; readonly reason: string; readonly stderr: string; readonly isTold: boolean }
  /** There is no such program, or it may not run. */
  | { readonly kind: "unstarted"; readonly reason: string };

/** How long output that is still in its pipes is waited for when it has ended: others may hold the pipes open for ever. */
const DRAIN_MS = 1_000;
/** A line without an end is looked at from its end, so far. */
const LINE_CHARS_MAX = 4_096;

export async function runBounded(request: BoundedRequest, clock: Clock): Promise<BoundedOutcome> {
  const child = begin(request);
  const outcome: BoundedOutcome =
    child instanceof Error
      ? { kind: "unstarted", reason: systemReason(child) }
      : await follow(child, request, clock);
  if (outcome.kind !== "unstarted") return outcome;
  return { kind: "unstarted", reason: `${request.command[0]}: ${outcome.reason}` };
}

function begin({ command: [program, ...words], directory }: BoundedRequest): ChildProcess | Error {
  try {
    return spawn(program, words, { cwd: directory, detached: true, stdio: ["pipe", "pipe", "pipe"] });
  } catch (error) {
    return error instanceof Error ? error : new Error(String(error));
  }
}

async function follow(
  child: ChildProcess,
  { input, inputAfter, timeLimitMs, outputBytesMax }: BoundedRequest,
  clock: Clock,
): Promise<BoundedOutcome> {
  let killed: string | undefined;
  const kill = (reason: string): void => {
    killed ??= reason;
    killGroup(child.pid);
  };
  const onFlood = (): void => kill(`it said more than ${outputBytesMax} bytes`);
  const [stdout, stderr] = [child.stdout, child.stderr].map((stream) =>
    collect(stream, outputBytesMax, onFlood),
  );
  const closed = new Promise<void>((resolve) => child.once("close", () => resolve()));
  const ended = new Promise<number | Error | null>((resolve) => {
    child.once("exit", resolve);
    child.once("error", resolve);
  });
  // A program that does not read all that it is told is none that has failed.
  child.stdin?.on("error", () => undefined);
  let isTold = inputAfter === undefined;
  const tell = (): void => {
    isTold = true;
    child.stdin?.end(input);
  };
  if (inputAfter === undefined) tell();
  else onLine(child.stdout, inputAfter, tell);
  const limit = clock.after(timeLimitMs, () => kill(`it took more than ${timeLimitMs} ms`));
  const end = await ended;
  limit.cancel();
  if (end instanceof Error) return { kind: "unstarted", reason: systemReason(end) };
  killGroup(child.pid);
  const patience = new AbortController();
  await Promise.race([closed, sleep(clock, DRAIN_MS, patience.signal)]);
  patience.abort();
  child.stdout?.destroy();
  child.stderr?.destroy();
  const said = { stdout: stdout?.() ?? "", stderr: stderr?.() ?? "" };
  const reason = killed ?? (end === null ? "a signal ended it" : undefined);
  if (reason !== undefined) return { kind: "killed", reason, stderr: said.stderr, isTold };
  return { kind: "exited", code: end ?? 0, ...said, isTold };
}

/** The returned function tells its output until now. */
function collect(stream: Readable | null, bytesMax: number, onFlood: () => void): () => string {
  const chunks: Buffer[] = [];
  let bytes = 0;
  stream?.on("error", () => undefined);
  stream?.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    if (bytes <= bytesMax) chunks.push(chunk);
    else onFlood();
  });
  return () => Buffer.concat(chunks).toString("utf8");
}

/** Calls `tell` once, at the first line of the output that is this one; not beyond what the output may have. */
function onLine(stream: Readable | null, line: string, tell: () => void): void {
  let rest = "";
  const look = (chunk: Buffer): void => {
    const lines = (rest + chunk.toString("latin1")).split("\n");
    rest = lines.at(-1)?.slice(-LINE_CHARS_MAX) ?? "";
    if (!lines.slice(0, -1).some((each) => each.replace(/\r$/, "") === line)) return;
    stream?.off("data", look);
    tell();
  };
  stream?.on("data", look);
}

/** Kills all that is left of the group. */
export function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch (error) {
    // None of it is there any more, or it has become somebody else's.
    if (!["ESRCH", "EPERM"].includes(errnoOf(error) ?? "")) throw error;
  }
}
