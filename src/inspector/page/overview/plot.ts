// A plot over time, or over a number that grows: lines or areas, readable axes, and a line that follows the pointer or the arrow keys and says
// the figures there.
import { localOffsetMs, markText, timeText } from "../browser.ts";
import { make, makeSvg, setAttribute, setText } from "../dom.ts";
import { shortCount } from "../known/phrases.ts";
import { areaPath, countMarks, linePath, nearest, timeMarks } from "../known/scale.ts";
import type { Place } from "../known/scale.ts";

export interface Series {
  /** The name of its class too. */
  readonly name: string;
  readonly values: readonly number[];
  /** Down to these when it is an area. */
  readonly above?: readonly number[];
}

export interface PlotFigures {
  /** Times, or numbers, that grow. */
  readonly along: readonly number[];
  /** The first is drawn first. */
  readonly series: readonly Series[];
  /** Said of one moment. */
  readonly words: (at: number) => string;
  /** Figures of a row of the table; the heights of the series unless said. */
  readonly cells?: (at: number) => readonly string[];
}

/** The axes of a plot: along it, and up in it. */
export interface Axes {
  /** The head of the first column. */
  readonly name: string;
  /** One moment, or number, in words. */
  readonly textOf: (value: number) => string;
  readonly marksAlong: (from: number, to: number, most: number) => readonly number[];
  readonly textAlong: (mark: number, span: number) => string;
  /** From the lowest to the highest of what is drawn; what lies beyond is drawn at the edge. */
  readonly marksUp: (values: readonly (readonly number[])[]) => readonly number[];
  readonly textUp: (mark: number) => string;
}

const OVER_TIME: Axes = {
  name: "Time",
  textOf: timeText,
  marksAlong: (from, to, most) => timeMarks(from, to, most, localOffsetMs(to)),
  textAlong: (mark, span) => markText(mark, span < 300_000),
  marksUp: (values) => countMarks(Math.max(0, ...values.flat()), 4),
  textUp: shortCount,
};

const HEIGHT = 170;
const LEFT = 46;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 22;
/** Rows of a table that somebody reads. */
const TABLE_ROWS = 30;

export class Plot {
  readonly element: HTMLElement;
  readonly #svg = makeSvg("svg", { class: "plot", height: HEIGHT });
  readonly #axes = makeSvg("g", { class: "axes" });
  readonly #shapes = makeSvg("g");
  readonly #cursor = makeSvg("line", { class: "cursor", y1: TOP, y2: HEIGHT - BOTTOM, visibility: "hidden" });
  readonly #said = make("p", { class: "said" });
  readonly #rows = make("tbody");
  readonly #table: HTMLDetailsElement;
  readonly #paths = new Map<string, SVGPathElement>();
  readonly #axesOf: Axes;
  #figures: PlotFigures = { along: [], series: [], words: () => "" };
  #at: number | null = null;
  #isMaking = false;

  constructor(title: string, heads: readonly string[], axes = OVER_TIME) {
    this.#axesOf = axes;
    const over = axes.name.toLowerCase();
    setAttribute(this.#svg, "role", "img");
    setAttribute(this.#svg, "aria-label", `${title} over ${over}; its figures are in the table below`);
    this.#svg.append(this.#axes, this.#shapes, this.#cursor);
    const frame = make(
      "div",
      {
        class: "plot-frame",
        tabindex: "0",
        role: "group",
        "aria-label": `${title}: arrow keys go through ${over}`,
      },
      this.#svg,
    );
    const head = make("tr", {}, ...[axes.name, ...heads].map((words) => make("th", { scope: "col" }, words)));
    const table = make("table", {}, make("caption", {}, title), make("thead", {}, head), this.#rows);
    const scroll = make(
      "div",
      { class: "scroll", tabindex: "0", role: "group", "aria-label": `${title}, as a table` },
      table,
    );
    this.#table = make("details", { class: "as-table" }, make("summary", {}, `${title} as a table`), scroll);
    this.#table.addEventListener("toggle", () => this.#fillTable());
    this.element = make(
      "div",
      { class: "plot-whole" },
      make("h3", {}, title),
      this.#said,
      frame,
      this.#table,
    );
    frame.addEventListener("pointermove", (event) => this.#point(event.clientX));
    frame.addEventListener("pointerleave", () => this.#moveTo(null));
    frame.addEventListener("blur", () => this.#moveTo(null));
    frame.addEventListener("keydown", (event) => this.#step(event));
    new ResizeObserver(() => this.#make()).observe(frame);
  }

  show(figures: PlotFigures): void {
    this.#figures = figures;
    this.#make();
    if (this.#table.open) this.#fillTable();
  }

  #make(): void {
    const width = this.#svg.parentElement?.clientWidth ?? 0;
    if (width < LEFT + RIGHT + 20 || this.#isMaking) return;
    this.#isMaking = true;
    setAttribute(this.#svg, "width", width);
    const { along, series } = this.#figures;
    const marks = this.#axesOf.marksUp(series.flatMap(({ values, above = [] }) => [values, above]));
    const [bottom, top] = [marks[0] ?? 0, marks.at(-1) ?? 1];
    const y = (value: number): number => {
      const share = (Math.min(top, Math.max(bottom, value)) - bottom) / (top - bottom);
      return HEIGHT - BOTTOM - share * (HEIGHT - TOP - BOTTOM);
    };
    const places = (values: readonly number[]): Place[] =>
      values.map((value, at) => ({ x: this.#x(along[at] ?? 0), y: y(value) }));
    this.#drawAxes(marks, y, width);
    for (const { name, values, above } of series) {
      const upper = places(values);
      const shape = above === undefined ? linePath(upper) : areaPath(upper, places(above));
      setAttribute(this.#pathOf(name, above === undefined ? "line" : "area"), "d", shape);
    }
    this.#moveTo(this.#at);
    this.#isMaking = false;
  }

  #pathOf(name: string, kind: string): SVGPathElement {
    const known = this.#paths.get(name);
    if (known !== undefined) return known;
    const path = makeSvg("path", { class: `${kind} ${name}` });
    this.#shapes.append(path);
    this.#paths.set(name, path);
    return path;
  }

  #drawAxes(marks: readonly number[], y: (value: number) => number, width: number): void {
    const [from, to] = this.#span;
    const most = Math.max(2, Math.floor(width / 110));
    const below = to <= from ? [] : this.#axesOf.marksAlong(from, to, most);
    this.#axes.replaceChildren(
      ...marks.flatMap((mark) => [
        makeSvg("line", { x1: LEFT, x2: width - RIGHT, y1: y(mark), y2: y(mark) }),
        makeSvg("text", { x: LEFT - 6, y: y(mark) + 4, class: "left" }, this.#axesOf.textUp(mark)),
      ]),
      ...below.map((mark) => {
        const text = this.#axesOf.textAlong(mark, to - from);
        return makeSvg("text", { x: this.#x(mark), y: HEIGHT - 6, class: "below" }, text);
      }),
    );
  }

  get #span(): readonly [number, number] {
    const { along } = this.#figures;
    return [along[0] ?? 0, along.at(-1) ?? 0];
  }

  #x(value: number): number {
    const [from, to] = this.#span;
    const width = Number(this.#svg.getAttribute("width") ?? 0) - LEFT - RIGHT;
    return to <= from ? LEFT : LEFT + ((value - from) / (to - from)) * width;
  }

  #point(clientX: number): void {
    const [from, to] = this.#span;
    const box = this.#svg.getBoundingClientRect();
    const share = (clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
    this.#moveTo(nearest(this.#figures.along, from + share * (to - from)));
  }

  #step(event: KeyboardEvent): void {
    const last = this.#figures.along.length - 1;
    const by = { ArrowLeft: -1, ArrowRight: 1, PageUp: -30, PageDown: 30 }[event.key];
    if (by === undefined || last < 0) return;
    event.preventDefault();
    this.#moveTo(Math.min(last, Math.max(0, (this.#at ?? last) + by)));
  }

  #moveTo(at: number | null): void {
    this.#at = at;
    const last = this.#figures.along.length - 1;
    const said = at === null || at < 0 || at > last ? last : at;
    const there = this.#figures.along[said];
    const where = at === null || there === undefined ? "Now" : this.#axesOf.textOf(there);
    setText(this.#said, there === undefined ? "" : `${where}: ${this.#figures.words(said)}`);
    const isShown = at !== null && there !== undefined;
    setAttribute(this.#cursor, "visibility", isShown ? "visible" : "hidden");
    if (!isShown) return;
    setAttribute(this.#cursor, "x1", this.#x(there));
    setAttribute(this.#cursor, "x2", this.#x(there));
  }

  #fillTable(): void {
    if (!this.#table.open) return;
    const { along, series, cells } = this.#figures;
    const step = Math.max(1, Math.ceil(along.length / TABLE_ROWS));
    const shown = along
      .flatMap((value, at) => ((along.length - 1 - at) % step === 0 ? [{ value, at }] : []))
      .toReversed();
    const heights = (at: number): readonly string[] =>
      series.map(({ values, above }) => {
        const value = (values[at] ?? 0) - (above?.[at] ?? 0);
        return String(Math.round(value * 10) / 10);
      });
    this.#rows.replaceChildren(
      ...shown.map(({ value, at }) =>
        make(
          "tr",
          {},
          make("th", { scope: "row" }, this.#axesOf.textOf(value)),
          ...(cells ?? heights)(at).map((text) => make("td", {}, text)),
        ),
      ),
    );
  }
}
