// The release that is under way, or was last: how it stands, and each metric of its stage as a plot of both versions' intervals over the attempts
// of the candidate that were judged, with the margin that the candidate may not be beyond.
import type { Bounds, MetricPoint, ReleaseNow, ReleasePoint } from "../../page-messages.ts";
import { KeyedList, make, setHidden, setText } from "../dom.ts";
import type { Cluster } from "../known/cluster.ts";
import { countOf, metricText, shortCount, words } from "../known/phrases.ts";
import { countMarks, valueMarks } from "../known/scale.ts";
import { Plot } from "./plot.ts";
import type { Axes } from "./plot.ts";

interface Sequence {
  readonly metric: ReleaseNow["metrics"][number];
  readonly judged: readonly number[];
  readonly points: readonly MetricPoint[];
}

const HEADS = ["Stable", "Stable's interval", "Candidate", "Candidate's interval", "Margin"];
const KEY = ["stable", "candidate", "margin"] as const;

export class ReleaseCard {
  readonly element: HTMLElement;
  readonly #state = make("p", {});
  readonly #reason = make("p", { class: "said" });
  readonly #waiting = make("p", { class: "empty" }, "No attempt of both versions is judged yet.");
  readonly #metrics: KeyedList<Sequence, HTMLElement>;
  readonly #plots = new WeakMap<HTMLElement, Plot>();

  constructor() {
    const list = make("div", { class: "plots" });
    this.#metrics = new KeyedList(
      list,
      ({ metric }) => this.#plotOf(metric.metric),
      (element, sequence) => this.#plots.get(element)?.show(figuresOf(sequence)),
    );
    const key = make("ul", { class: "key" }, ...KEY.map((name) => make("li", { class: name }, name)));
    this.element = make(
      "section",
      { class: "card", "aria-label": "Release", hidden: true },
      make("h2", {}, "Release"),
      ...[this.#state, this.#reason, this.#waiting, list, key],
    );
  }

  show(release: Cluster["release"]): void {
    setHidden(this.element, release === undefined);
    if (release === undefined) return;
    const { now, points } = release;
    setText(this.#state, sentence(now));
    setText(this.#reason, now.reason);
    const sequences = now.metrics.map((metric, at) => sequenceOf(metric, at, points));
    const shown = sequences.filter((one) => one.points.length > 1);
    setHidden(this.#waiting, shown.length > 0);
    // Another stage is another plot: its scale begins anew.
    this.#metrics.show(shown.map((one) => [`${now.release} ${now.stage} ${one.metric.metric}`, one]));
  }

  #plotOf(metric: string): HTMLElement {
    const plot = new Plot(`${metric}, ${KEY[0]} and ${KEY[1]}`, HEADS, axesOf(metric));
    const element = make("div", {}, plot.element);
    this.#plots.set(element, plot);
    return element;
  }
}

function sentence({ plugin, stable_version, candidate_version, state, stage, stages }: ReleaseNow): string {
  const current = stages.find((one) => one.stage === stage);
  const from = stable_version === "" ? "" : `${stable_version} to `;
  const where = current === undefined ? "" : `, stage ${stage} of ${stages.length} (${current.share})`;
  const judged = current === undefined ? "" : `, ${countOf(current.judged, "attempt")} judged`;
  return `${plugin} ${from}${candidate_version}: ${words(state)}${where}${judged}`;
}

function sequenceOf(
  metric: ReleaseNow["metrics"][number],
  at: number,
  points: readonly ReleasePoint[],
): Sequence {
  const known = points.flatMap(({ judged, metrics }) => {
    const point = metrics[at];
    return point === undefined || point === null ? [] : [{ judged, point }];
  });
  return { metric, judged: known.map(({ judged }) => judged), points: known.map(({ point }) => point) };
}

function axesOf(metric: string): Axes {
  return {
    name: "Judged",
    textOf: (judged) => countOf(judged, "attempt"),
    marksAlong: (from, to, most) => countMarks(to, most).filter((mark) => mark >= from && mark <= to),
    textAlong: shortCount,
    marksUp: rangeOf,
    textUp: (value) => metricText(metric, value),
  };
}

/** The first intervals reach over everything: the later ones are to be seen. */
function rangeOf(values: readonly (readonly number[])[]): readonly number[] {
  const late = values.flatMap((one) => one.slice(Math.floor(one.length / 4)));
  return valueMarks(Math.min(...late), Math.max(...late), 4);
}

function figuresOf({ metric, judged, points }: Sequence): Parameters<Plot["show"]>[0] {
  const text = (value: number): string => metricText(metric.metric, value);
  const interval = ([lower, , upper]: Bounds): string => `${text(lower)} to ${text(upper)}`;
  const bound = (arm: "stable" | "candidate", which: 0 | 1 | 2): number[] =>
    points.map((point) => point[arm][which]);
  const band = (arm: "stable" | "candidate") =>
    ({ name: `${arm}-interval`, values: bound(arm, 2), above: bound(arm, 0) }) as const;
  return {
    along: judged,
    series: [
      ...[band("stable"), band("candidate")],
      { name: "margin", values: points.map(({ margin }) => margin) },
      ...(["stable", "candidate"] as const).map((name) => ({ name, values: bound(name, 1) })),
    ],
    words: (at) => {
      const point = points[at];
      if (point === undefined) return "";
      const { stable, candidate, margin } = point;
      return `stable ${text(stable[1])} (${interval(stable)}), candidate ${text(candidate[1])} (${interval(candidate)}), margin ${text(margin)}`;
    },
    cells: (at) => {
      const point = points[at];
      if (point === undefined) return [];
      const { stable, candidate, margin } = point;
      return [text(stable[1]), interval(stable), text(candidate[1]), interval(candidate), text(margin)];
    },
  };
}
