// Ends a leader whose main thread does not come to it. A leader's own deadline is checked wherever it acts, by the main
// thread; a main thread in a busy loop checks nothing, so a second thread looks at the same deadline and aborts the process.
//
// Keeps true: the main thread gets a moment to go by itself, and only one of the two says `coordinator_fenced`: whoever
// takes the last word first. The two share three numbers and nothing else.
import type { Epoch, RunId } from "../../base/ids.ts";
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { ownFile } from "../../base/own-file.ts";
import { FENCE_PATIENCE } from "./fence-patience.ts";

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

/** @internal */
export function newWatchCells(): WatchCells {
  return new BigInt64Array(new SharedArrayBuffer(CELLS * BigInt64Array.BYTES_PER_ELEMENT));
}

/** @internal */
export function guardCells(cells: WatchCells, epoch: Epoch, deadlineMs: number): void {
  Atomics.store(cells, CELL.epoch, BigInt(epoch));
  Atomics.store(cells, CELL.deadlineMs, BigInt(Math.ceil(deadlineMs)));
  Atomics.notify(cells, CELL.deadlineMs);
}

/** @internal */
export function releaseCells(cells: WatchCells): void {
  Atomics.store(cells, CELL.deadlineMs, UNGUARDED);
  Atomics.notify(cells, CELL.deadlineMs);
}

/**
 * True for the first who asks, on whichever thread: it says the last word of the process.
 * @internal
 */
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

/** How long it may take to say its last word: longer than a full pipe is tried. */
const LAST_WORD_MS = 1_500;

/** Watches for as long as the process lives, and gives the main thread `graceMs` to go by itself. Blocks its thread. */
export function watch(cells: WatchCells, ports: WatchPorts, graceMs = FENCE_PATIENCE.wordMs): void {
  const { nowMs, waitWhile, speak, abort } = ports;
  for (;;) {
    const deadlineMs = Atomics.load(cells, CELL.deadlineMs);
    const leftMs = deadlineMs === UNGUARDED ? Infinity : Number(deadlineMs) - nowMs();
    if (leftMs > 0) {
      waitWhile(cells, CELL.deadlineMs, deadlineMs, leftMs);
      continue;
    }
    // Counted from now: a process that was stopped has only just come back.
    waitWhile(cells, CELL.lastWord, 0n, graceMs);
    // It has stopped in good order meanwhile, or had just been about to say that it renewed in time.
    if (Atomics.load(cells, CELL.deadlineMs) !== deadlineMs) continue;
    if (takeLastWord(cells)) speak(Number(Atomics.load(cells, CELL.epoch)));
    else waitWhile(cells, CELL.lastWord, 1n, LAST_WORD_MS);
    return abort();
  }
}

/** The thread's data. */
export interface WatchdogData {
  readonly cells: WatchCells;
  readonly runId: RunId;
  /** Where events go. */
  readonly fd: number;
  /** The time that the main thread has to go by itself. */
  readonly graceMs?: number;
}

const THREAD = ownFile("src/coordinator/lead/watchdog-thread");

/** The watchdog as a thread of this process. It costs nothing while all is well: it sleeps until a deadline is set or met. */
export class WatchdogWorker implements Watchdog {
  readonly #cells: WatchCells;
  readonly #worker: Worker;

  private constructor(cells: WatchCells, worker: Worker) {
    this.#cells = cells;
    this.#worker = worker;
  }

  /** Watches when it resolves. It does not keep the process alive. Rejects when the thread cannot be started. */
  static async start(data: Omit<WatchdogData, "cells">): Promise<WatchdogWorker> {
    const cells = newWatchCells();
    const worker = new Worker(THREAD, { workerData: { ...data, cells } satisfies WatchdogData });
    await once(worker, "message");
    worker.unref();
    return new WatchdogWorker(cells, worker);
  }

  guard(epoch: Epoch, deadlineMs: number): void {
    guardCells(this.#cells, epoch, deadlineMs);
  }

  release(): void {
    releaseCells(this.#cells);
  }

  /** False when the thread has taken it: then it is about to end the process. */
  takeLastWord(): boolean {
    return takeLastWord(this.#cells);
  }

  /** Ends the thread. */
  async close(): Promise<void> {
    await this.#worker.terminate();
  }
}
