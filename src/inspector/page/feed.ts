// The feed: opened, read, and opened again whenever it ends, with longer and longer waits between.
//
// Keeps true: a feed that is silent for too long counts as broken, so that nobody looks at old figures and takes them for new ones.
import type { PageNews } from "../page-messages.ts";
import { browserClock, chance } from "./browser.ts";
import type { Waiting } from "./browser.ts";
import { FeedLines, waitBefore } from "./known/feed-lines.ts";

/** The server lets a line pass much more often than this. */
const SILENCE_MS = 20_000;

export type FeedState =
  | { readonly kind: "open" }
  /** `nextAtMs`: when it tries again, of the monotonic clock. */
  | { readonly kind: "broken"; readonly sinceMs: number; readonly reason: string; readonly nextAtMs: number }
  /** It makes no sense to try again. */
  | { readonly kind: "refused"; readonly reason: string };

export interface FeedEars {
  readonly heard: (news: readonly PageNews[]) => void;
  readonly changed: (state: FeedState) => void;
}

class Refused extends Error {}
class Broken extends Error {}

export class Feed {
  readonly #headers: Readonly<Record<string, string>>;
  readonly #ears: FeedEars;
  #attempt = 0;
  #sinceMs = 0;
  #isBroken = false;
  #next: Waiting | undefined;

  constructor(headers: Readonly<Record<string, string>>, ears: FeedEars) {
    this.#headers = headers;
    this.#ears = ears;
  }

  /** Also while it waits: it then tries at once. */
  open(): void {
    this.#next?.cancel();
    this.#next = undefined;
    void this.#read().catch((error: unknown) => this.#fail(error));
  }

  async #read(): Promise<void> {
    const abort = new AbortController();
    let silence = browserClock.after(SILENCE_MS, () => abort.abort());
    try {
      const answer = await fetch("/feed", {
        headers: this.#headers,
        cache: "no-store",
        signal: abort.signal,
      });
      if (answer.status === 401 || answer.status === 403)
        throw new Refused("This address is not, or no longer, one that `rollout inspect` printed.");
      if (!answer.ok || answer.body === null) throw new Broken(`it answered ${answer.status}`);
      const reader = answer.body.getReader();
      const lines = new FeedLines();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) throw new Broken("it ended the connection");
        silence.cancel();
        silence = browserClock.after(SILENCE_MS, () => abort.abort());
        this.#hear(lines.take(value));
      }
    } catch (error) {
      if (abort.signal.aborted) throw new Broken("it has been silent for too long");
      throw error instanceof Refused || error instanceof Broken ? error : new Broken("it cannot be reached");
    } finally {
      silence.cancel();
      abort.abort();
    }
  }

  #hear(news: readonly PageNews[]): void {
    this.#attempt = 0;
    if (news.length === 0) return;
    this.#isBroken = false;
    this.#ears.heard(news);
    this.#ears.changed({ kind: "open" });
  }

  #fail(error: unknown): void {
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof Refused) return this.#ears.changed({ kind: "refused", reason });
    if (!this.#isBroken) this.#sinceMs = browserClock.wallMs();
    this.#isBroken = true;
    const waitMs = waitBefore(this.#attempt++, chance());
    this.#next = browserClock.after(waitMs, () => this.open());
    const nextAtMs = browserClock.monotonicMs() + waitMs;
    this.#ears.changed({ kind: "broken", sinceMs: this.#sinceMs, reason, nextAtMs });
  }
}
