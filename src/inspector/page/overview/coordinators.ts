// Coordinators: which one leads, in which epoch, and how ready the others are to take over.
import type { CoordinatorRow } from "../../page-messages.ts";
import { addressOf } from "../desk.ts";
import { KeyedList, make, setAttribute, setHidden, setText } from "../dom.ts";
import { countText, durationText } from "../known/phrases.ts";

const HEADS = ["Address", "Role", "Epoch", "Weight", "Snapshot", "Rehearsal"];

export class Coordinators {
  readonly element: HTMLElement;
  readonly #none = make("p", { class: "empty" }, "No coordinator has said anything yet.");
  readonly #rows: KeyedList<CoordinatorRow, HTMLTableRowElement>;
  readonly #table: HTMLTableElement;

  constructor() {
    const body = make("tbody");
    const head = make("tr", {}, ...HEADS.map((title) => make("th", { scope: "col" }, title)));
    this.#table = make(
      "table",
      { class: "stacked" },
      make("caption", { class: "hidden" }, "Coordinators"),
      make("thead", {}, head),
      body,
    );
    const scroll = make(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Coordinators" },
      this.#table,
    );
    this.#rows = new KeyedList(
      body,
      () =>
        make(
          "tr",
          {},
          make("th", { scope: "row", "data-label": "Address" }, make("a", {})),
          ...HEADS.slice(1).map((title) => make("td", { "data-label": title })),
        ),
      fill,
    );
    this.element = make(
      "section",
      { class: "card", "aria-label": "Leadership" },
      make("h2", {}, "Leadership"),
      this.#none,
      scroll,
    );
  }

  show(coordinators: readonly CoordinatorRow[]): void {
    setHidden(this.#none, coordinators.length > 0);
    setHidden(this.#table, coordinators.length === 0);
    const rank = ({ role, present }: CoordinatorRow): number =>
      role === "leader" && present ? 0 : present ? 1 : 2;
    const ordered = coordinators.toSorted((one, other) => rank(one) - rank(other));
    this.#rows.show(ordered.map((row) => [row.incarnation, row]));
  }
}

function fill(row: HTMLTableRowElement, coordinator: CoordinatorRow): void {
  const { address, role, present, epoch, weight, snapshot_number, rehearsal_ms } = coordinator;
  const link = row.cells[0]?.firstElementChild;
  if (link !== null && link !== undefined) {
    setText(link, address === "" ? "no address" : address);
    setAttribute(link, "href", addressOf("charts", "coordinator-role", address));
  }
  const texts = [
    present ? role : "away",
    epoch === null ? "–" : countText(epoch),
    String(weight),
    snapshot_number === null ? "–" : countText(snapshot_number),
    rehearsal_ms === null ? "–" : durationText(rehearsal_ms),
  ];
  for (const [at, text] of texts.entries()) {
    const cell = row.cells[at + 1];
    if (cell !== undefined) setText(cell, text);
  }
  setAttribute(row, "data-role", present ? role : "away");
}
