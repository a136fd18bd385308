// Starts a child that waits at a gate: a shell in its place, which becomes the program when it is told to and ends when
// its worker dies first. So everything about it can be settled before it executes anything of the user's.
import { PassThrough, pipeline } from "node:stream";
import type { Readable } from "node:stream";
import { assert } from "../../base/assert.ts";
import type { Child, ChildFailure, ChildRequest } from "./child.ts";
import type { StartedProcess, Starter, StartFailure } from "./starter.ts";

/**
 * File descriptor 3 is the gate: a line lets it through, its end sends it home. The program does not get it, so it closes when the
 * program has taken the shell's place; a shell that could not be replaced says so first, where shells can.
 */
const GATE = `IFS= read -r go <&3 || exit 125; trap 'echo failed >&3' EXIT; exec "$@" 3<&-`;
const GATE_FD = 3;
const CHANNEL_FD = 4;

const EXHAUSTED: ReadonlySet<string> = new Set(["EAGAIN", "ENOMEM", "ENFILE"]);

export interface GatedChild extends Omit<Child, "kill"> {
  /** Resolves when the program has begun: false when it could not, and then the child ends. Once. */
  readonly open: () => Promise<boolean>;
}

export type GatedStart =
  | { readonly kind: "gated"; readonly child: GatedChild }
  | { readonly kind: "failed"; readonly failure: ChildFailure };

/** `program` is absolute, and takes the place of the first word of the command. Never rejects. */
export async function startGated(
  starter: Starter,
  program: string,
  { command, cwd, env, channel }: ChildRequest,
): Promise<GatedStart> {
  const start = await starter.start({
    file: "/bin/sh",
    args: ["-c", GATE, "rollout-gate", program, ...command.slice(1)],
    cwd,
    env,
    streams: ["pipe", "pipe", "pipe", "pipe", ...(channel === true ? (["pipe"] as const) : [])],
  });
  if (start.kind === "failed") return { kind: "failed", failure: failureOf(start.failure) };
  return { kind: "gated", child: gated(start.process) };
}

function gated({ pid, streams, exited }: StartedProcess): GatedChild {
  const [stdin, stdout, stderr] = streams;
  const gate = streams[GATE_FD];
  const channel = streams[CHANNEL_FD];
  assert(
    stdin !== undefined && stdout !== undefined && stderr !== undefined,
    "its standard streams are pipes",
  );
  assert(gate !== undefined, "so is the gate");
  // The child at the other end is gone: its end says so.
  for (const stream of streams) stream?.on("error", () => {});
  // There is nobody left to read what is not written yet.
  void exited.then(() => stdin.destroy());
  return {
    pid,
    stdin,
    stdout: kept(stdout),
    stderr: kept(stderr),
    channel,
    exited,
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

function failureOf({ errno = "", message, hasNul }: StartFailure): ChildFailure {
  if (errno === "EMFILE") return { kind: "exhausted", reason: message };
  if (EXHAUSTED.has(errno))
    return { kind: "exhausted", reason: `the system has no room for another process (${errno})` };
  if (errno === "E2BIG")
    return { kind: "refused", reason: "its arguments and environment are longer than the system allows" };
  if (hasNul)
    return { kind: "refused", reason: "an argument or a variable of its environment has a NUL byte" };
  return { kind: "unusable", reason: `a shell does not start: ${message}` };
}
