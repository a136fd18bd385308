// The settings of keys, as the reactor has them, and all else that their room is made with.
import { LIMITS } from "../../config/limits.ts";
import type { Entry } from "../../storage/store.ts";
import type { Ledger } from "../ledger/ledger.ts";
import type { AssignmentRecord } from "./assignment.ts";
import type { KeyNumbers } from "./key-records.ts";

export interface KeySettings {
  readonly totalPartitions: number;
  readonly virtualNodes: number;
  readonly maxKeysPerPartition: number;
  readonly spillAfterMs: number;
  /** Items that one mailbox may have when an actor sends it more. */
  readonly maxMail: number;
  /** Whether a key goes on behind an item that has failed for good. */
  readonly skipsFailed: boolean;
  /** How often workers are asked for checkpoints of their partitions; undefined: they are asked for none. */
  readonly checkpointIntervalMs?: number | undefined;
}

/** As the configuration has them. */
export const KEY_DEFAULTS: KeySettings = {
  totalPartitions: 128,
  virtualNodes: 128,
  maxKeysPerPartition: 2_000,
  spillAfterMs: 250,
  maxMail: LIMITS.mailbox,
  skipsFailed: false,
};

export interface KeysOptions {
  readonly settings: KeySettings;
  readonly shelves: Pick<Ledger, "shelf" | "alone">;
  /** Written with the first key: by it, programs that know of no keys refuse the store. */
  readonly stamp: Entry;
  /** As they are in the store; undefined while it has no key. */
  readonly numbers: KeyNumbers | undefined;
  /** The ring of the leader before; undefined when there never was one. */
  readonly assignment: AssignmentRecord | undefined;
  /** The first that no item has. */
  readonly nextSequence: () => number;
}
