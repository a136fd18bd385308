// The course of the run: its rate and its items by state over time.
import type { HistoryPoint } from "../../page-messages.ts";
import { make, setHidden } from "../dom.ts";
import { countText, rateText } from "../known/phrases.ts";
import { ITEM_STATES, ratesOf, stackedUpTo } from "../known/scale.ts";
import { Plot } from "./plot.ts";

const LABELS = {
  done: "done",
  failed: "failed",
  running: "with workers",
  delayed: "delayed",
  pending: "pending",
};

export class Course {
  readonly element: HTMLElement;
  readonly #rate = new Plot("Items per second", ["Items per second"]);
  readonly #items = new Plot(
    "Items by state",
    ITEM_STATES.map((state) => LABELS[state]),
  );
  readonly #empty = make(
    "p",
    { class: "empty" },
    "No history yet: the coordinator notes a point each second, from when it begins to lead.",
  );
  readonly #plots = make("div", { class: "plots" });

  constructor() {
    const key = ITEM_STATES.map((state) => make("li", { class: state }, LABELS[state]));
    const items = make("div", {}, this.#items.element, make("ul", { class: "key" }, ...key));
    this.#plots.append(make("div", {}, this.#rate.element), items);
    this.element = make(
      "section",
      { class: "card", "aria-label": "Course of the run" },
      make("h2", {}, "Course"),
      this.#empty,
      this.#plots,
    );
  }

  show(points: readonly HistoryPoint[]): void {
    const isEmpty = points.length < 2;
    setHidden(this.#empty, !isEmpty);
    setHidden(this.#plots, isEmpty);
    if (isEmpty) return;
    const rates = ratesOf(points);
    const perSecond = rates.map((rate) => rate.perSecond);
    this.#rate.show({
      along: rates.map(({ atMs }) => atMs),
      series: [{ name: "rate", values: perSecond }],
      words: (at) => `${rateText(perSecond[at] ?? 0)} items a second`,
    });
    const heights = ITEM_STATES.map((state) => stackedUpTo(points, state));
    const ground = points.map(() => 0);
    this.#items.show({
      along: points.map(({ at_ms }) => at_ms),
      series: ITEM_STATES.map((name, at) => ({
        name,
        values: heights[at] ?? ground,
        above: heights[at - 1] ?? ground,
      })),
      words: (at) => {
        const point = points[at];
        return point === undefined
          ? ""
          : ITEM_STATES.map((name) => `${countText(point[name])} ${LABELS[name]}`).join(", ");
      },
    });
  }
}
