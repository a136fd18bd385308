// Durations as people write them: a number and a unit (`"500ms"`, `"4s"`, `"2m"`, `"1h"`, `"30d"`).

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 } as const;

function isUnit(text: string | undefined): text is keyof typeof UNITS_MS {
  return text !== undefined && Object.hasOwn(UNITS_MS, text);
}

/** Milliseconds; undefined when the text is no duration, or finer than a millisecond. */
export function parseDurationMs(text: string): number | undefined {
  const match = /^(\d{1,12}(?:\.\d{1,6})?)([a-z]+)$/.exec(text);
  const unit = match?.[2];
  if (!isUnit(unit)) return undefined;
  const durationMs = Number(match?.[1]) * UNITS_MS[unit];
  return Number.isSafeInteger(durationMs) ? durationMs : undefined;
}

/** The shortest text that `parseDurationMs` reads back as the same. */
export function formatDuration(durationMs: number): string {
  for (const [unit, unitMs] of Object.entries(UNITS_MS)) {
    if (durationMs !== 0 && durationMs % unitMs === 0) return `${durationMs / unitMs}${unit}`;
  }
  return `${durationMs}ms`;
}
