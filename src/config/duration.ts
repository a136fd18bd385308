// Durations as people write them: a number and a unit (`"500ms"`, `"4s"`, `"2m"`, `"1h"`, `"30d"`).

const UNITS_MS = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1_000, ms: 1 };

/** A number of one of the units, in the smallest; undefined when the text is none, or finer than that. */
export function parseQuantity(text: string, units: Readonly<Record<string, number>>): number | undefined {
  const [, digits, unit = ""] = /^(\d{1,12}(?:\.\d{1,6})?)([A-Za-z]+)$/.exec(text) ?? [];
  const quantity = Number(digits) * (Object.hasOwn(units, unit) ? (units[unit] ?? NaN) : NaN);
  return Number.isSafeInteger(quantity) ? quantity : undefined;
}

/** Milliseconds; undefined when the text is no duration, or finer than a millisecond. */
export function parseDurationMs(text: string): number | undefined {
  return parseQuantity(text, UNITS_MS);
}

/** The shortest text that `parseDurationMs` reads back as the same. */
export function formatDuration(durationMs: number): string {
  for (const [unit, unitMs] of Object.entries(UNITS_MS)) {
    if (durationMs !== 0 && durationMs % unitMs === 0) return `${durationMs / unitMs}${unit}`;
  }
  return `${durationMs}ms`;
}
