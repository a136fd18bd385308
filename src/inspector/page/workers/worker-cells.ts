// One row of the table of workers: made once, and then only those of its cells that changed are written.
import type { WorkerRow } from "../../page-messages.ts";
import { addressOf } from "../desk.ts";
import { make, setAttribute, setHidden, setText } from "../dom.ts";
import { countText, durationText, percentText } from "../known/phrases.ts";
import { workerWord } from "../known/worker-order.ts";

const ON_TIME_MS = 3_000;

export class WorkerCells {
  readonly element: HTMLTableRowElement;
  readonly #link = make("a", { class: "mono" });
  readonly #state = make("span", { class: "badge" });
  readonly #liveness = make("td", { "data-label": "Liveness" });
  readonly #load = make("span", { class: "number" });
  readonly #bar = make("span", { class: "bar", "aria-hidden": "true" }, make("span", {}));
  readonly #slots = make("td", { "data-label": "Slots", class: "number" });
  readonly #held = make("td", { "data-label": "Held", class: "number" });
  readonly #beat = make("td", { "data-label": "Last beat", class: "number" });
  readonly #notes = make("td", { "data-label": "Notes", class: "notes" });

  constructor() {
    this.element = make(
      "tr",
      {},
      make("th", { scope: "row", "data-label": "Worker" }, this.#link),
      make("td", { "data-label": "State" }, this.#state),
      this.#liveness,
      make("td", { "data-label": "Load", class: "load" }, this.#bar, this.#load),
      ...[this.#slots, this.#held, this.#beat, this.#notes],
    );
  }

  /** A row of the table may come to show another worker. `toldMs`: how long ago it was told. */
  show(row: WorkerRow | undefined, isChosen: boolean, toldMs: number): void {
    setHidden(this.element, row === undefined);
    if (row === undefined) return;
    const { worker_id, liveness, load, slots, held, last_beat_age_ms } = row;
    const word = workerWord(row);
    setText(this.#link, worker_id);
    setAttribute(this.#link, "href", addressOf("workers", worker_id));
    setAttribute(this.#link, "aria-current", isChosen ? "true" : null);
    setAttribute(this.element, "data-worker", worker_id);
    setText(this.#state, word);
    setAttribute(this.#state, "data-word", word);
    setText(this.#liveness, liveness);
    setText(this.#load, percentText(load, 1));
    const bar = this.#bar.firstElementChild;
    const size = `${Math.round(Math.min(1, Math.max(0, load)) * 100)}%`;
    if (bar instanceof HTMLElement && bar.style.inlineSize !== size) bar.style.inlineSize = size;
    setText(this.#slots, countText(slots));
    setText(this.#held, countText(held));
    setText(this.#beat, beatText(last_beat_age_ms, toldMs));
    setText(this.#notes, notesOf(row, toldMs).join("; "));
  }
}

/** A worker that beats is told again only when it is late. */
function beatText(ageMs: number | null, toldMs: number): string {
  if (ageMs === null) return "not yet";
  return ageMs < ON_TIME_MS ? "under 3 s" : durationText(ageMs + toldMs);
}

/** Words that a person has to read beside the figures. */
function notesOf({ drain, cordon_reason, trouble }: WorkerRow, toldMs: number): string[] {
  return [
    ...(drain === null
      ? []
      : [`drains (${drain.cause}): ${drain.state}, ${leftText(drain.left_ms - toldMs)}`]),
    ...(cordon_reason === null ? [] : [`cordoned: ${cordon_reason}`]),
    ...(trouble === null ? [] : [trouble]),
  ];
}

/** A drain that nobody hurries has time without end. */
function leftText(ms: number): string {
  return ms > 30 * 86_400_000 ? "no deadline" : ms <= 0 ? "its time is up" : `${durationText(ms)} left`;
}
