// Words of backends for the trouble that they have, in beats, where people read them: short, and with how long it has lasted.

/** Loading is no trouble before it has taken so much of the time that it may take. */
const NEAR_TIMEOUT = 0.75;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;

/** "for 40 s", "for 5 min", "for 3 h". */
export function forHowLong(durationMs: number): string {
  if (durationMs < 2 * MINUTE_MS) return `for ${Math.floor(durationMs / 1_000)} s`;
  if (durationMs < 2 * HOUR_MS) return `for ${Math.floor(durationMs / MINUTE_MS)} min`;
  return `for ${Math.floor(durationMs / HOUR_MS)} h`;
}

export interface Loading {
  /** Since when the first of those that load does; undefined when none does. */
  readonly sinceMs: number | undefined;
  readonly ready: number;
  readonly all: number;
  /** How long it may take. */
  readonly timeoutMs: number;
}

/** Whether what has been loading since then may soon have taken too long. */
export function isNearTimeout(sinceMs: number, timeoutMs: number, nowMs: number): boolean {
  return nowMs - sinceMs >= NEAR_TIMEOUT * timeoutMs;
}

/** The words for processes that load something before they take items; undefined while that is no trouble. */
export function loadingWords({ sinceMs, ready, all, timeoutMs }: Loading, nowMs: number): string | undefined {
  if (sinceMs === undefined || !isNearTimeout(sinceMs, timeoutMs, nowMs)) return undefined;
  const others = ready === 0 ? "" : ` (${ready} of ${all} processes are ready)`;
  return `loading, ${forHowLong(nowMs - sinceMs)}${others}`;
}

/** In at most `maxBytes` of UTF-8. */
export function shortened(words: string, maxBytes: number): string {
  if (Buffer.byteLength(words) <= maxBytes) return words.toWellFormed();
  const mark = "…";
  const room = maxBytes - Buffer.byteLength(mark);
  let text = "";
  let bytes = 0;
  for (const character of words.toWellFormed()) {
    bytes += Buffer.byteLength(character);
    if (bytes > room) break;
    text += character;
  }
  return text + mark;
}
