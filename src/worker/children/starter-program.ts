// The process that starts all processes of a worker. It opens nothing and has closed every descriptor that it was given, so its
// children get the standard streams and those that the worker has asked for, and nothing of the worker's databases.
//
// Keeps true: it ends when the worker does; the streams of a child are handed over before the child says anything, because what
// it would say until then is lost.
import { spawn } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { Socket } from "node:net";
import { describeError, errnoOf } from "../../base/errors.ts";
import { closeInherited } from "../../base/process-table.ts";
import type { StartMessage, StarterMessage } from "./starter.ts";

closeInherited();
// Standard input ends with the worker, however it dies. `disconnect` does not always come: not while a stream is being handed over.
process.stdin.once("close", () => process.exit(0)).resume();
process.on("disconnect", () => process.exit(0));
process.on("message", start);

function start(message: unknown): void {
  const { id, file, args, cwd, env, streams } = message as StartMessage;
  let child: ChildProcess;
  try {
    // A session and a group of its own.
    child = spawn(file, args, { cwd, env, detached: true, stdio: [...streams] });
  } catch (error) {
    return fail(id, error);
  }
  const { pid } = child;
  if (pid === undefined) {
    child.once("error", (error) => fail(id, error));
    return;
  }
  // Errors of its streams, which are the worker's from now on.
  child.on("error", () => undefined);
  child.once("exit", (code, signal) => say({ kind: "exited", id, code, signal }));
  for (const [at, stream] of child.stdio.entries())
    if (stream instanceof Socket) say({ kind: "handed", id, at }, stream);
  say({ kind: "started", id, pid });
}

function fail(id: number, error: unknown): void {
  const failure = {
    errno: errnoOf(error),
    message: describeError(error),
    hasNul: error instanceof TypeError,
  };
  say({ kind: "failed", id, failure });
}

function say(message: StarterMessage, stream?: Socket): void {
  // Without a worker there is nobody to hear it, and this process is about to end.
  if (process.connected) process.send?.(message, stream, {}, () => undefined);
}
