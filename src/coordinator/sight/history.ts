// The course of a run since its coordinator began to lead, also while nobody looks: a bounded number of points at equal distances. When
// there are too many, every other one is forgotten and the distance doubles, so that the whole course stays there.
import type { HistoryPoint } from "../../gen/rollout/v1/run_pb.ts";
import { countWorkers } from "../run/run-status.ts";
import type { Filled } from "../turn/operator-message.ts";
import type { CoordinatorState } from "../turn/state.ts";

export type Point = Filled<HistoryPoint>;

const INTERVAL_MS = 1_000;
/** Twelve minutes by the second, a day by two minutes. */
const POINTS_MAX = 720;

export class History {
  #points: Point[] = [];
  #intervalMs = INTERVAL_MS;
  /** Monotonic; when the next point is due. */
  #dueMs = -Infinity;

  get intervalMs(): number {
    return this.#intervalMs;
  }

  /** Oldest first. */
  get points(): readonly Point[] {
    return this.#points;
  }

  isDue(nowMs: number): boolean {
    return nowMs >= this.#dueMs;
  }

  /** Whether points before it were forgotten. */
  add(nowMs: number, point: Point): boolean {
    this.#points.push(point);
    const isFull = this.#points.length >= POINTS_MAX;
    if (isFull) {
      // The latest one stays.
      this.#points = this.#points.filter((_, at) => at % 2 === 1);
      this.#intervalMs *= 2;
    }
    this.#dueMs = nowMs + this.#intervalMs;
    return isFull;
  }
}

export function pointOf(state: CoordinatorState, wallMs: number): Point {
  const { tally } = state.ledger;
  return {
    atMs: Math.round(wallMs),
    pending: tally.pending,
    delayed: tally.count("delayed"),
    running: tally.count("running"),
    done: tally.count("done"),
    failed: tally.count("failed"),
    workers: countWorkers(state).ready,
  };
}
