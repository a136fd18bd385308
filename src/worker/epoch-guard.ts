// A worker obeys no leader older than one it has met. What it has met is on its disk, so that a restart does not forget;
// epochs are counted per store, so those of another store say nothing.
import type { Epoch, StoreId } from "../base/ids.ts";
import { epoch, parseUlidBytes } from "../base/ids.ts";
import type { CoordinatorEnvelope } from "../gen/rollout/v1/common_pb.ts";
import type { SeenEpoch } from "./own-record.ts";

export type Admission =
  | {
      readonly kind: "admitted";
      /** Whether there is something new in `seen`: to be written down. */
      readonly risen: boolean;
    }
  /** The message is not acted on; the sender is told the epoch that was seen. */
  | { readonly kind: "refused"; readonly reason: string };

/** Stores that are remembered; a worker meets more than one only when a run's database was replaced. */
const STORES_MAX = 8;

export class EpochGuard {
  #seen: readonly SeenEpoch[];

  constructor(seen: readonly SeenEpoch[]) {
    this.#seen = seen;
  }

  /** Latest store first. */
  get seen(): readonly SeenEpoch[] {
    return this.#seen;
  }

  admit(envelope: CoordinatorEnvelope | undefined): Admission {
    const storeId = parseUlidBytes<StoreId>(envelope?.storeId ?? new Uint8Array());
    if (envelope?.coordEpoch === undefined || storeId === undefined)
      return { kind: "refused", reason: "the message names no epoch" };
    if (envelope.coordEpoch > BigInt(Number.MAX_SAFE_INTEGER))
      return { kind: "refused", reason: "the epoch is out of range" };
    return this.#compare(storeId, epoch(Number(envelope.coordEpoch)));
  }

  #compare(storeId: StoreId, found: Epoch): Admission {
    const known = this.#seen.find((entry) => entry.storeId === storeId);
    if (known !== undefined && found < known.epoch)
      return { kind: "refused", reason: `epoch ${found} is lower than ${known.epoch}, which was seen` };
    if (known?.epoch === found && this.#seen[0] === known) return { kind: "admitted", risen: false };
    const others = this.#seen.filter((entry) => entry !== known).slice(0, STORES_MAX - 1);
    this.#seen = [{ storeId, epoch: found }, ...others];
    return { kind: "admitted", risen: true };
  }
}
