// Moments and spans of time as explanations say them.
import { isoTime } from "../../base/clock.ts";
import { renderAge } from "./age.ts";
import { durationText } from "./progress.ts";

/** "12 ms", "3.4 s", "2m 05s". */
export function spanText(ms: number): string {
  if (ms < 1_000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1_000).toFixed(1)} s` : durationText(ms);
}

/** "2026-11-03T10:00:00.000Z, 3m ago" */
export function momentText(wallMs: number, nowMs: number): string {
  const age = nowMs - wallMs < 1_000 ? "just now" : renderAge(nowMs - wallMs);
  return `${isoTime(wallMs)}, ${age}`;
}
