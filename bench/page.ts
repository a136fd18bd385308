// Frames of the page of `rollout inspect` in a real browser, while 1,000 workers and 20 transitions a second are told of, and while a
// program of 200 actors says 1,000 things a second. The aim is that a frame takes less than 50 ms.
import type { Browser, Page } from "playwright-core";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { PageNews, WorkerRow } from "../src/inspector/page-messages.ts";
import { goTo, openPage, startBrowser } from "../test/support/browser.ts";
import {
  course,
  events,
  madeCluster,
  madeProgram,
  programLog,
  runNumbers,
  workerId,
  workerRows,
} from "../test/support/made-cluster.ts";
import { PageFixture } from "../test/support/page-fixture.ts";
import { round } from "./support/figure.ts";
import type { Bench, Figure } from "./support/figure.ts";

const WORKERS = 1_000;
const STEPS_A_SECOND = 20;
const SECONDS = 8;
/** The server tells of so many workers a round of which only the load has changed. */
const BUSY_ROWS = 200;
const ACTORS = 200;
const VIEWS: readonly (readonly string[])[] = [
  ["overview"],
  ["workers"],
  ["workers", workerId(0)],
  ["charts", "worker-lifecycle", workerId(0)],
  ["programs", "p1"],
];
/** Distances between frames, and how long the work of each took. */
const WATCH_FRAMES = `(() => {
  window.frames_ = []; window.long_ = [];
  let last = performance.now();
  const next = (now) => { window.frames_.push(now - last); last = now; requestAnimationFrame(next); };
  requestAnimationFrame(next);
  new PerformanceObserver((list) => window.long_.push(...list.getEntries().map(({ duration }) => duration))).observe({ type: "longtask" });
})()`;

export const page: Bench = {
  name: "page",
  async run(note) {
    const whole = (): PageNews[] => [
      ...madeCluster({ workers: WORKERS, listensAt: "127.0.0.1:1" }),
      ...madeProgram(ACTORS, "work-item"),
    ];
    const fixture = await PageFixture.start({ whole });
    const browser = await startBrowser();
    try {
      const figures: Figure[] = [];
      for (const view of VIEWS) {
        note(view.join("/"));
        figures.push(...(await framesOf(browser, fixture, view)));
      }
      return figures;
    } finally {
      await browser.close();
      await fixture.stop();
    }
  },
};

async function framesOf(browser: Browser, fixture: PageFixture, view: readonly string[]): Promise<Figure[]> {
  const { page: open } = await openPage(browser, fixture.address, { reducedMotion: "no-preference" });
  await goTo(open, ...view);
  await open
    .locator(view[0] === "overview" ? ".tile" : ".card:visible")
    .first()
    .waitFor();
  const teller = new Teller(fixture);
  await teller.tellFor(1);
  await open.evaluate(WATCH_FRAMES);
  await teller.tellFor(SECONDS);
  const figures = await figuresOf(
    open,
    view[1] === undefined ? (view[0] ?? "") : `${view[0] ?? ""}, one open`,
  );
  await open.context().close();
  return figures;
}

async function figuresOf(open: Page, name: string): Promise<Figure[]> {
  const seen = await open.evaluate<{ frames: number[]; long: number[] }>(
    "({ frames: window.frames_, long: window.long_ })",
  );
  const frames = seen.frames.toSorted((one, other) => one - other);
  const at = (share: number): number =>
    frames[Math.min(frames.length - 1, Math.floor(frames.length * share))] ?? 0;
  return [
    { name: `${name}: frames`, value: round(frames.length / SECONDS, 1), unit: "a second" },
    { name: `${name}: frame p50`, value: round(at(0.5), 1), unit: "ms" },
    { name: `${name}: frame p99`, value: round(at(0.99), 1), unit: "ms" },
    { name: `${name}: frame max`, value: round(at(1), 1), unit: "ms" },
    { name: `${name}: tasks over 50 ms`, value: seen.long.length, unit: "tasks" },
  ];
}

/** Tells what a busy cluster and a busy program would. */
class Teller {
  static #number = 1_000;
  readonly #fixture: PageFixture;
  readonly #rows: readonly WorkerRow[] = workerRows(WORKERS);
  readonly #lastPoint = course().at(-1);

  constructor(fixture: PageFixture) {
    this.#fixture = fixture;
  }

  async tellFor(seconds: number): Promise<void> {
    const ticks = seconds * STEPS_A_SECOND;
    for (let tick = 0; tick < ticks; tick++) {
      const number = Teller.#number++;
      this.#tellSteps(number);
      if (tick % STEPS_A_SECOND === 0) this.#tellRound(number);
      await sleep(systemClock, 1_000 / STEPS_A_SECOND);
    }
  }

  /** A transition, all of them of the chart that is looked at, and fifty things that a program says. */
  #tellSteps(number: number): void {
    const isOdd = number % 2 === 1;
    const [alive, suspected] = ["Ready+Alive", "Ready+Suspected"];
    const event = isOdd ? "beat.overdue" : "beat.arrived";
    const step = {
      number,
      at_ms: systemClock.wallMs(),
      chart: "worker-lifecycle",
      actor: workerId(0),
      event,
      from: isOdd ? alive : suspected,
      to: isOdd ? suspected : alive,
    };
    const actor = {
      ...{
        session_id: `x:${number % ACTORS}`,
        parent_id: null,
        name: `actor ${number % ACTORS}`,
        definition: "work-item",
      },
      ...{ value: isOdd ? "Running" : "Pending", status: "active" },
    };
    this.#fixture.tell(
      { kind: "steps", steps: [step], dropped: 0 },
      { kind: "actors", program_id: "p1", anew: false, changed: [actor], gone: [] },
      { kind: "log", program_id: "p1", entries: programLog(number * 50, 50), dropped: 0 },
    );
  }

  #tellRound(number: number): void {
    const changed = this.#rows
      .slice(0, BUSY_ROWS)
      .map((row) => ({ ...row, load: (number % 10) / 10, held: number % 40 }));
    const news: PageNews[] = [
      { kind: "status", status: runNumbers(this.#rows, { done: number, executing: number % 900 }) },
      { kind: "workers", anew: false, changed, gone: [] },
      { kind: "events", events: events().slice(-1) },
    ];
    if (this.#lastPoint !== undefined) {
      const point = { ...this.#lastPoint, at_ms: systemClock.wallMs() };
      news.push({ kind: "history", anew: false, interval_ms: 1_000, points: [point] });
    }
    this.#fixture.tell(...news);
  }
}
