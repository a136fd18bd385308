// The place of partition checkpoints that all workers of a simulated cluster share. It loses what it has taken, tears it, gives what stood there
// before, refuses, and takes its time: a checkpoint is a cache, so none of that may show.
import type { CheckpointStore } from "../../src/worker/partitions/checkpoint-store.ts";
import type { SimProcess } from "./process.ts";
import { between, happens } from "./world.ts";

const DELAY_MAX_MS = 50;
const SLOW_MAX_MS = 3_000;

/** All that was ever written under a name, the last one first. */
type Files = Map<string, readonly Uint8Array[]>;

export class SimCheckpoints {
  readonly #files: Files = new Map();

  /** As one process has it: with the process its readings and writings end. */
  of(process: SimProcess): CheckpointStore {
    const { random } = process;
    const files = this.#files;
    const later = <Result>(act: () => Result): Promise<Result> => {
      const { promise, resolve, reject } = Promise.withResolvers<Result>();
      const delayMs = happens(random, 0.05)
        ? between(random, 0, SLOW_MAX_MS)
        : between(random, 0, DELAY_MAX_MS);
      process.after(delayMs, () => {
        if (happens(random, 0.05)) reject(new Error("injected"));
        else resolve(act());
      });
      return promise;
    };
    return {
      name: "sim",
      read: (place) =>
        later(() => {
          const all = files.get(place) ?? [];
          const found = happens(random, 0.1) ? all.at(1) : all.at(0);
          if (found === undefined || happens(random, 0.05)) return undefined;
          return happens(random, 0.1) ? found.subarray(0, Math.floor(random.unit() * found.length)) : found;
        }),
      write: (place, bytes) =>
        later(() => {
          if (!happens(random, 0.1)) files.set(place, [bytes, ...(files.get(place) ?? [])].slice(0, 3));
        }),
    };
  }
}
