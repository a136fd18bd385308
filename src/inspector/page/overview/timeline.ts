// Events of the cluster: marks on a line of time, in a lane for each kind, and the same as a list, the newest first.
import type { TimelineEvent } from "../../page-messages.ts";
import { localOffsetMs, markText, timeText } from "../browser.ts";
import { KeyedList, make, makeSvg, setAttribute, setHidden } from "../dom.ts";
import { timeMarks } from "../known/scale.ts";
import { words } from "../known/phrases.ts";

const LANES = ["leadership", "failures", "drains", "steals", "others"] as const;
type Lane = (typeof LANES)[number];
const LISTED = 100;
const LANE_HEIGHT = 20;
const LEFT = 84;
const RIGHT = 12;
const HEIGHT = LANES.length * LANE_HEIGHT + 26;

export class Timeline {
  readonly element: HTMLElement;
  readonly #none = make(
    "p",
    { class: "empty" },
    "Nothing has happened since this page was opened: no worker came, left or failed, and no other coordinator leads.",
  );
  readonly #svg = makeSvg("svg", { class: "plot lanes", height: HEIGHT, "aria-hidden": "true" });
  readonly #list: KeyedList<TimelineEvent, HTMLLIElement>;
  #events: readonly TimelineEvent[] = [];

  constructor() {
    const list = make("ol", { class: "events" });
    const scroll = make(
      "div",
      { class: "event-list", tabindex: "0", role: "group", "aria-label": "Events, the newest first" },
      list,
    );
    this.#list = new KeyedList(list, lineOf, () => undefined);
    const frame = make("div", { class: "plot-frame" }, this.#svg);
    this.element = make(
      "section",
      { class: "card", "aria-label": "Events" },
      make("h2", {}, "Events"),
      this.#none,
      frame,
      scroll,
    );
    new ResizeObserver(() => this.#draw()).observe(frame);
  }

  show(events: readonly TimelineEvent[]): void {
    this.#events = events;
    setHidden(this.#none, events.length > 0);
    const counts = new Map<string, number>();
    const keyed = events.slice(-LISTED).map((event) => {
      // Two may be the same to the millisecond.
      const name = `${event.at_ms} ${event.topic} ${event.words}`;
      const before = counts.get(name) ?? 0;
      counts.set(name, before + 1);
      return [`${name} ${before}`, event] as const;
    });
    this.#list.show(keyed.toReversed());
    this.#draw();
  }

  #draw(): void {
    const width = this.#svg.parentElement?.clientWidth ?? 0;
    const shown = this.#events;
    setAttribute(this.#svg, "display", shown.length === 0 ? "none" : null);
    if (width < LEFT + 50 || shown.length === 0) return;
    setAttribute(this.#svg, "width", width);
    const from = shown[0]?.at_ms ?? 0;
    const to = Math.max(from + 60_000, shown.at(-1)?.at_ms ?? 0);
    const x = (ms: number): number => LEFT + ((ms - from) / (to - from)) * (width - LEFT - RIGHT);
    const y = (lane: Lane): number => LANES.indexOf(lane) * LANE_HEIGHT + LANE_HEIGHT / 2 + 2;
    const marks = timeMarks(from, to, Math.max(2, Math.floor(width / 130)), localOffsetMs(to));
    this.#svg.replaceChildren(
      ...LANES.flatMap((lane) => [
        makeSvg("line", { x1: LEFT, x2: width - RIGHT, y1: y(lane), y2: y(lane), class: "lane" }),
        makeSvg("text", { x: LEFT - 8, y: y(lane) + 4, class: "left" }, lane),
      ]),
      ...marks.map((mark) =>
        makeSvg("text", { x: x(mark), y: HEIGHT - 6, class: "below" }, markText(mark, to - from < 300_000)),
      ),
      ...shown.map((event) =>
        makeSvg(
          "circle",
          {
            cx: Math.round(x(event.at_ms) * 10) / 10,
            cy: y(laneOf(event.topic)),
            r: 4.5,
            class: `mark ${laneOf(event.topic)}`,
          },
          makeSvg("title", {}, `${timeText(event.at_ms)} ${event.words}`),
        ),
      ),
    );
  }
}

function lineOf(event: TimelineEvent): HTMLLIElement {
  return make(
    "li",
    { class: laneOf(event.topic) },
    make("span", { class: "time" }, timeText(event.at_ms)),
    make("span", { class: "topic" }, words(event.topic)),
    make("span", { class: "words" }, event.words),
  );
}

function laneOf(topic: string): Lane {
  if (topic.startsWith("coordinator_") || topic.startsWith("store_")) return "leadership";
  if (/failed|suspected|unreachable|cordoned$|revoked|superseded/.test(topic))
    return topic === "worker_uncordoned" ? "others" : "failures";
  if (/drain|deregistered/.test(topic)) return "drains";
  return topic === "work_stolen" ? "steals" : "others";
}
