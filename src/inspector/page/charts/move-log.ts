// The log beside a chart: its last moves, the newest first. A line can be pressed: the chart is then shown as it was right after it.
import { readable, timeText } from "../browser.ts";
import { KeyedList, make, setAttribute, setText } from "../dom.ts";
import type { Move } from "../known/playback.ts";

/** Older ones are reached by stepping back. */
const SHOWN = 60;

export class MoveLog {
  readonly element: HTMLElement;
  readonly #empty = make("p", { class: "empty" }, "No transition yet.");
  readonly #list: KeyedList<Move, HTMLLIElement>;
  readonly #draw = readable(() => this.#drawNow());
  #moves: readonly Move[] = [];
  #happened = 0;
  #current: number | undefined;

  constructor(goTo: (number: number) => void) {
    const lines = make("ol", { class: "moves", "aria-label": "Last transitions, the newest first" });
    this.element = make(
      "div",
      { class: "log" },
      make("h2", { class: "minor" }, "Last transitions"),
      this.#empty,
      lines,
    );
    this.#list = new KeyedList(
      lines,
      (move) => lineOf(move, () => goTo(move.number)),
      (line, { number }) =>
        setAttribute(
          line.firstElementChild ?? line,
          "aria-current",
          number === this.#current ? "true" : null,
        ),
    );
  }

  /** `happened`: so many of them. `isHeld`: a person steps, and sees each step at once. */
  show(moves: readonly Move[], happened: number, isHeld: boolean): void {
    this.#moves = moves;
    this.#happened = happened;
    if (isHeld) this.#drawNow();
    else this.#draw();
  }

  #drawNow(): void {
    const [moves, happened] = [this.#moves, this.#happened];
    this.#current = moves[happened - 1]?.number;
    const last = Math.min(moves.length, Math.max(SHOWN, happened + SHOWN / 2));
    const shown = moves
      .slice(happened < moves.length ? Math.max(0, last - SHOWN) : -SHOWN, last)
      .toReversed();
    this.#list.show(shown.map((move) => [String(move.number), move]));
    if (this.#empty.hidden !== moves.length > 0) this.#empty.hidden = moves.length > 0;
  }
}

function lineOf({ atMs, event, from, to, detail, isMove }: Move, press: () => void): HTMLLIElement {
  const way = !isMove ? "" : from === to ? to : `${from === "" ? "" : `${from} → `}${to}`;
  const time = make("span", { class: "time" });
  setText(time, timeText(atMs));
  const line = make(
    "button",
    { type: "button", class: "move" },
    time,
    make("span", { class: "event" }, event),
  );
  if (way !== "") line.append(make("span", { class: "way-of" }, way));
  if (detail !== "") line.append(make("span", { class: "detail" }, detail));
  line.addEventListener("click", press);
  return make("li", {}, line);
}
