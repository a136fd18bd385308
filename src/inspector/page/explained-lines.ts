// The lines of `rollout explain` about a worker or an item: asked for when somebody looks, and again when something moved.
import type { Explained } from "../page-messages.ts";
import { browserClock } from "./browser.ts";
import { make, setText } from "./dom.ts";
import { Unanswered } from "./server-calls.ts";

/** Nobody reads faster, and the coordinator has other things to do. */
const AGAIN_MS = 3_000;

export class ExplainedLines {
  readonly element = make("pre", { class: "explain" });
  readonly #heard: (explained: Explained) => void;
  #ask: (() => Promise<Explained>) | undefined;
  #askedMs = -Infinity;

  constructor(heard: (explained: Explained) => void = () => undefined) {
    this.#heard = heard;
  }

  about(ask: () => Promise<Explained>): void {
    this.#ask = ask;
    this.#askedMs = -Infinity;
    setText(this.element, "Asking the coordinator…");
    this.refresh();
  }

  refresh(): void {
    const nowMs = browserClock.monotonicMs();
    if (nowMs < this.#askedMs + AGAIN_MS) return;
    this.#askedMs = nowMs;
    void this.#read();
  }

  async #read(): Promise<void> {
    const ask = this.#ask;
    if (ask === undefined) return;
    try {
      const explained = await ask();
      if (this.#ask !== ask) return;
      setText(this.element, explained.lines.join("\n").trimEnd());
      this.#heard(explained);
    } catch (error) {
      if (this.#ask !== ask) return;
      const words =
        error instanceof Unanswered ? `${error.message}\n${error.hint}` : "It could not be asked.";
      setText(this.element, words.trim());
    }
  }
}
