// Scales of a plot: round numbers on its axes, rates out of counts, and shapes as SVG paths.
import type { HistoryPoint } from "../../page-messages.ts";

const ROUND = [1, 2, 5, 10];
/** Distances between marks of time. */
const TIMES_MS = [
  1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200, 86_400,
].map((seconds) => seconds * 1_000);

/** From 0 to a round number that is not below `max`, in at most so many steps. Whole numbers only. */
export function countMarks(max: number, steps: number): readonly number[] {
  const least = Math.max(1, max / steps);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = (ROUND.find((round) => round * power >= least) ?? 10) * power;
  const count = Math.max(1, Math.ceil(max / step));
  return Array.from({ length: count + 1 }, (_, at) => at * step);
}

/** From a round number that is not above `low` to one that is not below `high`, in about so many steps. */
export function valueMarks(low: number, high: number, steps: number): readonly number[] {
  const least = Math.max((high - low) / steps, 1e-9);
  const power = 10 ** Math.floor(Math.log10(least));
  const step = (ROUND.find((round) => round * power >= least * (1 - 1e-9)) ?? 10) * power;
  const [first, last] = [Math.floor(low / step + 1e-9), Math.ceil(high / step - 1e-9)];
  return Array.from({ length: Math.max(1, last - first) + 1 }, (_, at) =>
    Number(((first + at) * step).toPrecision(12)),
  );
}

/** Round moments between two others, at most so many. `offsetMs`: of local time from UTC, so that midnight is the reader's. */
export function timeMarks(fromMs: number, toMs: number, marks: number, offsetMs = 0): readonly number[] {
  const least = (toMs - fromMs) / marks;
  const days = Math.ceil(least / 86_400_000) * 86_400_000;
  const step = TIMES_MS.find((distance) => distance >= least) ?? days;
  const first = Math.ceil((fromMs + offsetMs) / step) * step - offsetMs;
  const count = step > 0 && first <= toMs ? Math.floor((toMs - first) / step) + 1 : 0;
  return Array.from({ length: count }, (_, at) => first + at * step);
}

export interface RatePoint {
  readonly atMs: number;
  readonly perSecond: number;
}

/** Items that became final in each second, over a few points so that it is calm. A retry takes failures back: that is no rate below 0. */
export function ratesOf(points: readonly HistoryPoint[], over = 5): readonly RatePoint[] {
  return points.slice(1).map((point, before) => {
    const earlier = points[Math.max(0, before + 1 - over)] ?? point;
    const seconds = (point.at_ms - earlier.at_ms) / 1_000;
    const finished = point.done + point.failed - earlier.done - earlier.failed;
    return { atMs: point.at_ms, perSecond: seconds <= 0 ? 0 : Math.max(0, finished / seconds) };
  });
}

export const ITEM_STATES = ["done", "failed", "running", "delayed", "pending"] as const;
export type ItemState = (typeof ITEM_STATES)[number];

/** The height of each point up to and with this state. */
export function stackedUpTo(points: readonly HistoryPoint[], state: ItemState): readonly number[] {
  const counted = ITEM_STATES.slice(0, ITEM_STATES.indexOf(state) + 1);
  return points.map((point) => counted.reduce((sum, name) => sum + point[name], 0));
}

export interface Place {
  readonly x: number;
  readonly y: number;
}

export function linePath(places: readonly Place[]): string {
  return places.map(({ x, y }, at) => `${at === 0 ? "M" : "L"}${tenth(x)} ${tenth(y)}`).join("");
}

/** Between two lines over the same moments. */
export function areaPath(upper: readonly Place[], lower: readonly Place[]): string {
  if (upper.length === 0) return "";
  return `${linePath(upper)}${linePath(lower.toReversed()).replace("M", "L")}Z`;
}

/** The index of the value nearest to `wanted` in a list that grows; -1 in an empty one. */
export function nearest(values: readonly number[], wanted: number): number {
  const after = values.findIndex((value) => value >= wanted);
  if (after < 0) return values.length - 1;
  const before = after - 1;
  if (before < 0) return after;
  return wanted - (values[before] ?? 0) <= (values[after] ?? 0) - wanted ? before : after;
}

function tenth(value: number): number {
  return Math.round(value * 10) / 10;
}
