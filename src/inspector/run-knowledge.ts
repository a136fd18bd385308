// The run as far as it is known here: what a page that comes is told, and what of each answer is news for those that are there.
//
// Keeps true: steps are numbered once, and never told twice, also when another connection tells the remembered ones again; everything
// is bounded.
import type { HistoryPoint, PageNews, RunNumbers, Step, TimelineEvent } from "./page-messages.ts";
import type { ChartsNews, Course, Happening, Look, NewStep } from "./run-source.ts";
import { drainOf, timelineEvent } from "./timeline.ts";
import { WorkerBoard } from "./worker-board.ts";
import { ReleaseCourse } from "./release-course.ts";

type Link = Extract<PageNews, { kind: "link" }>;

/** Charts of which there are steps all the time. */
const OF_ITEMS: ReadonlySet<string> = new Set(["work-item", "execution"]);
/** As many as a coordinator remembers. */
const STEPS_MAX = 500;
const EVENTS_MAX = 200;
/** More than a coordinator tells. */
const POINTS_MAX = 2_000;

export class RunKnowledge {
  readonly #board = new WorkerBoard();
  readonly #release = new ReleaseCourse();
  #link: Link;
  #status: { readonly status: RunNumbers; readonly text: string } | undefined;
  #steps: Step[] = [];
  #numbered = 0;
  #course: Course | undefined;
  #atWork: Extract<PageNews, { kind: "at_work" }> | undefined;
  #events: TimelineEvent[] = [];
  #changes = 0;
  #moves = 0;
  /** Steps and events that were told, as texts. */
  readonly #seen = new RecentTexts(4 * (STEPS_MAX + EVENTS_MAX));

  constructor(nowMs: number) {
    this.#link = { kind: "link", connected: false, since_ms: nowMs, reason: null };
  }

  /** Grows with each sign on the stream that something goes on, so that it is worth while to ask for the rest. */
  get changes(): number {
    return this.#changes;
  }

  /** The same of steps and events of all but items. */
  get moves(): number {
    return this.#moves;
  }

  /** For a page that has just come. */
  whole(): PageNews[] {
    const [steps, events] = [this.#steps, this.#events];
    return [
      this.#link,
      ...(this.#status === undefined
        ? []
        : [
            { kind: "status" as const, status: this.#status.status },
            { kind: "workers" as const, anew: true, changed: this.#board.rows, gone: [] },
          ]),
      { kind: "steps", steps: [...steps], dropped: this.#numbered - steps.length },
      ...(this.#course === undefined ? [] : [{ kind: "history" as const, ...this.#course, anew: true }]),
      ...(this.#atWork === undefined ? [] : [this.#atWork]),
      ...this.#release.whole(),
      { kind: "events", events: [...events] },
    ];
  }

  /** The coordinator answers, or, with a reason, it does not. Told when it changes. */
  linked(reason: string | null, nowMs: number): PageNews[] {
    const connected = reason === null;
    if (this.#link.connected === connected && this.#link.reason === reason) return [];
    const since_ms = this.#link.connected === connected ? this.#link.since_ms : nowMs;
    this.#link = { kind: "link", connected, since_ms, reason };
    return [this.#link];
  }

  looked({ status, workers, release }: Look, nowMs: number): PageNews[] {
    const text = JSON.stringify(status);
    const isNew = text !== this.#status?.text;
    this.#status = { status, text };
    const changed = workers && this.#board.take(workers, nowMs);
    return [
      ...(isNew ? [{ kind: "status" as const, status }] : []),
      ...(changed === undefined ? [] : [changed]),
      ...(release === undefined ? [] : this.#release.take(release)),
    ];
  }

  charted({ steps, dropped, happenings, history, atWork }: ChartsNews): PageNews[] {
    const fresh = steps.filter((step) => this.#seen.isNew(JSON.stringify(step)));
    return [
      ...this.#stepNews(fresh, dropped),
      ...this.#eventNews([...happenings, ...fresh.flatMap((step) => drainOf(step) ?? [])]),
      ...(history === undefined ? [] : [this.#historyNews(history)]),
      ...(atWork === undefined ? [] : this.#atWorkNews({ kind: "at_work", items: atWork })),
    ];
  }

  #stepNews(fresh: readonly NewStep[], dropped: number): PageNews[] {
    const steps = fresh.map((step) => ({ number: ++this.#numbered, ...step }));
    this.#steps = [...this.#steps, ...steps].slice(-STEPS_MAX);
    this.#changes += steps.length + dropped;
    this.#moves += steps.filter(({ chart }) => !OF_ITEMS.has(chart)).length + dropped;
    return steps.length + dropped === 0 ? [] : [{ kind: "steps", steps, dropped }];
  }

  #eventNews(happenings: readonly Happening[]): PageNews[] {
    const fresh = happenings.filter((happening) => this.#seen.isNew(JSON.stringify(happening)));
    const events = fresh
      .flatMap((happening) => timelineEvent(happening) ?? [])
      .toSorted((one, other) => one.at_ms - other.at_ms);
    this.#events = [...this.#events, ...events].slice(-EVENTS_MAX);
    this.#changes += events.length;
    this.#moves += events.length;
    return events.length === 0 ? [] : [{ kind: "events", events }];
  }

  #historyNews(told: Course): PageNews {
    const before = told.anew ? [] : (this.#course?.points ?? []);
    if (!areSame(told.points.at(-1), this.#course?.points.at(-1))) this.#changes++;
    this.#course = { ...told, points: [...before, ...told.points].slice(-POINTS_MAX) };
    return { kind: "history", ...told };
  }

  #atWorkNews(news: Extract<PageNews, { kind: "at_work" }>): PageNews[] {
    const isNew = JSON.stringify(news) !== JSON.stringify(this.#atWork);
    this.#atWork = news;
    if (isNew) this.#changes++;
    return isNew ? [news] : [];
  }
}

function areSame(one: HistoryPoint | undefined, other: HistoryPoint | undefined): boolean {
  return JSON.stringify({ ...one, at_ms: 0 }) === JSON.stringify({ ...other, at_ms: 0 });
}

/** The last texts, of which none is new. */
class RecentTexts {
  readonly #max: number;
  readonly #texts = new Set<string>();

  constructor(max: number) {
    this.#max = max;
  }

  isNew(text: string): boolean {
    if (this.#texts.has(text)) return false;
    this.#texts.add(text);
    const [oldest] = this.#texts;
    if (this.#texts.size > this.#max && oldest !== undefined) this.#texts.delete(oldest);
    return true;
  }
}
