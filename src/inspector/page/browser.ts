// Time and chance of the browser: no other file of the page asks for them.

export interface Waiting {
  /** Idempotent. */
  cancel(): void;
}

export const browserClock = {
  /** Never goes back. */
  monotonicMs: (): number => performance.now(),
  wallMs: (): number => Date.now(),
  after(delayMs: number, callback: () => void): Waiting {
    const handle = setTimeout(callback, delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  every(intervalMs: number, callback: () => void): void {
    setInterval(callback, intervalMs);
  },
};

/** Faster than this nobody reads. */
const READING_MS = 250;

/** The same work, at once when it is asked for seldom, and else as often as a person can read; the last time is never left out. */
export function readable(work: () => void): () => void {
  let doneMs = -Infinity;
  let waiting: Waiting | undefined;
  const run = (): void => {
    waiting = undefined;
    doneMs = browserClock.monotonicMs();
    work();
  };
  return () => {
    const restMs = doneMs + READING_MS - browserClock.monotonicMs();
    if (restMs <= 0 && waiting === undefined) run();
    else waiting ??= browserClock.after(Math.max(0, restMs), run);
  };
}

/** From 0 to 1. */
export function chance(): number {
  return Math.random();
}

const TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const SHORT_TIME = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });

/** `14:03:22` as the reader's clock shows it; with the day when it was not today. */
export function timeText(ms: number): string {
  const time = TIME.format(ms);
  const day = DAY.format(ms);
  return day === DAY.format(Date.now()) ? time : `${day}, ${time}`;
}

/** For an axis: `14:03`, or `14:03:20` where seconds tell marks apart. */
export function markText(ms: number, isWithSeconds: boolean): string {
  return (isWithSeconds ? TIME : SHORT_TIME).format(ms);
}

/** From UTC to the reader's time, at that moment. */
export function localOffsetMs(ms: number): number {
  return -new Date(ms).getTimezoneOffset() * 60_000;
}
