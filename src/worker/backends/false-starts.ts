// Children that end before they are ready: a machine that is short of memory kills one, a server that it needs is not there
// yet. A start that fails once is tried again after a while; one that fails each time will fail for ever.
import { backoffMs } from "../../base/random.ts";
import type { Clock } from "../../base/clock.ts";
import type { Random } from "../../base/random.ts";

/** So many in a row, and none that works: there is no use in another. */
const FALSE_STARTS_MAX = 3;
const RESTART = { baseMs: 500, ceilingMs: 30_000 } as const;

export class FalseStarts {
  readonly #clock: Clock;
  readonly #random: Random;
  #inRow = 0;
  /** When the last one was counted. */
  #countedAtMs = -Infinity;
  #last: { readonly reason: string; readonly sinceMs: number } | undefined;

  constructor({ clock, random }: { readonly clock: Clock; readonly random: Random }) {
    this.#clock = clock;
    this.#random = random;
  }

  get inRow(): number {
    return this.#inRow;
  }

  /** The last of them, and when the first one was, monotonic; undefined when the last start was none. */
  get last(): { readonly reason: string; readonly sinceMs: number } | undefined {
    return this.#last;
  }

  /**
   * One more. How long to wait before the next start; undefined when there is no use in one, which is never while another
   * child works. Children that were started side by side and ended so are one: they had one cause.
   */
  count(
    start: { readonly reason: string; readonly startedAtMs: number },
    works: boolean,
  ): number | undefined {
    const nowMs = this.#clock.monotonicMs();
    if (start.startedAtMs >= this.#countedAtMs) {
      this.#inRow++;
      this.#countedAtMs = nowMs;
    }
    this.#last = { reason: start.reason, sinceMs: this.#last?.sinceMs ?? nowMs };
    if (this.#inRow >= FALSE_STARTS_MAX && !works) return undefined;
    return backoffMs(RESTART, this.#inRow, this.#random);
  }

  /** One has become ready. */
  over(): void {
    this.#inRow = 0;
    this.#last = undefined;
  }
}
