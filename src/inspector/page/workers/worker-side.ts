// One worker: what `rollout explain` says of it, its charts, and its drain.
import { Player } from "../charts/player.ts";
import { addressOf } from "../desk.ts";
import type { Desk } from "../desk.ts";
import { button, make, setAttribute, setDisabled } from "../dom.ts";
import { ExplainedLines } from "../explained-lines.ts";
import { workerWord } from "../known/worker-order.ts";
import { SidePanel } from "../side-panel.ts";

const CHARTS = ["worker-lifecycle", "worker-trust", "spot-drain"] as const;
type WorkerChart = (typeof CHARTS)[number];
/** Words of workers that can be asked to leave. */
const DRAINABLE = new Set(["init", "ready", "cordoned", "suspected"]);

export class WorkerSide {
  readonly panel: SidePanel;
  readonly #desk: Desk;
  readonly #player = new Player("Charts of the worker");
  readonly #lines = new ExplainedLines();
  readonly #tabs: readonly HTMLButtonElement[];
  readonly #whole = make("a", {}, "Open in Charts");
  readonly #drain: HTMLButtonElement;
  #worker = "";
  #chart: WorkerChart = "worker-lifecycle";

  constructor(desk: Desk) {
    this.#desk = desk;
    this.panel = new SidePanel("Worker", () => {
      location.hash = addressOf("workers");
    });
    this.#drain = button("Drain", () => desk.ask({ deed: "drain", worker_id: this.#worker }));
    this.panel.deeds.append(this.#drain);
    this.#tabs = CHARTS.map((chart) => button(chart, () => this.#choose(chart)));
    const tabs = make(
      "div",
      { class: "tabs", role: "group", "aria-label": "Chart" },
      ...this.#tabs,
      this.#whole,
    );
    this.panel.body.append(this.#lines.element, tabs, this.#player.element);
  }

  show(worker: string): void {
    if (this.#worker !== worker || !this.panel.isOpen) {
      this.#worker = worker;
      this.#lines.about(() => this.#desk.calls.explainWorker(worker));
      this.panel.open(worker);
      this.#choose(this.#chart);
    }
    this.refresh();
  }

  refresh(): void {
    if (!this.panel.isOpen) return;
    const row = this.#desk.cluster.workers.get(this.#worker);
    setDisabled(this.#drain, row === undefined || !DRAINABLE.has(workerWord(row)));
    this.#lines.refresh();
    this.#player.refresh();
  }

  #choose(chart: WorkerChart): void {
    this.#chart = chart;
    for (const tab of this.#tabs)
      setAttribute(tab, "aria-pressed", tab.textContent === chart ? "true" : "false");
    setAttribute(this.#whole, "href", addressOf("charts", chart, this.#worker));
    const { cluster, calls } = this.#desk;
    const worker = this.#worker;
    void this.#player.show(calls.chart(chart), {
      moves: () => cluster.movesOf(chart, worker),
      state: () => cluster.stateOf(chart, worker),
    });
  }
}
