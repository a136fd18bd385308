// Lines to a stream whose reader may be slow, stuck or gone. Keeps true: each write is whole lines, and one at a time
// is under way; memory is bounded, whoever reads (C8); what does not fit is counted, and the count stands where the lines
// would have stood; a closed pipe silences it and ends nothing.
import type { Writable } from "node:stream";
import { blockThread } from "../base/clock.ts";
import type { Clock } from "../base/clock.ts";
import { writeSync } from "node:fs";
import { errnoOf } from "../base/errors.ts";

export interface LineOutputOptions {
  readonly stream: Writable;
  readonly clock: Clock;
  /** The limit of what waits in memory, with what is under way. */
  readonly limitBytes: number;
  /** The line, with its ending, that stands for `count` dropped ones. */
  readonly gapLine: (count: number) => string;
  /** Called once when the stream failed, as it does when its reader has gone. */
  readonly onBroken?: (error: Error) => void;
}

export class LineOutput {
  readonly #options: LineOutputOptions;
  #waiting: string[] = [];
  #waitingBytes = 0;
  #underWayBytes = 0;
  #droppedCount = 0;
  #flushIsDue = false;
  #state: "open" | "closing" | "silent" = "open";
  #whenIdle: (() => void) | undefined;
  #closed: Promise<void> | undefined;

  constructor(options: LineOutputOptions) {
    this.#options = options;
    options.stream.on("error", (error: Error) => this.#break(error));
  }

  /** Takes a line with its ending. Lines of one turn of the loop leave as one write. Never throws, never waits. */
  write(line: string): void {
    if (this.#state !== "open") return;
    const bytes = Buffer.byteLength(line);
    if (this.#waitingBytes + this.#underWayBytes + bytes > this.#options.limitBytes) {
      this.#droppedCount++;
      return;
    }
    this.#fillGap();
    this.#push(line, bytes);
    if (this.#flushIsDue) return;
    this.#flushIsDue = true;
    this.#options.clock.nextTurn(() => {
      this.#flushIsDue = false;
      this.#flush();
    });
  }

  /**
   * Writes what waits and `line` to `fd`, the stream's own descriptor, before it returns. The last call: later
   * lines are ignored. A write that is under way may have stopped in the middle of a line, so this starts a new one.
   */
  writeNow(line: string, fd: number): boolean {
    if (this.#state === "silent") return false;
    const start = this.#underWayBytes > 0 ? "\n" : "";
    this.#fillGap();
    const text = start + this.#waiting.join("") + line;
    this.#silence();
    return writeAllSync(fd, text);
  }

  /** Resolves when everything has left, the reader has gone, or `deadlineMs` have passed. Idempotent. Never rejects. */
  close(deadlineMs: number): Promise<void> {
    this.#closed ??= new Promise((resolve) => {
      if (this.#state === "open") this.#state = "closing";
      this.#flush();
      if (this.#waiting.length === 0 && this.#underWayBytes === 0) return resolve();
      const deadline = this.#options.clock.after(deadlineMs, () => this.#silence());
      this.#whenIdle = () => {
        deadline.cancel();
        resolve();
      };
    });
    return this.#closed;
  }

  #push(line: string, bytes: number): void {
    this.#waiting.push(line);
    this.#waitingBytes += bytes;
  }

  #fillGap(): void {
    if (this.#droppedCount === 0) return;
    const line = this.#options.gapLine(this.#droppedCount);
    this.#droppedCount = 0;
    this.#push(line, Buffer.byteLength(line));
  }

  #flush(): void {
    if (this.#underWayBytes > 0 || this.#state === "silent") return;
    if (this.#waiting.length === 0) this.#fillGap();
    if (this.#waiting.length === 0) {
      this.#whenIdle?.();
      return;
    }
    const text = this.#waiting.join("");
    this.#underWayBytes = this.#waitingBytes;
    this.#waiting = [];
    this.#waitingBytes = 0;
    try {
      this.#options.stream.write(text, (error) => {
        if (error) return this.#break(error);
        this.#underWayBytes = 0;
        this.#flush();
      });
    } catch (error) {
      // A stream over a file writes, and fails, at once.
      this.#break(error instanceof Error ? error : new Error(String(error)));
    }
  }

  #break(error: Error): void {
    if (this.#state === "silent") return;
    this.#silence();
    this.#options.onBroken?.(error);
  }

  #silence(): void {
    this.#state = "silent";
    this.#waiting = [];
    this.#waitingBytes = 0;
    this.#underWayBytes = 0;
    this.#whenIdle?.();
  }
}

// The last words of a process: bytes that must have left before it is aborted. Blocks the whole process, so nothing
// but the fence event and a crash message goes this way.

const PAUSE_MS = 10;

/** How long a full pipe is tried again. Well under the 5 s in which a fenced leader has to be gone. */
const PATIENCE_MS = 1_000;

/** Writes all of `text` to `fd`. False when the reader has gone, or has read nothing for a second. Never throws. */
export function writeAllSync(fd: number, text: string): boolean {
  const bytes = Buffer.from(text);
  let triesLeft = PATIENCE_MS / PAUSE_MS;
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "EINTR") continue;
      // A pipe that Node has made non-blocking says EAGAIN while it is full.
      if (errno !== "EAGAIN" || triesLeft === 0) return false;
      triesLeft--;
      blockThread(PAUSE_MS);
    }
  }
  return true;
}
