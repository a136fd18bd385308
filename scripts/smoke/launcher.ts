// Where the processes of a smoke run: on this machine, or on others over ssh. Nothing else of the smoke knows the difference.
import type { ChildProcess } from "node:child_process";

/** Variables of a process beside those that it finds on its host. */
export type Variables = Readonly<Record<string, string>>;

/** A directory of its own on one host, and processes of the program in it. */
export interface Launcher {
  /** For people. */
  readonly name: string;
  /** By which the other hosts reach this one. */
  readonly address: string;
  /** Makes the directory, and sees that the program is there. Call it first. */
  prepare(): Promise<void>;
  /** A file in the directory, for its owner only. */
  write(file: string, text: string): Promise<void>;
  read(file: string): Promise<string>;
  /** The program with these arguments, in the directory. It ends when this process does. */
  start(words: readonly string[], variables: Variables): Started;
  /** Takes the directory away. Idempotent. */
  remove(): Promise<void>;
}

export interface Started {
  /** With its standard output and error; its exit code is the program's. */
  readonly child: ChildProcess;
  signal(signal: "SIGTERM" | "SIGKILL"): Promise<void>;
}
