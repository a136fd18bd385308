// Ends a leader whose main thread does not come to it. A leader's own deadline is checked wherever it acts, by the main
// thread; a main thread in a busy loop checks nothing, so a second thread looks at the same deadline and aborts the process.
//
// Keeps true: the main thread gets a moment to go by itself, and only one of the two says `coordinator_fenced`: whoever
// takes the last word first. The two share three numbers and nothing else.
import type { Epoch } from "../../base/ids.ts";

/** The port by which a leader is watched. */
export interface Watchdog {
  /** The leader of `epoch` is good until `deadlineMs`, monotonic; replaces what was said before. */
  guard(epoch: Epoch, deadlineMs: number): void;
  /** It leads no more, of its own will. */
  release(): void;
}

/** The cells that the threads share. Times are whole milliseconds of the monotonic clock, which is one for all threads. */
export type WatchCells = BigInt64Array<SharedArrayBuffer>;

const CELL = { deadlineMs: 0, epoch: 1, lastWord: 2 } as const;
const CELLS = Object.keys(CELL).length;

/** The deadline of who does not lead. */
const UNGUARDED = 0n;

export function newWatchCells(): WatchCells {
  return new BigInt64Array(new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT));
}

export function guardCells(cells: WatchCells, epoch: Epoch, deadlineMs: number): void {
  Atomics.store(cells, CELL.epoch, BigInt(epoch));
  Atomics.store(cells, CELL.deadlineMs, BigInt(Math.ceil(deadlineMs)));
  Atomics.notify(cells, CELL.deadlineMs);
}

export function releaseCells(cells: WatchCells): void {
  Atomics.store(cells, CELL.deadlineMs, UNGUARDED);
  Atomics.notify(cells, CELL.deadlineMs);
}

/** True for the first who asks, on whichever thread: it says the last word of the process. */
export function takeLastWord(cells: WatchCells): boolean {
  const isFirst = Atomics.compareExchange(cells, CELL.lastWord, 0n, 1n) === 0n;
  Atomics.notify(cells, CELL.lastWord);
  return isFirst;
}

export interface WatchPorts {
  readonly nowMs: () => number;
  /** Stops the thread while the cell holds `value`, for so long at most. */
  readonly waitWhile: (cells: WatchCells, at: number, value: bigint, forMs: number) => void;
  /** Says that the leader of this epoch is fenced. */
  readonly speak: (epoch: number) => void;
  /** Ends the process. */
  readonly abort: () => void;
}

/** How long the main thread may take to go by itself. With the deadline this stays under 5 s. */
const GRACE_MS = 500;
/** How long it may take to say its last word: longer than a full pipe is tried. */
const LAST_WORD_MS = 1_500;

/** Watches for as long as the process lives. Blocks its thread. */
export function watch(cells: WatchCells, ports: WatchPorts): void {
  const { nowMs, waitWhile, speak, abort } = ports;
  for (;;) {
    const deadlineMs = Atomics.load(cells, CELL.deadlineMs);
    const leftMs = deadlineMs === UNGUARDED ? Infinity : Number(deadlineMs) - nowMs();
    if (leftMs > 0) {
      waitWhile(cells, CELL.deadlineMs, deadlineMs, leftMs);
      continue;
    }
    // Counted from now: a process that was stopped has only just come back.
    waitWhile(cells, CELL.lastWord, 0n, GRACE_MS);
    // It has stopped in good order meanwhile, or had just been about to say that it renewed in time.
    if (Atomics.load(cells, CELL.deadlineMs) !== deadlineMs) continue;
    if (takeLastWord(cells)) speak(Number(Atomics.load(cells, CELL.epoch)));
    else waitWhile(cells, CELL.lastWord, 1n, LAST_WORD_MS);
    return abort();
  }
}
