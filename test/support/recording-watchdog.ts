// A watchdog that bites nobody and remembers what it was told.
import type { Epoch } from "../../src/base/ids.ts";
import type { Watchdog } from "../../src/coordinator/lead/watchdog.ts";

export class RecordingWatchdog implements Watchdog {
  /** Until when it guards; undefined when it does not. */
  deadlineMs: number | undefined;
  epoch: Epoch | undefined;

  guard(epoch: Epoch, deadlineMs: number): void {
    this.epoch = epoch;
    this.deadlineMs = deadlineMs;
  }

  release(): void {
    this.deadlineMs = undefined;
  }
}
