// Failures by class, with the words that items failed with and an item of each to open; and troubles, which come before everything.
import type { RunNumbers } from "../../page-messages.ts";
import { addressOf } from "../desk.ts";
import { KeyedList, make, setAttribute, setHidden, setText } from "../dom.ts";
import { countOf, countText, shortName, words } from "../known/phrases.ts";

type Message = RunNumbers["failure_messages"][number];

export class Failures {
  readonly element: HTMLElement;
  readonly #none = make("p", { class: "empty" }, "No item has failed.");
  readonly #classes: KeyedList<readonly [string, number], HTMLLIElement>;
  readonly #messages: KeyedList<Message, HTMLTableRowElement>;
  readonly #table: HTMLElement;

  constructor() {
    const classes = make("ul", { class: "classes" });
    const rows = make("tbody");
    const heads = ["Class", "Message", "Items", "Attempts", "One of them"];
    const head = make("tr", {}, ...heads.map((title) => make("th", { scope: "col" }, title)));
    const table = make(
      "table",
      { class: "stacked" },
      make("caption", { class: "hidden" }, "Failures by message"),
      make("thead", {}, head),
      rows,
    );
    this.#table = make(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Failures by message" },
      table,
    );
    this.#classes = new KeyedList(
      classes,
      () => make("li", {}),
      (element, [name, items]) => setText(element, `${words(name)}: ${countText(items)}`),
    );
    this.#messages = new KeyedList(rows, (message) => messageRow(message), updateRow);
    this.element = make(
      "section",
      { class: "card", "aria-label": "Failures" },
      make("h2", {}, "Failures"),
      this.#none,
      classes,
      this.#table,
    );
  }

  show({ failed_by_class, failure_messages, failed }: RunNumbers): void {
    const classes = Object.entries(failed_by_class).filter(([, items]) => items > 0);
    setHidden(this.#none, classes.length > 0 || failure_messages.length > 0);
    setText(this.#none, failed === 0 ? "No item has failed." : `${countOf(failed, "item")} failed.`);
    setHidden(this.#table, failure_messages.length === 0);
    this.#classes.show(
      classes.toSorted(([, one], [, other]) => other - one).map((entry) => [entry[0], entry]),
    );
    this.#messages.show(failure_messages.map((message) => [`${message.class} ${message.message}`, message]));
  }
}

function messageRow(message: Message): HTMLTableRowElement {
  const cell = (label: string, ...children: readonly (Node | string)[]): HTMLTableCellElement =>
    make("td", { "data-label": label }, ...children);
  return make(
    "tr",
    {},
    make("th", { scope: "row", "data-label": "Class" }, words(message.class)),
    cell("Message", make("span", { class: "message" }, message.message)),
    cell("Items"),
    cell("Attempts"),
    cell("One of them", make("a", {})),
  );
}

function updateRow(row: HTMLTableRowElement, { items, attempts, item }: Message): void {
  const [, , itemsCell, attemptsCell, link] = row.cells;
  if (itemsCell !== undefined) setText(itemsCell, countText(items));
  if (attemptsCell !== undefined) setText(attemptsCell, countText(attempts));
  const anchor = link?.firstElementChild;
  if (anchor === null || anchor === undefined) return;
  setAttribute(anchor, "href", addressOf("items", item));
  setText(anchor, shortName(item));
}

export class Troubles {
  readonly element: HTMLElement;
  readonly #list: KeyedList<string, HTMLLIElement>;

  constructor() {
    const list = make("ul", {});
    this.#list = new KeyedList(
      list,
      (trouble) => make("li", {}, trouble),
      () => undefined,
    );
    this.element = make(
      "section",
      { class: "troubles", "aria-label": "Trouble", hidden: true },
      make("h2", {}, "Trouble"),
      list,
    );
  }

  show(troubles: readonly string[]): void {
    setHidden(this.element, troubles.length === 0);
    this.#list.show(troubles.map((trouble) => [trouble, trouble]));
  }
}
