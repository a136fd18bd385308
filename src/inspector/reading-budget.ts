// How much is read of programs, in windows of time: all of them together cost no more than the inspector has, and each that speaks has an
// equal share of it, so that a flood of one takes nothing from another.
import { PROGRAM_LIMITS } from "./program-limits.ts";

const WINDOW_MS = 100;
const WINDOWS_PER_SECOND = 1_000 / WINDOW_MS;
/** Messages beyond a share are received and not read. Beyond so many shares, nothing more is received until the next window. */
const RECEIVED_SHARES = 4;

export type Verdict = "read" | "skip" | "pause";

/** One program's part in it. */
export interface Spender {
  window: number;
  messages: number;
  bytes: number;
}

export class ReadingBudget {
  #window = 0;
  #spenders = 0;
  #spendersBefore = 0;

  newSpender(): Spender {
    return { window: -1, messages: 0, bytes: 0 };
  }

  /** The verdict about a message of so many bytes. A single one is always read, however large. */
  spend(spender: Spender, bytes: number, nowMs: number): Verdict {
    const window = Math.floor(nowMs / WINDOW_MS);
    if (window !== this.#window) {
      this.#spendersBefore = window === this.#window + 1 ? this.#spenders : 0;
      this.#window = window;
      this.#spenders = 0;
    }
    if (spender.window !== window) {
      this.#spenders++;
      Object.assign(spender, { window, messages: 0, bytes: 0 });
    }
    spender.messages++;
    spender.bytes += bytes;
    const share = 1 / Math.max(1, this.#spenders, this.#spendersBefore) / WINDOWS_PER_SECOND;
    const spent = Math.max(
      spender.messages / (PROGRAM_LIMITS.messagesPerSecond * share),
      spender.bytes / (PROGRAM_LIMITS.bytesPerSecond * share),
    );
    if (spent <= 1 || spender.messages === 1) return "read";
    return spent <= RECEIVED_SHARES ? "skip" : "pause";
  }

  /** When the next window begins. */
  waitMs(nowMs: number): number {
    return WINDOW_MS - (nowMs % WINDOW_MS);
  }
}
