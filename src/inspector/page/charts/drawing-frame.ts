// The place in which a drawing is shown: as large as it is or as large as there is room, and scrolled so that the lit state is seen.
import { button, make, wantsCalm } from "../dom.ts";
import type { Drawing } from "./drawing.ts";

const ZOOM = 1.25;
const SMALLEST = 0.3;
const LARGEST = 3;
/** Smaller, its words cannot be read: it is then scrolled. */
const READABLE = 0.72;

export class DrawingFrame {
  readonly element = make("div", { class: "drawing", tabindex: "0", role: "group" });
  readonly buttons: HTMLElement;
  #drawing: Drawing | undefined;
  #scale = 1;

  constructor() {
    const change = (by: number) => () => this.#zoom(this.#scale * by);
    this.buttons = make(
      "div",
      { class: "zoom", role: "group", "aria-label": "Size of the chart" },
      button("−", change(1 / ZOOM), { "aria-label": "Smaller" }),
      button("+", change(ZOOM), { "aria-label": "Larger" }),
      button("Fit", () => this.#zoom(this.#fitting)),
    );
  }

  showDrawing(drawing: Drawing, name: string): void {
    this.#drawing = drawing;
    this.element.setAttribute("aria-label", `Chart ${name}, scrolls`);
    this.element.replaceChildren(drawing.element);
    this.#zoom(Math.max(READABLE, Math.min(1, this.#fitting)));
    this.element.scrollTo(0, 0);
  }

  show(words: HTMLElement): void {
    this.#drawing = undefined;
    this.element.setAttribute("aria-label", "No chart");
    this.element.replaceChildren(words);
  }

  /** The page itself stays where it is. */
  bringIntoView(state: Element | undefined): void {
    if (state === undefined || this.element.clientWidth === 0) return;
    const frame = this.element.getBoundingClientRect();
    const place = state.getBoundingClientRect();
    const left = nudge(place.left - frame.left, place.right - frame.left, frame.width);
    const top = nudge(place.top - frame.top, place.bottom - frame.top, frame.height);
    if (left !== 0 || top !== 0)
      this.element.scrollBy({ left, top, behavior: wantsCalm() ? "instant" : "smooth" });
  }

  get #fitting(): number {
    const style = getComputedStyle(this.element);
    const room = this.element.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
    return this.#drawing === undefined || room <= 0 ? 1 : room / this.#drawing.width;
  }

  #zoom(scale: number): void {
    const drawing = this.#drawing;
    if (drawing === undefined) return;
    this.#scale = Math.min(LARGEST, Math.max(SMALLEST, scale));
    drawing.element.setAttribute("width", String(Math.floor(drawing.width * this.#scale)));
    drawing.element.setAttribute("height", String(Math.floor(drawing.height * this.#scale)));
  }
}

/** How far to scroll so that a part of a frame is seen whole; 0 when it is. */
function nudge(from: number, to: number, size: number): number {
  if (from >= 0 && to <= size) return 0;
  return (from + to) / 2 - size / 2;
}
