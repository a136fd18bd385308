// A pipe of the kernel's with both ends in this process, until a child gets one: as between two programs in a shell. The
// streams of Node's own child processes are sockets, whose buffers are others.
import { spawnSync } from "node:child_process";
import { closeSync, constants, openSync } from "node:fs";
import { Socket } from "node:net";

export interface Pipe {
  /** For the child's `stdio`. */
  readonly writeEnd: number;
  /** Closes this process's copy of the child's end: the pipe then ends with the child. */
  given(): void;
  /** From now on somebody reads. May be called once. */
  read(): Socket;
  /** Nobody will ever read. Idempotent. */
  closeReadEnd(): void;
}

/** `path` is where the kernel shows it meanwhile; it is removed with its directory. */
export function makePipe(path: string): Pipe {
  const made = spawnSync("mkfifo", [path], { encoding: "utf8" });
  if (made.status !== 0) throw new Error(`mkfifo ${path}: ${made.stderr}`);
  // The reading end first, and without waiting: else each end waits for the other.
  const readEnd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  const writeEnd = openSync(path, "w");
  let reader: Socket | undefined;
  let closed = false;
  return {
    writeEnd,
    given: () => closeSync(writeEnd),
    read: () => (reader = new Socket({ fd: readEnd, readable: true, writable: false })),
    closeReadEnd: () => {
      if (reader === undefined && !closed) closeSync(readEnd);
      reader?.destroy();
      closed = true;
    },
  };
}
