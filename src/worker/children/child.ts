// The port between backends and the processes in which they run other people's code.
//
// Keeps true: how a start failed is a value; the holder of a child calls its `kill`, however it ended.
import type { Duplex, Readable, Writable } from "node:stream";

export interface ChildRequest {
  /** The program and its arguments. A program without a slash is looked for in the PATH of `env`. */
  readonly command: readonly string[];
  /** Absolute. */
  readonly cwd: string;
  /** All of its environment, but for `variables`. The same object for starts alike, so that they can share what they need. */
  readonly env: Readonly<Record<string, string>>;
  /** Variables that this start alone has. Their names are of letters, digits and underscores. */
  readonly variables?: Readonly<Record<string, string>>;
  /** All of its standard input. It is written and ended when the child starts; `Child.stdin` is nobody else's then. */
  readonly input?: Uint8Array;
  /** Not by a shell that is kept for it: a child that `isUnbegun` is started again so, to learn why. */
  readonly byStarter?: boolean;
  /** Whether it gets a socket as file descriptor 4 beside the standard three: `Child.channel`. */
  readonly channel?: boolean;
  /** Asked when everything about the child is settled, and before it executes anything of its program. It may, unless said. */
  readonly mayBegin?: () => boolean;
}

export interface ChildEnd {
  /** Null when a signal ended it. Both null: nobody knows how it ended, for the process that would have been told has died. */
  readonly code: number | null;
  readonly signal: NodeJS.Signals | null;
}

export interface Child {
  /** The number of the process that was started, of its session and of its group. */
  readonly pid: number;
  /** Errors of these four are swallowed: that it went away is what `exited` says. */
  readonly stdin: Writable;
  /** To be read, both: a child that writes to a pipe that nobody reads stands still. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  readonly channel: Duplex | undefined;
  /** How the process itself ended; processes that it started may still run, and its output may not be read yet. */
  readonly exited: Promise<ChildEnd>;
  /**
   * Ends it and all that it started: SIGTERM to the group, SIGKILL when something of it is left after `graceMs`; 0 is SIGKILL
   * at once. Resolves when nothing is left. To be called for every child, for one that has ended too: it may have left
   * others. Another call with less grace makes it quicker.
   */
  kill(graceMs: number): Promise<void>;
  /** Whether it has ended because its program could not be executed at all. Absent where the start has said so. */
  isUnbegun?(): Promise<boolean>;
}

export type ChildStart =
  | { readonly kind: "started"; readonly child: Child }
  | { readonly kind: "failed"; readonly failure: ChildFailure };

export interface ChildFailure {
  /**
   * `unusable`: the program or its directory is not there, or may not be executed. `refused`: not with these arguments (too
   * long, a NUL byte). `exhausted`: the machine has no room for another process at this moment. `withheld`: `mayBegin` said no,
   * and nothing of it is left.
   */
  readonly kind: "unusable" | "refused" | "exhausted" | "withheld";
  /** One line, with the name of what it is about. */
  readonly reason: string;
}

/** The port: what a backend needs of it. */
export interface Children {
  /** Never rejects. */
  spawn(request: ChildRequest): Promise<ChildStart>;
}
