// The banner that says that what is shown is old: since when, why, and when it is tried again. It is announced when that changes, and
// not while the seconds pass.
import { browserClock, timeText } from "./browser.ts";
import { button, make, setHidden, setText } from "./dom.ts";
import type { FeedState } from "./feed.ts";
import type { Link } from "./known/cluster.ts";
import { durationText } from "./known/phrases.ts";

export class Banner {
  readonly element: HTMLElement;
  readonly #words = make("p", { role: "status" });
  /** The seconds that pass, for those who see them. */
  readonly #seconds = make("p", { "aria-hidden": "true", class: "seconds" });
  readonly #again: HTMLButtonElement;

  constructor(tryNow: () => void) {
    this.#again = button("Try now", tryNow);
    this.element = make("div", { class: "banner", hidden: true }, this.#words, this.#seconds, this.#again);
  }

  show(feed: FeedState, link: Link | undefined, nowMs: number): void {
    const { words, seconds } = wordsOf(feed, link, nowMs);
    setHidden(this.element, words === "");
    setHidden(this.#again, feed.kind !== "broken");
    setText(this.#words, words);
    setText(this.#seconds, seconds);
  }
}

function wordsOf(feed: FeedState, link: Link | undefined, nowMs: number): { words: string; seconds: string } {
  if (feed.kind === "refused")
    return {
      words: `${feed.reason} Start \`rollout inspect\` and open the address that it prints.`,
      seconds: "",
    };
  if (feed.kind === "broken") {
    const words = `Disconnected since ${timeText(feed.sinceMs)}: no word from \`rollout inspect\` (${feed.reason}). You see how it was then.`;
    const leftMs = feed.nextAtMs - browserClock.monotonicMs();
    return { words, seconds: leftMs <= 0 ? "Trying…" : `Trying again in ${Math.ceil(leftMs / 1_000)} s.` };
  }
  if (link?.connected !== false || link.reason === null) return { words: "", seconds: "" };
  return {
    words: `No coordinator answers since ${timeText(link.since_ms)}: ${link.reason}. You see how it was then; it goes on by itself.`,
    seconds: `For ${durationText(nowMs - link.since_ms)}.`,
  };
}
