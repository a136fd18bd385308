// The table of workers: a page of them at a time, so that a thousand are as quick as three.
import { browserClock } from "../browser.ts";
import { button, make, setAttribute, setDisabled, setHidden, setText } from "../dom.ts";
import type { Cluster } from "../known/cluster.ts";
import { countOf, countText } from "../known/phrases.ts";
import { answer, PAGE_ROWS, WORKER_WORDS, workerWord } from "../known/worker-order.ts";
import type { SortKey, WorkerQuestion } from "../known/worker-order.ts";
import { WorkerCells } from "./worker-cells.ts";

const COLUMNS: readonly (readonly [title: string, sort: SortKey | null])[] = [
  ["Worker", "worker"],
  ["State", "state"],
  ["Liveness", null],
  ["Load", "load"],
  ["Slots", null],
  ["Held", "held"],
  ["Last beat", "beat"],
  ["Notes", "attention"],
];

export class WorkerTable {
  readonly element: HTMLElement;
  readonly #cluster: Cluster;
  readonly #count = make("p", { class: "quiet", role: "status" });
  readonly #none = make("p", { class: "empty" });
  readonly #body = make("tbody");
  readonly #table = make(
    "table",
    { class: "stacked workers" },
    make("caption", { class: "hidden" }, "Workers"),
  );
  readonly #cells: WorkerCells[] = [];
  readonly #heads: (readonly [HTMLTableCellElement, SortKey])[] = [];
  readonly #states = make("select", { id: "worker-state" }, make("option", { value: "" }, "all states"));
  readonly #pages = make("nav", { class: "pages", "aria-label": "Pages of workers" });
  readonly #place = make("span", {});
  readonly #before = button("Previous", () => this.#ask({ page: this.#question.page - 1 }));
  readonly #after = button("Next", () => this.#ask({ page: this.#question.page + 1 }));
  #question: WorkerQuestion = { text: "", word: "", sort: "attention", isDescending: false, page: 0 };
  #chosen: string | undefined;

  constructor(cluster: Cluster) {
    this.#cluster = cluster;
    this.#table.append(
      make("thead", {}, make("tr", {}, ...COLUMNS.map(([title, sort]) => this.#head(title, sort)))),
      this.#body,
    );
    this.#pages.append(this.#before, this.#place, this.#after);
    const scroll = make(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": "Workers" },
      this.#table,
    );
    this.element = make("div", { class: "worker-table" }, this.#filters(), this.#none, scroll, this.#pages);
  }

  show(chosen: string | undefined): void {
    this.#chosen = chosen;
    this.refresh();
  }

  refresh(): void {
    const { workers } = this.#cluster;
    const { rows, matching, page, pages } = answer(workers.values(), this.#question);
    if (page !== this.#question.page) this.#question = { ...this.#question, page };
    while (this.#cells.length < Math.min(rows.length, PAGE_ROWS)) {
      const cells = new WorkerCells();
      this.#cells.push(cells);
      this.#body.append(cells.element);
    }
    const nowMs = browserClock.monotonicMs();
    for (const [at, cells] of this.#cells.entries()) {
      const id = rows[at]?.worker_id ?? "";
      cells.show(rows[at], id === this.#chosen, this.#cluster.rowAgeMs(id, nowMs));
    }
    setText(
      this.#count,
      matching === workers.size
        ? countOf(workers.size, "worker")
        : `${countText(matching)} of ${countOf(workers.size, "worker")}`,
    );
    setHidden(this.#none, matching > 0);
    setHidden(this.#table, matching === 0);
    setText(
      this.#none,
      workers.size === 0
        ? "No workers yet. Start one with `rollout worker run`: it appears here with its first beat."
        : "No worker is so. Take something out of the filter.",
    );
    setHidden(this.#pages, pages === 1);
    setText(this.#place, `Page ${page + 1} of ${pages}`);
    setDisabled(this.#before, page === 0);
    setDisabled(this.#after, page === pages - 1);
    this.#countStates();
  }

  #filters(): HTMLElement {
    const search = make("input", { type: "search", id: "worker-text", placeholder: "id, plugin or trouble" });
    search.addEventListener("input", () => this.#ask({ text: search.value, page: 0 }));
    this.#states.append(...WORKER_WORDS.map((word) => make("option", { value: word }, word)));
    this.#states.addEventListener("change", () => this.#ask({ word: this.#states.value, page: 0 }));
    return make(
      "div",
      { class: "filters", role: "search", "aria-label": "Workers" },
      make("label", { for: "worker-text" }, "Find"),
      search,
      make("label", { for: "worker-state" }, "State"),
      this.#states,
      this.#count,
    );
  }

  #head(title: string, sort: SortKey | null): HTMLTableCellElement {
    const cell = make("th", { scope: "col" });
    if (sort === null) {
      cell.append(title);
      return cell;
    }
    cell.append(button(title, () => this.#sortBy(sort), { class: "sort" }));
    this.#heads.push([cell, sort]);
    this.#markSort(cell, sort);
    return cell;
  }

  #sortBy(sort: SortKey): void {
    const isDescending =
      this.#question.sort === sort ? !this.#question.isDescending : sort === "load" || sort === "held";
    this.#ask({ sort, isDescending, page: 0 });
    for (const [cell, key] of this.#heads) this.#markSort(cell, key);
  }

  #markSort(cell: HTMLTableCellElement, sort: SortKey): void {
    const { sort: sorted, isDescending } = this.#question;
    setAttribute(cell, "aria-sort", sort !== sorted ? null : isDescending ? "descending" : "ascending");
  }

  #ask(part: Partial<WorkerQuestion>): void {
    this.#question = { ...this.#question, ...part };
    this.refresh();
  }

  #countStates(): void {
    const counts = new Map<string, number>();
    for (const row of this.#cluster.workers.values()) {
      const word = workerWord(row);
      counts.set(word, (counts.get(word) ?? 0) + 1);
    }
    for (const option of this.#states.options)
      if (option.value !== "")
        setText(option, `${option.value} (${countText(counts.get(option.value) ?? 0)})`);
  }
}
