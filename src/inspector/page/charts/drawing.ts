// A chart's drawing in the page. It is adopted once; from then on a transition moves a few classes and nothing else.
//
// Keeps true: only shapes and texts get in, whatever the drawing says; details are shown as text, by pointer and by keyboard alike.
import type { ChartPicture } from "../../page-messages.ts";
import { browserClock } from "../browser.ts";
import { make, setAttribute, wantsCalm } from "../dom.ts";
import { showDetails } from "./details-card.ts";

const ELEMENTS = new Set(["svg", "g", "title", "rect", "circle", "path", "text"]);
const ATTRIBUTES =
  /^(?:class|d|x|y|r|cx|cy|rx|width|height|viewBox|xmlns|data-(?:state|path|of|source|target|transition))$/;
const MOVES: Readonly<Record<string, number>> = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 };

/** A flash ends before the next one: a chart that never rests does not flicker. */
const FLASH_MS = 400;

export class Drawing {
  readonly element: SVGSVGElement;
  readonly width: number;
  readonly height: number;
  readonly #states = new Map<string, Element>();
  readonly #transitions = new Map<string, Element>();
  /** The elements that can be looked at more closely, in the order of the keyboard. */
  readonly #stops: SVGElement[] = [];
  #lit: ReadonlySet<string> = new Set();
  #newest: Element | undefined;
  #taken: readonly Element[] = [];
  #flashedMs = -Infinity;

  /** Undefined when it cannot be read. */
  static of(picture: ChartPicture): Drawing | undefined {
    const root = new DOMParser().parseFromString(trusted(picture.svg ?? ""), "image/svg+xml").documentElement;
    return root instanceof SVGSVGElement ? new Drawing(root, picture.name) : undefined;
  }

  private constructor(root: SVGSVGElement, name: string) {
    this.element = root;
    purge(root);
    this.width = Number(root.getAttribute("width"));
    this.height = Number(root.getAttribute("height"));
    setAttribute(root, "role", "group");
    setAttribute(root, "aria-label", `Chart ${name}: the arrow keys go through its states and transitions`);
    root.querySelector(":scope > title")?.remove();
    for (const state of root.querySelectorAll<SVGElement>("[data-state]")) {
      this.#states.set(state.dataset["state"] ?? "", state);
      this.#stop(state);
    }
    for (const transition of root.querySelectorAll<SVGElement>("[data-transition]")) {
      this.#transitions.set(transition.dataset["transition"] ?? "", transition);
      this.#stop(transition);
    }
    setAttribute(this.#stops[0] ?? root, "tabindex", "0");
    root.addEventListener("keydown", (event) => this.#step(event));
  }

  /** Only states that come or go are touched. */
  light(ids: ReadonlySet<string>): void {
    for (const id of this.#lit) if (!ids.has(id)) this.#states.get(id)?.classList.remove("lit");
    for (const id of ids) {
      if (this.#lit.has(id)) continue;
      this.#newest = this.#states.get(id);
      this.#newest?.classList.add("lit");
    }
    this.#lit = ids;
  }

  /** The transitions that were taken last. `isNew`: it happened now, so it flashes. */
  take(ids: readonly string[], isNew: boolean): void {
    const taken = ids.flatMap((id) => {
      const words = this.#transitions.get(id);
      return words === undefined ? [] : [words, words.closest(".arrow") ?? words];
    });
    for (const element of this.#taken) if (!taken.includes(element)) element.classList.remove("taken");
    for (const element of taken) if (!this.#taken.includes(element)) element.classList.add("taken");
    this.#taken = taken;
    const nowMs = browserClock.monotonicMs();
    if (!isNew || nowMs < this.#flashedMs + FLASH_MS || wantsCalm()) return;
    this.#flashedMs = nowMs;
    const lit = [...this.#lit].flatMap((id) => this.#states.get(id)?.querySelector(".box") ?? []);
    for (const element of [...taken, ...lit])
      element.animate([{ opacity: 0.15 }, { opacity: 1 }], { duration: FLASH_MS, easing: "steps(6)" });
  }

  /** The element of a state; without an id, of the one that was lit last. */
  stateOf(id: string | undefined): Element | undefined {
    return id === undefined ? this.#newest : this.#states.get(id);
  }

  #stop(element: SVGElement): void {
    const title = element.querySelector(":scope > title");
    const details = title?.textContent ?? "";
    // The browser's own tooltip is slow, and not there for the keyboard.
    title?.remove();
    setAttribute(element, "role", "img");
    setAttribute(element, "aria-label", details.replaceAll("\n", "; "));
    setAttribute(element, "tabindex", "-1");
    this.#stops.push(element);
    element.addEventListener("pointerenter", () => showDetails(details, element));
    element.addEventListener("pointerleave", () => showDetails(null, element));
    element.addEventListener("focus", () => showDetails(details, element));
    element.addEventListener("blur", () => showDetails(null, element));
  }

  #step(event: KeyboardEvent): void {
    if (event.key === "Escape") return showDetails(null, this.element);
    const at = this.#stops.findIndex((stop) => stop === document.activeElement);
    const move = MOVES[event.key];
    const ends: Readonly<Record<string, number>> = { Home: 0, End: this.#stops.length - 1 };
    const next = move === undefined ? ends[event.key] : at + move;
    const stop = next === undefined ? undefined : this.#stops[next];
    if (stop === undefined || at < 0) return;
    event.preventDefault();
    setAttribute(this.#stops[at] ?? stop, "tabindex", "-1");
    setAttribute(stop, "tabindex", "0");
    stop.focus();
  }
}

/** A chart that is too large to be drawn, or was not understood. */
export function undrawn(picture: ChartPicture): HTMLElement {
  const why = picture.svg === null ? "This chart is too large to be drawn." : "This drawing cannot be read.";
  return make("p", { class: "empty" }, `${why} Its states and transitions are in the table below.`);
}

/** The only text that the page makes a tree of: its policy names this place, and no other can. */
const policy = (window as { readonly trustedTypes?: PolicyMaker }).trustedTypes?.createPolicy("chart", {
  createHTML: (svg) => (svg.startsWith("<svg ") ? svg : ""),
});

interface PolicyMaker {
  createPolicy(
    name: string,
    rules: { readonly createHTML: (text: string) => string },
  ): { createHTML(text: string): string };
}

/** Browsers that know no such policies take the text as it is. */
function trusted(svg: string): string {
  return policy?.createHTML(svg) ?? svg;
}

function purge(root: Element): void {
  for (const element of [root, ...root.querySelectorAll("*")]) {
    if (!ELEMENTS.has(element.localName)) element.remove();
    for (const name of element.getAttributeNames()) if (!ATTRIBUTES.test(name)) element.removeAttribute(name);
  }
}
