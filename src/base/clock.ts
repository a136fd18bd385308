// Time, injected. The only file of the product that reads a clock or arms a timer; the lint bans both
// elsewhere, so that the same code runs on a virtual clock in a simulation.
//
// Decisions use `monotonicMs` only. `wallMs` is for what a person reads and for certificates: it may jump.

export interface Timer {
  /** Idempotent. After it returns, the callback does not run. */
  cancel(): void;
}

export interface Clock {
  /** Milliseconds from an arbitrary origin; never goes back, does not follow the wall clock. One for all threads. */
  monotonicMs(): number;
  /** Milliseconds since 1970. Never compare it with another machine's. */
  wallMs(): number;
  /** Runs `callback` once, not before `delayMs` have passed. Holds the process alive unless `background`. */
  after(delayMs: number, callback: () => void, options?: { background?: boolean }): Timer;
  /** Runs `callback` on a later turn of the loop, after what has already arrived on sockets was read. */
  nextTurn(callback: () => void): void;
}

/** Node clamps longer timers to 1 ms, which turns "in a month" into "now". */
const TIMER_MAX_MS = 2 ** 31 - 1;

export const systemClock: Clock = {
  // `performance.now()` counts from the start of each thread.
  monotonicMs: () => Number(process.hrtime.bigint()) / 1e6,
  wallMs: () => Date.now(),
  after(delayMs, callback, options) {
    let handle: NodeJS.Timeout;
    const arm = (leftMs: number): void => {
      const stepMs = Math.min(Math.max(leftMs, 0), TIMER_MAX_MS);
      handle = setTimeout(() => (leftMs > stepMs ? arm(leftMs - stepMs) : callback()), stepMs);
      if (options?.background === true) handle.unref();
    };
    arm(delayMs);
    return { cancel: () => clearTimeout(handle) };
  },
  nextTurn: (callback) => void setImmediate(callback),
};

/** Resolves after `delayMs`, or at once when `signal` aborts: a wait that is cut short is not an error. */
export function sleep(clock: Clock, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const finish = (): void => {
      timer.cancel();
      signal?.removeEventListener("abort", finish);
      resolve();
    };
    const timer = clock.after(delayMs, finish);
    signal?.addEventListener("abort", finish);
  });
}

/** Whether `work` is done within so long. When it is not it goes on, and nobody waits for it any more. Rejects as `work` does. */
export function isDoneWithin(clock: Clock, limitMs: number, work: Promise<unknown>): Promise<boolean> {
  return new Promise((resolve, reject) => {
    const timer = clock.after(limitMs, () => resolve(false));
    void work.then(() => resolve(true), reject).finally(() => timer.cancel());
  });
}

/** Resolves as `work` does, or with undefined when the signal aborts first. */
export function unlessAborted<Result>(
  signal: AbortSignal,
  work: Promise<Result>,
): Promise<Result | undefined> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => resolve(undefined);
    if (signal.aborted) return giveUp();
    signal.addEventListener("abort", giveUp);
    void work.then(resolve, reject).finally(() => signal.removeEventListener("abort", giveUp));
  });
}

/** Stops the whole thread for `durationMs`, loop and timers included. Only for the last words of a process. */
export function blockThread(durationMs: number): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, durationMs);
}

/**
 * Stops the whole thread while `cells[at]` is `value`, for `forMs` at most, which may be Infinity. A change of the cell
 * has to be notified. For threads that do nothing but wait.
 */
export function blockThreadWhile(
  cells: BigInt64Array<SharedArrayBuffer>,
  at: number,
  value: bigint,
  forMs: number,
): void {
  Atomics.wait(cells, at, value, forMs);
}

/**
 * The same moment as a `Date`, for interfaces that want one (the certificate library).
 * @internal
 */
export function calendarDate(wallMs: number): Date {
  return new Date(wallMs);
}

/** ISO 8601 in UTC, for logs and events. */
export function isoTime(wallMs: number): string {
  const ms = Math.trunc(wallMs);
  const second = Math.floor(ms / 1_000);
  // Many times that are written one after the other are of one second, and its calendar is most of the work.
  if (second !== lastSecond) [lastSecond, lastText] = [second, new Date(wallMs).toISOString().slice(0, -4)];
  return `${lastText}${String(ms - second * 1_000).padStart(3, "0")}Z`;
}

let lastSecond = NaN;
let lastText = "";
