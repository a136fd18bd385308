// The cluster as far as the page knows it: news go in, and everything that is shown is read from here. No DOM, no clock.
//
// Keeps true: whatever is told, it stays bounded; after a break it is what was told since.
import type {
  Hello,
  HistoryPoint,
  ItemAtWork,
  PageNews,
  ReleaseNow,
  ReleasePoint,
  RunNumbers,
  Step,
  TimelineEvent,
  WorkerRow,
} from "../../page-messages.ts";
import type { Move } from "./playback.ts";
import { KnownPrograms } from "./programs.ts";
import { stateByRow } from "./row-states.ts";

export type Topic =
  | "hello"
  | "link"
  | "status"
  | "workers"
  | "steps"
  | "history"
  | "items"
  | "events"
  | "release"
  | "programs";

/** @internal */
export const STEPS_KEPT = 2_000;
const EVENTS_KEPT = 500;
const SLACK = 250;
/** A row that is so much younger than the last step of its actor is believed: the step that led there was missed. */
const STEP_IS_OLD_MS = 4_000;

export interface Link {
  readonly connected: boolean;
  readonly since_ms: number;
  readonly reason: string | null;
}

export class Cluster {
  hello: Hello | undefined;
  link: Link | undefined;
  status: RunNumbers | undefined;
  readonly workers = new Map<string, WorkerRow>();
  history: { readonly intervalMs: number; readonly points: readonly HistoryPoint[] } = {
    intervalMs: 1_000,
    points: [],
  };
  atWork: readonly ItemAtWork[] = [];
  readonly steps: Step[] = [];
  /** How many were missed. */
  dropped = 0;
  readonly events: TimelineEvent[] = [];
  /** Undefined where there is none. The server of the page bounds the points. */
  release: { readonly now: ReleaseNow; readonly points: readonly ReleasePoint[] } | undefined;
  readonly programs = new KnownPrograms();
  /** By chart and actor: the last step, and when it was heard. */
  readonly #last = new Map<string, { readonly step: Step; readonly heardMs: number }>();
  readonly #rowsHeardMs = new Map<string, number>();
  #statusHeardMs = -Infinity;

  /** `nowMs`: when it was heard, on any clock that does not go back. Returns what it is about. */
  take(news: PageNews, nowMs: number): Topic {
    switch (news.kind) {
      case "hello":
        this.#begin(news);
        return "hello";
      case "link":
        this.link = news;
        return "link";
      case "status":
        this.status = news.status;
        this.#statusHeardMs = nowMs;
        return "status";
      case "workers":
        if (news.anew) this.#forgetWorkers();
        for (const row of news.changed) {
          this.workers.set(row.worker_id, row);
          this.#rowsHeardMs.set(row.worker_id, nowMs);
        }
        for (const id of news.gone) this.workers.delete(id);
        return "workers";
      case "steps":
        this.#takeSteps(news.steps, news.dropped, nowMs);
        return "steps";
      case "history":
        this.#takeHistory(
          news.interval_ms,
          news.anew ? news.points : [...this.history.points, ...news.points],
        );
        return "history";
      case "at_work":
        this.atWork = news.items;
        return "items";
      case "release":
        this.release = released(news, this.release?.points ?? []);
        return "release";
      case "events":
        this.events.push(...news.events);
        if (this.events.length > EVENTS_KEPT + SLACK) this.events.splice(0, this.events.length - EVENTS_KEPT);
        return "events";
      default:
        this.programs.take(news);
        return "programs";
    }
  }

  /** The name of the state that an actor is in; null when nothing was heard of it. */
  stateOf(chart: string, actor: string): string | null {
    const last = this.#last.get(nameOf(chart, actor));
    const row = stateByRow(this, chart, actor);
    if (last === undefined || row === null) return last?.step.to ?? row;
    const heardMs = (chart === "run" ? this.#statusHeardMs : this.#rowsHeardMs.get(actor)) ?? -Infinity;
    const isMissed = heardMs > last.heardMs + STEP_IS_OLD_MS && !last.step.to.startsWith(row);
    return isMissed ? row : last.step.to;
  }

  /** How long ago a worker's row was told. Ages and times left go on by themselves since then. */
  rowAgeMs(workerId: string, nowMs: number): number {
    return Math.max(0, nowMs - (this.#rowsHeardMs.get(workerId) ?? nowMs));
  }

  /** Oldest first. */
  movesOf(chart: string, actor: string): readonly Move[] {
    return this.steps
      .filter((step) => step.chart === chart && step.actor === actor)
      .map(({ number, at_ms, event, from, to }) => ({
        ...{ number, atMs: at_ms, event, cause: event, from, to, detail: "", isMove: true },
      }));
  }

  #begin(hello: Hello): void {
    const isOther = hello.run?.run_id !== this.hello?.run?.run_id;
    this.hello = hello;
    // Steps are counted by the program that serves the page, and it may be another one now.
    this.steps.length = 0;
    this.events.length = 0;
    this.#last.clear();
    this.programs.clear();
    this.release = undefined;
    this.dropped = 0;
    if (!isOther) return;
    this.status = undefined;
    this.#forgetWorkers();
    this.history = { intervalMs: 1_000, points: [] };
    this.atWork = [];
  }

  #forgetWorkers(): void {
    this.workers.clear();
    this.#rowsHeardMs.clear();
  }

  #takeSteps(steps: readonly Step[], dropped: number, heardMs: number): void {
    const known = this.steps.at(-1)?.number ?? -Infinity;
    for (const step of steps) {
      if (step.number <= known) continue;
      this.steps.push(step);
      const name = nameOf(step.chart, step.actor);
      // The latest stand last, so that the first ones can be forgotten.
      this.#last.delete(name);
      this.#last.set(name, { step, heardMs });
    }
    this.dropped += dropped;
    if (this.steps.length > STEPS_KEPT + SLACK) this.steps.splice(0, this.steps.length - STEPS_KEPT);
    if (this.#last.size <= 4 * STEPS_KEPT) return;
    for (const name of [...this.#last.keys()].slice(0, STEPS_KEPT)) this.#last.delete(name);
  }

  #takeHistory(intervalMs: number, points: readonly HistoryPoint[]): void {
    const since = new Map(points.map((point) => [point.at_ms, point]));
    this.history = {
      intervalMs,
      points: [...since.values()].toSorted((one, other) => one.at_ms - other.at_ms),
    };
  }
}

function released(
  { release, anew, points }: Extract<PageNews, { kind: "release" }>,
  before: readonly ReleasePoint[],
): Cluster["release"] {
  return release === null ? undefined : { now: release, points: anew ? points : [...before, ...points] };
}

function nameOf(chart: string, actor: string): string {
  return `${chart}/${actor}`;
}
