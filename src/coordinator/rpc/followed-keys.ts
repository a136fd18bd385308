// Calls that wait for news of a key, by the same waiting as those for news of the run. Keeps true: what comes between looking at the key
// and beginning to wait is not missed; nothing is kept of a key that no call waits for.
import { AwaitedValue } from "../../base/awaited-value.ts";
import type { Patience } from "../../base/awaited-value.ts";
import type { KeyNews, KeyStanding } from "../keys/awaited-keys.ts";

/** Calls that wait at the same time (C8). */
const CALLS_MAX = 1_024;

/** One call's hold on a key. Each has a value of its own: what others were told before it came is no news to it. */
export interface FollowedKey {
  /** Resolves with true when it stands otherwise than `after`; with false when the time is over or the signal aborts. Never rejects. */
  until(after: KeyStanding, patience: Patience): Promise<boolean>;
  end(): void;
}

export class FollowedKeys {
  readonly #calls = new Map<string, Set<AwaitedValue<KeyStanding>>>();
  #size = 0;

  tell(news: readonly KeyNews[]): void {
    for (const { key, standing } of news) for (const call of this.#calls.get(key) ?? []) call.tell(standing);
  }

  /** From before the key is looked at until the call is answered. Undefined where too many wait. */
  follow(key: string): FollowedKey | undefined {
    if (this.#size >= CALLS_MAX) return undefined;
    const call = new AwaitedValue<KeyStanding>();
    const calls = this.#calls.get(key) ?? new Set();
    this.#calls.set(key, calls.add(call));
    this.#size++;
    return {
      until: (after, patience) => call.until((standing) => standing !== after, patience),
      end: () => {
        if (!calls.delete(call)) return;
        this.#size--;
        if (calls.size === 0 && this.#calls.get(key) === calls) this.#calls.delete(key);
      },
    };
  }
}
