// The door between the ledger and the room of releases: the ledger says how each attempt has ended that the room has marked, and
// asks which release is under way. The room says what becomes of a release, and never of an item.
import type { Measure } from "../../base/measure.ts";
import type { AttemptClass } from "./attempt-records.ts";

export interface TrialRoom {
  /** The release that is not over; empty: there is none. */
  readonly underWay: string;
  ended(
    attempt: {
      /** The mark of the room; 0: it has none. */
      readonly ticket: number;
      /** The release whose candidate it was; empty: none's. */
      readonly trial: string;
      readonly worker: string;
    },
    end: {
      readonly class: AttemptClass | "success";
      /** A loss that its worker is counted for. */
      readonly isCounted: boolean;
      /** Undefined where no worker says so. */
      readonly durationMs: number | undefined;
      readonly measures: readonly Measure[];
    },
  ): void;
}
