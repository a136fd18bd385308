// A worker obeys no leader older than one it has met. An epoch that it has met is on its disk before the message that told of it is
// obeyed, so that no restart forgets; epochs are counted per store, so those of another store say nothing.
import type { Epoch, StoreId } from "../../base/ids.ts";
import { epoch, parseUlidBytes } from "../../base/ids.ts";
import type { CoordinatorEnvelope } from "../../gen/rollout/v1/common_pb.ts";

/** The highest epoch that was met of one store. */
export interface SeenEpoch {
  readonly storeId: StoreId;
  readonly epoch: Epoch;
}

export type Admission =
  | { readonly kind: "admitted" }
  /** The message is not acted on; the sender is told the epoch that was seen. */
  | { readonly kind: "refused"; readonly reason: string };

/** Stores that are remembered; a worker meets more than one only when a run's database was replaced. */
const STORES_MAX = 8;

export class EpochGuard {
  readonly #keep: (seen: readonly SeenEpoch[]) => Promise<void>;
  #seen: readonly SeenEpoch[];
  /** The epoch that is on its way to the disk. */
  #keeping: Promise<void> | undefined;

  /** `keep` resolves when what was seen is on disk. */
  constructor(seen: readonly SeenEpoch[], keep: (seen: readonly SeenEpoch[]) => Promise<void>) {
    this.#seen = seen;
    this.#keep = keep;
  }

  /** Latest store first. */
  get seen(): readonly SeenEpoch[] {
    return this.#seen;
  }

  /** Resolves when the epoch of an admitted message is on disk. Rejects with what `keep` rejects with. */
  async admit(envelope: CoordinatorEnvelope | undefined): Promise<Admission> {
    const storeId = parseUlidBytes<StoreId>(envelope?.storeId ?? new Uint8Array());
    if (envelope?.coordEpoch === undefined || storeId === undefined)
      return { kind: "refused", reason: "the message names no epoch" };
    if (envelope.coordEpoch > BigInt(Number.MAX_SAFE_INTEGER))
      return { kind: "refused", reason: "the epoch is out of range" };
    // A message of another stream may be telling of a leader at this moment: it is judged by what is then known.
    while (this.#keeping !== undefined) await this.#keeping;
    return this.#compare(storeId, epoch(Number(envelope.coordEpoch)));
  }

  async #compare(storeId: StoreId, found: Epoch): Promise<Admission> {
    const known = this.#seen.find((entry) => entry.storeId === storeId);
    if (known !== undefined && found < known.epoch)
      return { kind: "refused", reason: `epoch ${found} is lower than ${known.epoch}, which was seen` };
    if (known?.epoch === found && this.#seen[0] === known) return { kind: "admitted" };
    const others = this.#seen.filter((entry) => entry !== known).slice(0, STORES_MAX - 1);
    this.#keeping = this.#learn([{ storeId, epoch: found }, ...others]);
    await this.#keeping;
    return { kind: "admitted" };
  }

  async #learn(seen: readonly SeenEpoch[]): Promise<void> {
    try {
      await this.#keep(seen);
      this.#seen = seen;
    } finally {
      this.#keeping = undefined;
    }
  }
}
