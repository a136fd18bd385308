// The behaviour of items in the backends' contract: one program's worth of good and bad manners, for a
// command, a long-lived process or a function to have.
import { spawn } from "node:child_process";
import { appendFileSync, existsSync, readdirSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** The payload, as JSON. */
export type ItemBehaviour =
  /** Gives the value back. */
  | { readonly do: "echo"; readonly value: unknown }
  /** Says no, with these words. */
  | { readonly do: "fail"; readonly words: string }
  /** Dies. */
  | { readonly do: "crash" }
  /**
   * Starts a process of its own, writes both pids into the file, and never ends. `stubborn`: not when it is asked to either.
   */
  | { readonly do: "hang"; readonly pids: string; readonly stubborn?: boolean }
  /** Gives so many bytes back. */
  | { readonly do: "big"; readonly bytes: number }
  /** Gives back bytes that are no UTF-8. */
  | { readonly do: "garble" }
  /** Writes these words to standard error, then gives them back. */
  | { readonly do: "complain"; readonly words: string }
  /** Leaves a checkpoint and waits for its end; given a checkpoint it gives that back. */
  | { readonly do: "save"; readonly checkpoint: string; readonly saved: string }
  /** Gives back the state of its key, null for none, and leaves this one; null for none. */
  | { readonly do: "learn"; readonly state: string | null; readonly fails?: boolean }
  /** Gives back the files that the process has open. */
  | { readonly do: "list" }
  /** Ends when so many of its kind are there. */
  | ({ readonly do: "meet" } & Meeting)
  /** Gives back its slot when so many of its kind are there. */
  | ({ readonly do: "slot" } & Meeting);

interface Meeting {
  readonly directory: string;
  readonly name: string;
  readonly count: number;
}

export interface Surroundings {
  /** The checkpoint that the attempt before left, "" when none. */
  readonly checkpoint: string;
  /** The number of the slot that it executes in, as it was told. */
  readonly slot?: unknown;
  save(checkpoint: string): void;
  /** The state of the item's key, a value of JSON; null when it has none. */
  readonly state?: unknown;
  /** Succeeding, it leaves this one. */
  learn?(state: string | null): void;
  complain(words: string): void;
  /** Makes whoever executes deaf to every request to end. */
  ignoreEnd(): void;
}

/** The bytes that are no UTF-8. */
export const GARBLED = Buffer.from([0x61, 0xff, 0xfe, 0x62]);

export type Behaved =
  | { readonly kind: "value"; readonly value: unknown }
  | { readonly kind: "bytes"; readonly bytes: Buffer }
  | { readonly kind: "failed"; readonly words: string };

export async function behave(item: ItemBehaviour, around: Surroundings): Promise<Behaved> {
  switch (item.do) {
    case "echo":
      return { kind: "value", value: item.value };
    case "fail":
      return { kind: "failed", words: item.words };
    case "crash":
      process.kill(process.pid, "SIGKILL");
      return forever();
    case "hang": {
      if (item.stubborn === true) around.ignoreEnd();
      const child = spawn("sleep", ["600"], { stdio: "ignore" });
      writeFileSync(item.pids, `${process.pid} ${child.pid ?? 0}\n`);
      return forever();
    }
    case "big":
      return { kind: "bytes", bytes: Buffer.alloc(item.bytes, "x") };
    case "garble":
      return { kind: "bytes", bytes: GARBLED };
    case "complain":
      around.complain(item.words);
      return { kind: "value", value: item.words };
    case "save":
      if (around.checkpoint !== "") return { kind: "value", value: around.checkpoint };
      around.save(item.checkpoint);
      appendFileSync(item.saved, "saved\n");
      return forever();
    case "learn":
      around.learn?.(item.state);
      return item.fails === true
        ? { kind: "failed", words: "after it has learned" }
        : { kind: "value", value: around.state };
    case "list":
      return { kind: "value", value: openFiles(process.pid) };
    case "meet":
    case "slot":
      writeFileSync(join(item.directory, item.name), "");
      while (!existsSync(item.directory) || readdirSync(item.directory).length < item.count) await sleep(5);
      return { kind: "value", value: item.do === "slot" ? Number(around.slot) : item.name };
  }
}

/** Files that are open at a path, in a process of this user's. */
export function openFiles(pid: number): string[] {
  const directory = `/proc/${pid}/fd`;
  const links = readdirSync(directory).flatMap((name) => {
    try {
      return [readlinkSync(join(directory, name))];
    } catch {
      // The one that the list was read by.
      return [];
    }
  });
  return links.filter((path) => path.startsWith("/") && !path.startsWith("/proc/") && path !== "/dev/null");
}

async function forever(): Promise<never> {
  for (;;) await sleep(60_000);
}
