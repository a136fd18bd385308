// How backends word the trouble that they have, for beats, where people read it: short, and with how long it has lasted.

/** What loads for less is not worth a word: most of it is over before anybody has read of it. */
const NOTICED_MS = 1_000;

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
}

/** Of processes that load something before they take items. */
export function loadingWords({ sinceMs, ready, all }: Loading, nowMs: number): string | undefined {
  if (sinceMs === undefined || nowMs - sinceMs < NOTICED_MS) return undefined;
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
