// Elements made and changed. Text is text: nothing here takes markup, and a value that is there already is not written again, so that
// what did not change costs the browser nothing.

export type Attributes = Readonly<Record<string, string | number | boolean | null | undefined>>;
export type Child = Node | string | null;

const SVG = "http://www.w3.org/2000/svg";

export function make<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): HTMLElementTagNameMap[Name] {
  return filled(document.createElement(name), attributes, children);
}

export function makeSvg<Name extends keyof SVGElementTagNameMap>(
  name: Name,
  attributes: Attributes = {},
  ...children: readonly Child[]
): SVGElementTagNameMap[Name] {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

function filled<Kind extends Element>(
  element: Kind,
  attributes: Attributes,
  children: readonly Child[],
): Kind {
  for (const [name, value] of Object.entries(attributes)) setAttribute(element, name, value);
  element.append(...children.filter((child) => child !== null));
  return element;
}

export function button(words: string, press: () => void, attributes: Attributes = {}): HTMLButtonElement {
  const made = make("button", { type: "button", ...attributes }, words);
  made.addEventListener("click", press);
  return made;
}

/** False and null take it away. */
export function setAttribute(
  element: Element,
  name: string,
  value: string | number | boolean | null | undefined,
): void {
  if (value === null || value === undefined || value === false) {
    if (element.hasAttribute(name)) element.removeAttribute(name);
    return;
  }
  const text = value === true ? "" : String(value);
  if (element.getAttribute(name) !== text) element.setAttribute(name, text);
}

export function setText(element: Element, text: string): void {
  const { firstChild } = element;
  if (firstChild instanceof Text && element.childNodes.length === 1) {
    if (firstChild.data !== text) firstChild.data = text;
  } else if (element.textContent !== text) element.textContent = text;
}

export function setHidden(element: HTMLElement, isHidden: boolean): void {
  if (element.hidden !== isHidden) element.hidden = isHidden;
}

export function setDisabled(control: HTMLButtonElement, isDisabled: boolean): void {
  if (control.disabled !== isDisabled) control.disabled = isDisabled;
}

/** Children made from a list: one that stays is updated where it stands, and only what has come, gone or moved is touched. */
export class KeyedList<Item, Kind extends Element> {
  readonly #parent: Element;
  readonly #make: (item: Item) => Kind;
  readonly #update: (element: Kind, item: Item) => void;
  #elements = new Map<string, Kind>();

  constructor(parent: Element, made: (item: Item) => Kind, update: (element: Kind, item: Item) => void) {
    this.#parent = parent;
    this.#make = made;
    this.#update = update;
  }

  show(items: Iterable<readonly [key: string, item: Item]>): void {
    const next = new Map<string, Kind>();
    for (const [key, item] of items) {
      const element = this.#elements.get(key) ?? this.#make(item);
      this.#update(element, item);
      next.set(key, element);
    }
    for (const [key, element] of this.#elements) if (next.get(key) !== element) element.remove();
    let at = this.#parent.firstElementChild;
    for (const element of next.values()) {
      if (element === at) at = at.nextElementSibling;
      else this.#parent.insertBefore(element, at);
    }
    this.#elements = next;
  }
}

/** Whether the reader has asked for less motion. */
export function wantsCalm(): boolean {
  return matchMedia("(prefers-reduced-motion: reduce)").matches;
}
