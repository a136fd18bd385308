// Every chart of the product, drawn, with one of its actors lit: the run, a coordinator, a worker, an item.
import { readable } from "../browser.ts";
import { addressOf } from "../desk.ts";
import type { Desk, View } from "../desk.ts";
import { KeyedList, make, setAttribute, setHidden, setText } from "../dom.ts";
import { actorsOf } from "../known/actors.ts";
import type { Cluster } from "../known/cluster.ts";
import type { ActorChoice } from "../known/actors.ts";
import { countOf, shortName } from "../known/phrases.ts";
import { nobody, Player } from "./player.ts";

/** Charts of which an operator asks first. */
const FIRST = ["run", "coordinator-role", "worker-lifecycle"];
const NO_ACTOR: Readonly<Record<string, string>> = {
  execution: "Executions live within workers and are not told of: this is the chart alone.",
  "work-item": "No item is at work now. Any item can be looked at by its name, under Items.",
};

export function chartsView(desk: Desk): View {
  const { cluster, calls } = desk;
  const player = new Player("Chart");
  const picker = new ActorPicker();
  const charts = make("nav", { class: "tabs", "aria-label": "Charts" });
  const links = new KeyedList<string, HTMLAnchorElement>(
    charts,
    (name) => make("a", { href: addressOf("charts", name) }, name),
    (link, name) => setAttribute(link, "aria-current", name === chart ? "page" : null),
  );
  const element = make(
    "div",
    { class: "charts" },
    ...[charts, make("div", { class: "card chart-room" }, picker.element, player.element)],
  );
  let chart = "run";
  let actor: string | undefined;
  let followed: string | undefined;

  const follow = (): void => {
    const { choices } = actorsOf(cluster, chart, "");
    const chosen = actor ?? choices[0]?.actor;
    picker.show(cluster, chart, chosen);
    const name = `${chart}/${chosen ?? "?"}`;
    if (followed === name) return player.refresh();
    followed = name;
    const shown = chart;
    const source =
      chosen === undefined
        ? nobody
        : { moves: () => cluster.movesOf(shown, chosen), state: () => cluster.stateOf(shown, chosen) };
    void player.show(calls.chart(chart), source);
  };
  const show = (path: readonly string[]): void => {
    const names = cluster.hello?.charts ?? [];
    chart = path[0] ?? FIRST.find((name) => names.includes(name)) ?? names[0] ?? "run";
    actor = path[1];
    links.show(names.toSorted((one, other) => rank(one) - rank(other)).map((name) => [name, name]));
    if (names.length > 0) follow();
  };
  return {
    element,
    title: "Charts",
    show,
    refresh: (topics) => (topics.has("hello") ? show(path(chart, actor)) : follow()),
  };
}

function path(chart: string, actor: string | undefined): readonly string[] {
  return actor === undefined ? [chart] : [chart, actor];
}

function rank(name: string): number {
  const at = FIRST.indexOf(name);
  return at < 0 ? FIRST.length : at;
}

class ActorPicker {
  readonly element: HTMLElement;
  readonly #search = make("input", { type: "search", id: "actor-text", placeholder: "part of a name" });
  readonly #filter = make(
    "div",
    { class: "filters" },
    make("label", { for: "actor-text" }, "Find"),
    this.#search,
  );
  readonly #note = make("p", { class: "quiet" });
  readonly #lines = make("ul", { class: "actors" });
  readonly #list: KeyedList<ActorChoice, HTMLLIElement>;
  #chart = "";
  #chosen: string | undefined;
  #cluster: Cluster | undefined;
  readonly #draw = readable(() => this.#drawNow());

  constructor() {
    this.#list = new KeyedList(
      this.#lines,
      () =>
        make("li", {}, make("a", {}, make("span", { class: "name" }), make("span", { class: "in-state" }))),
      (line, choice) => this.#fill(line, choice),
    );
    this.#search.addEventListener("input", () => this.#drawNow());
    this.element = make(
      "section",
      { class: "picker", "aria-label": "Actors" },
      make("h2", { class: "minor" }, "Actors"),
      this.#filter,
      this.#lines,
      this.#note,
    );
  }

  show(cluster: Cluster, chart: string, chosen: string | undefined): void {
    const isOther = this.#chart !== chart || this.#chosen !== chosen;
    if (this.#chart !== chart) this.#search.value = "";
    [this.#cluster, this.#chart, this.#chosen] = [cluster, chart, chosen];
    if (!isOther) return this.#draw();
    this.#drawNow();
    const current = this.#lines.querySelector<HTMLElement>("[aria-current]");
    this.#lines.scrollTop = (current?.offsetTop ?? 0) - this.#lines.clientHeight / 2;
  }

  #drawNow(): void {
    const [cluster, chart] = [this.#cluster, this.#chart];
    if (cluster === undefined) return;
    const { choices, more } = actorsOf(cluster, chart, this.#search.value, this.#chosen);
    this.#list.show(choices.map((choice) => [`${chart}/${choice.actor}`, choice]));
    const isEmpty = choices.length === 0;
    const words = isEmpty
      ? this.#search.value === ""
        ? (NO_ACTOR[chart] ?? "Nobody is in this chart yet.")
        : "No actor is called so."
      : more > 0
        ? `${countOf(more, "more", "more")}: find them by a part of their names.`
        : "";
    setText(this.#note, words);
    setHidden(this.#note, words === "");
    setHidden(this.#filter, more === 0 && this.#search.value === "" && choices.length < 8);
  }

  #fill(line: HTMLLIElement, { actor, state }: ActorChoice): void {
    const link = line.firstElementChild;
    if (link === null) return;
    setAttribute(
      link,
      "href",
      actor === "" ? addressOf("charts", this.#chart) : addressOf("charts", this.#chart, actor),
    );
    setAttribute(link, "aria-current", actor === this.#chosen ? "true" : null);
    const [name, inState] = link.children;
    if (name !== undefined) setText(name, actor === "" ? "the run" : shortName(actor));
    if (inState !== undefined) setText(inState, state ?? "");
  }
}
