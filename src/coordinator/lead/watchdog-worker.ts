// The watchdog as a thread of this process. It costs nothing while all is well: it sleeps until a deadline is set or met.
import { once } from "node:events";
import { Worker } from "node:worker_threads";
import type { Epoch, RunId } from "../../base/ids.ts";
import { ownFile } from "../../base/own-file.ts";
import { guardCells, newWatchCells, releaseCells, takeLastWord } from "./watchdog.ts";
import type { WatchCells, Watchdog } from "./watchdog.ts";

/** The thread's data. */
export interface WatchdogData {
  readonly cells: WatchCells;
  readonly runId: RunId;
  /** Where events go. */
  readonly fd: number;
}

const THREAD = ownFile("src/coordinator/lead/watchdog-thread");

export class WatchdogWorker implements Watchdog {
  readonly #cells: WatchCells;
  readonly #worker: Worker;

  private constructor(cells: WatchCells, worker: Worker) {
    this.#cells = cells;
    this.#worker = worker;
  }

  /** Watches when it resolves. It does not keep the process alive. Rejects when the thread cannot be started. */
  static async start({ runId, fd }: Omit<WatchdogData, "cells">): Promise<WatchdogWorker> {
    const cells = newWatchCells();
    const worker = new Worker(THREAD, { workerData: { cells, runId, fd } satisfies WatchdogData });
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
