// Starts a child that waits at a gate: a shell in its place, which becomes the program when it is told to and ends when
// whoever started it dies first. So everything about it can be settled before it executes anything of the user's.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { Duplex, PassThrough, pipeline } from "node:stream";
import type { Readable, Writable } from "node:stream";
import { assert } from "../../base/assert.ts";
import { describeError, errnoOf } from "../../base/errors.ts";
import type { ChildEnd, ChildFailure, ChildRequest } from "./child.ts";

/**
 * File descriptor 3 is the gate: a line lets it through, its end sends it home. The program does not get it, so it closes when the
 * program has taken the shell's place; a shell that could not be replaced says so first, where shells can.
 */
const GATE = `IFS= read -r go <&3 || exit 125; trap 'echo failed >&3' EXIT; exec "$@" 3<&-`;
const GATE_FD = 3;
const CHANNEL_FD = 4;

const EXHAUSTED: ReadonlySet<string> = new Set(["EAGAIN", "ENOMEM", "EMFILE", "ENFILE"]);

export interface GatedChild {
  readonly pid: number;
  readonly stdin: Writable;
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly channel: Duplex | undefined;
  readonly exited: Promise<ChildEnd>;
  /** Resolves when the program has begun: false when it could not, and then the child ends. Once. */
  open(): Promise<boolean>;
}

export type GatedStart =
  | { readonly kind: "gated"; readonly child: GatedChild }
  | { readonly kind: "failed"; readonly failure: ChildFailure };

/** `program` is absolute, and takes the place of the first word of the command. Never rejects. */
export async function startGated(
  program: string,
  { command, cwd, env, channel }: ChildRequest,
): Promise<GatedStart> {
  let started: ChildProcess;
  try {
    started = spawn("/bin/sh", ["-c", GATE, "rollout-gate", program, ...command.slice(1)], {
      cwd,
      env,
      // A session and a group of its own.
      detached: true,
      stdio: ["pipe", "pipe", "pipe", "pipe", channel === true ? "pipe" : "ignore"],
    });
  } catch (error) {
    return { kind: "failed", failure: failureOf(error) };
  }
  const { pid } = started;
  // What fails here says so later.
  if (pid === undefined) return { kind: "failed", failure: failureOf(await errorOf(started)) };
  return { kind: "gated", child: gated(started, pid) };
}

function gated(started: ChildProcess, pid: number): GatedChild {
  const { stdin, stdout, stderr, stdio } = started;
  const gate = stdio[GATE_FD];
  const channel = stdio[CHANNEL_FD] ?? undefined;
  assert(stdin !== null && stdout !== null && stderr !== null, "its standard streams are pipes");
  assert(gate instanceof Duplex, "the gate is one that can be read and written");
  assert(channel === undefined || channel instanceof Duplex, "so is the channel");
  // Whoever is at the other end is gone: its end says so.
  for (const stream of [stdin, stdout, stderr, gate, channel]) stream?.on("error", () => {});
  // Of sending a signal, which is done elsewhere.
  started.on("error", () => {});
  return {
    pid,
    stdin,
    stdout: kept(stdout),
    stderr: kept(stderr),
    channel,
    exited: new Promise((resolve) => started.once("exit", (code, signal) => resolve({ code, signal }))),
    open: () =>
      new Promise((resolve) => {
        let hasFailed = false;
        gate.on("data", () => (hasFailed = true));
        gate.once("close", () => resolve(!hasFailed));
        gate.write("go\n");
      }),
  };
}

/** Node throws away what is not being read of a stream when its process ends; not of this one. */
function kept(stream: Readable): Readable {
  return pipeline(stream, new PassThrough(), () => {});
}

function errorOf(started: ChildProcess): Promise<unknown> {
  return new Promise((resolve) => started.once("error", resolve));
}

function failureOf(error: unknown): ChildFailure {
  const errno = errnoOf(error) ?? "";
  if (EXHAUSTED.has(errno))
    return { kind: "exhausted", reason: `the system has no room for another process (${errno})` };
  if (errno === "E2BIG")
    return { kind: "refused", reason: "its arguments and environment are longer than the system allows" };
  if (error instanceof TypeError)
    return { kind: "refused", reason: "an argument or a variable of its environment has a NUL byte" };
  return { kind: "unusable", reason: `a shell does not start: ${describeError(error)}` };
}
