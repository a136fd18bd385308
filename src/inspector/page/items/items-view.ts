// Items: a sample of those at work, and any of them by its name.
import type { ItemAtWork } from "../../page-messages.ts";
import { addressOf } from "../desk.ts";
import type { Desk, View } from "../desk.ts";
import { KeyedList, make, setAttribute, setHidden, setText } from "../dom.ts";
import { durationText, shortName } from "../known/phrases.ts";
import { ItemSide } from "./item-side.ts";

const HEADS = ["Item", "Worker", "Attempt", "For"];

export function itemsView(desk: Desk): View {
  const { cluster } = desk;
  const side = new ItemSide(desk);
  const none = make(
    "p",
    { class: "empty" },
    "No item is at work now. When workers have some, a sample of them is here.",
  );
  const body = make("tbody");
  const head = make("tr", {}, ...HEADS.map((title) => make("th", { scope: "col" }, title)));
  const table = make(
    "table",
    { class: "stacked" },
    make("caption", {}, "A sample of items at work"),
    make("thead", {}, head),
    body,
  );
  const rows = new KeyedList<ItemAtWork, HTMLTableRowElement>(
    body,
    rowOf,
    (row, { assigned_at_ms, attempt }) => {
      const [, , attemptCell, age] = row.cells;
      if (attemptCell !== undefined) setText(attemptCell, String(attempt));
      if (age !== undefined) setText(age, durationText(desk.nowMs() - assigned_at_ms));
    },
  );
  const main = make("section", { class: "card", "aria-label": "Items" }, searchForm(), none, table);
  const element = make("div", { class: "with-side" }, main, side.panel.element);
  const refresh = (): void => {
    setHidden(none, cluster.atWork.length > 0);
    setHidden(table, cluster.atWork.length === 0);
    rows.show(cluster.atWork.map((item) => [`${item.item} ${item.worker}`, item]));
    side.refresh();
  };
  return {
    element,
    title: "Items",
    show: ([name]) => {
      element.classList.toggle("open", name !== undefined);
      if (name === undefined) side.panel.hide();
      else side.show(name);
      refresh();
    },
    refresh,
  };
}

/** Leads to any item by its name. */
function searchForm(): HTMLFormElement {
  const search = make("input", {
    type: "search",
    id: "item-name",
    autocomplete: "off",
    spellcheck: "false",
    placeholder: "its id, or the first of its digits",
  });
  const form = make(
    "form",
    { class: "filters", role: "search", "aria-label": "Items" },
    make("label", { for: "item-name" }, "Item"),
    search,
    make("button", { type: "submit" }, "Show"),
  );
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const name = search.value.trim();
    if (name !== "") location.hash = addressOf("items", name);
  });
  return form;
}

function rowOf({ item, worker }: ItemAtWork): HTMLTableRowElement {
  const link = (kind: string, name: string): HTMLAnchorElement => {
    const made = make("a", { class: "mono", title: name }, shortName(name));
    setAttribute(made, "href", addressOf(kind, name));
    return made;
  };
  return make(
    "tr",
    {},
    make("th", { scope: "row", "data-label": "Item" }, link("items", item)),
    make("td", { "data-label": "Worker" }, link("workers", worker)),
    make("td", { "data-label": "Attempt", class: "number" }),
    make("td", { "data-label": "For", class: "number" }),
  );
}
