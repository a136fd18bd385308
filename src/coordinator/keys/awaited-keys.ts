// Keys that calls wait for, and how each stood when it was told last: what a turn makes of them is told with that turn.
//
// Keeps true: a key that nobody waits for costs nothing; those that are waited for are bounded, the one that was asked for first is
// forgotten (C8). A caller that has gone costs its key one telling more.
import { PARKED } from "./key.ts";
import type { Key } from "./key.ts";

const AWAITED_MAX = 1_024;

/** How a key stands, for who waits for another standing: its commit, and whether something keeps it. `0` is a key that is not there. */
export type KeyStanding = string;

export interface KeyNews {
  readonly key: string;
  readonly standing: KeyStanding;
}

export function standingOf(key: Key | undefined): KeyStanding {
  if (key === undefined) return "0";
  const { state, context } = key.row;
  if (state !== PARKED) return `${key.commit}.going`;
  return `${key.commit}.${context.hasFailed ? "failed" : "paused"}`;
}

export class AwaitedKeys {
  /** By text, in the order in which they were asked for. */
  readonly #standings = new Map<string, KeyStanding>();
  #news: KeyNews[] = [];

  /** Tells once when the key stands otherwise than now. */
  add(text: string, key: Key | undefined): void {
    this.#standings.delete(text);
    for (const [first] of this.#standings) {
      if (this.#standings.size < AWAITED_MAX) break;
      this.#standings.delete(first);
    }
    this.#standings.set(text, standingOf(key));
  }

  /** These keys have changed. */
  look(changed: Iterable<Key>, retired: Iterable<Key>): void {
    if (this.#standings.size === 0) return;
    for (const key of retired) this.#tell(key.text, standingOf(undefined));
    for (const key of changed) this.#tell(key.text, standingOf(key));
  }

  #tell(key: string, standing: KeyStanding): void {
    const before = this.#standings.get(key);
    if (before === undefined || before === standing) return;
    this.#standings.delete(key);
    this.#news.push({ key, standing });
  }

  /** All news since it was asked last; undefined when there is none. */
  take(): readonly KeyNews[] | undefined {
    if (this.#news.length === 0) return undefined;
    const news = this.#news;
    this.#news = [];
    return news;
  }
}
