// Checkpoints on their way to the store and back. The store may be full, slow or gone: that is said once, until it works again.
//
// Keeps true: a checkpoint that is read is the one that was meant, by run, name, partition and offset; a store that gives no answer is asked
// for one checkpoint at a time (C8).
import { isCheckpointPlace } from "../../base/partition.ts";
import { sleep } from "../../base/clock.ts";
import type { Clock } from "../../base/clock.ts";
import type { RunId } from "../../base/ids.ts";
import { systemReason } from "../../base/system-reason.ts";
import { formatDuration } from "../../config/duration.ts";
import type { Logger } from "../../observe/log.ts";
import { checkpointName, decodeCheckpoint, encodeCheckpoint } from "./checkpoint-record.ts";
import type { Checkpoint } from "./checkpoint-record.ts";
import type { CheckpointStore } from "./checkpoint-store.ts";

interface CheckpointsOptions {
  readonly runId: RunId;
  readonly store: CheckpointStore;
  readonly clock: Clock;
  readonly log: Logger;
}

/** A checkpoint has no more than a worker keeps in memory, and what each state costs beside its bytes. */
const BYTES_MAX = 128 * 1024 * 1024;
const READ_TIMEOUT_MS = 30_000;

export class Checkpoints {
  readonly #options: CheckpointsOptions;
  #isReading = false;
  #isTroubled = false;

  constructor(options: CheckpointsOptions) {
    this.#options = options;
  }

  /** `none`: it cannot be used, which was said. `silent`: the store cannot be read, and is not worth another try now. Never rejects. */
  async read(
    partition: number,
    { place, offset }: { readonly place: string; readonly offset: number },
  ): Promise<Checkpoint | "none" | "silent"> {
    const { runId, store, log } = this.#options;
    if (this.#isReading) return "silent";
    const unused = (reason: string): "none" => {
      const which = { partition, place, store: store.name, reason };
      log.warn("a checkpoint of a partition cannot be used: its states come from the coordinator", which);
      return "none";
    };
    if (!isCheckpointPlace(place, partition)) return unused("its place is no name of one");
    const name = checkpointName(runId, place);
    try {
      const bytes = await this.#readInTime(name);
      if (bytes === undefined) return unused("it is not there");
      const found = decodeCheckpoint(name, bytes, { partition, offset });
      return typeof found === "string" ? unused(found) : found;
    } catch (error) {
      this.#noteTrouble(error);
      return "silent";
    }
  }

  /** Whether it is there now. Never rejects. */
  async write(place: string, checkpoint: Checkpoint): Promise<boolean> {
    const { runId, store, log } = this.#options;
    const name = checkpointName(runId, place);
    try {
      await store.write(name, encodeCheckpoint(name, checkpoint));
      if (this.#isTroubled) log.info("checkpoints of partitions are written again", { store: store.name });
      this.#isTroubled = false;
      return true;
    } catch (error) {
      this.#noteTrouble(error);
      return false;
    }
  }

  async #readInTime(name: string): Promise<Uint8Array | undefined> {
    const { store, clock } = this.#options;
    this.#isReading = true;
    const reading = store.read(name, BYTES_MAX).finally(() => (this.#isReading = false));
    const waited = new AbortController();
    const late = sleep(clock, READ_TIMEOUT_MS, waited.signal).then(() => {
      if (!waited.signal.aborted)
        throw new Error(`it gives no answer for ${formatDuration(READ_TIMEOUT_MS)}`);
      return undefined;
    });
    return Promise.race([reading, late]).finally(() => waited.abort());
  }

  /** Once, until a checkpoint is written again. */
  #noteTrouble(error: unknown): void {
    const { store, log } = this.#options;
    const reason = systemReason(error);
    if (!this.#isTroubled)
      log.warn("checkpoints of partitions cannot be kept; the run goes on without them", {
        store: store.name,
        reason,
      });
    this.#isTroubled = true;
  }
}
