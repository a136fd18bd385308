// Numbers, ages, spans and moments as people read them.
import { isoTime } from "../../base/clock.ts";

/** 1234567 is "1,234,567". */
export function number(value: number): string {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/** "1 item", "1,234 items" */
export function counted(count: number, one: string, several = `${one}s`): string {
  return `${number(count)} ${count === 1 ? one : several}`;
}

const STEPS = [
  { unit: "d", ms: 86_400_000 },
  { unit: "h", ms: 3_600_000 },
  { unit: "m", ms: 60_000 },
  { unit: "s", ms: 1_000 },
] as const;

/** "3s ago", "2h ago"; "now" below a second. One unit: the next smaller one tells a person nothing. */
export function renderAge(ageMs: number): string {
  const step = STEPS.find(({ ms }) => ageMs >= ms);
  return step === undefined ? "now" : `${Math.floor(ageMs / step.ms)}${step.unit} ago`;
}

/** "45s", "1m 05s", "2h 10m", "3d 4h": two units at most. */
export function durationText(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1_000));
  const [minutes, hours, days] = [
    Math.floor(seconds / 60),
    Math.floor(seconds / 3_600),
    Math.floor(seconds / 86_400),
  ];
  const two = (value: number): string => String(value).padStart(2, "0");
  if (minutes === 0) return `${seconds}s`;
  if (hours === 0) return `${minutes}m ${two(seconds % 60)}s`;
  if (days === 0) return `${hours}h ${two(minutes % 60)}m`;
  return `${days}d ${hours % 24}h`;
}

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
