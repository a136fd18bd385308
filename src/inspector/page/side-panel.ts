// The side of a view: one worker or one item, looked at closely. On a phone it stands in place of the rest. Escape closes it.
import { button, make, setText } from "./dom.ts";

export class SidePanel {
  readonly element: HTMLElement;
  readonly body = make("div", { class: "side-body" });
  readonly deeds = make("div", { class: "deeds" });
  readonly #title = make("h2", { tabindex: "-1" });

  /** `close` leads to the address without it. */
  constructor(label: string, close: () => void) {
    const top = make("div", { class: "side-top" }, this.#title, button("Close", close, { class: "close" }));
    this.element = make(
      "aside",
      { class: "side card", "aria-label": label, hidden: true },
      top,
      this.deeds,
      this.body,
    );
    this.element.addEventListener("keydown", (event) => {
      if (event.key === "Escape" && !event.defaultPrevented) close();
    });
  }

  /** It is read from its title on. */
  open(title: string): void {
    setText(this.#title, title);
    this.element.hidden = false;
    this.#title.focus({ preventScroll: true });
    this.element.scrollIntoView({ block: "nearest" });
  }

  hide(): void {
    this.element.hidden = true;
  }

  get isOpen(): boolean {
    return !this.element.hidden;
  }
}
