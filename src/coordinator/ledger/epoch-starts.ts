// Where in the order of submission each leadership began: an item that came in under a leadership was given out by no earlier one.
// The row is written with the first change of the ledger under a leadership, so it is there before any item of it; a leadership
// under which nothing came in needs none.
import type { RecordType } from "../../storage/codec.ts";
import { encodeRecord } from "../../storage/codec.ts";
import { EPOCH_STARTS_KEY, RECORD_KIND } from "../../storage/keys.ts";
import type { Entry } from "../../storage/store.ts";

export interface EpochStart {
  readonly epoch: number;
  /** Sequence of the first item that may come in under it. */
  readonly sequence: number;
}

/** So many leaderships are remembered, the last ones; of older ones the first that is known speaks, which excludes less. */
const REMEMBERED_MAX = 64;

export const epochStartsRecord: RecordType<readonly EpochStart[]> = {
  kind: RECORD_KIND.epochStarts,
  name: "epoch starts",
  encode: (starts) => [starts.map(({ epoch, sequence }) => [epoch, sequence])],
  decode: (fields) =>
    fields.tuples(0).map((start) => ({ epoch: start.integer(0), sequence: start.integer(1) })),
};

export class EpochStarts {
  /** In order. */
  readonly #starts: readonly EpochStart[];
  #isWritten: boolean;

  /** `stored`: what earlier leaders have left; `current`: this one's. */
  constructor(stored: readonly EpochStart[], current: EpochStart) {
    this.#isWritten = stored.some(({ epoch }) => epoch === current.epoch);
    this.#starts = this.#isWritten ? stored : [...stored, current].slice(-REMEMBERED_MAX);
  }

  /** The first sequence that nobody can have been given under `epoch`; undefined under the leadership of now. */
  endOf(epoch: number): number | undefined {
    return this.#starts.find((start) => start.epoch > epoch)?.sequence;
  }

  /** The row that has to be in the store before an item of this leadership, unless it is. To be called once it is in a batch. */
  takeUnwritten(): Entry | undefined {
    if (this.#isWritten) return undefined;
    this.#isWritten = true;
    return {
      key: EPOCH_STARTS_KEY,
      value: encodeRecord(epochStartsRecord, EPOCH_STARTS_KEY, this.#starts),
    };
  }
}
