// States of keys that a worker is to keep, read from the store: as many as go into a few frames.
import { STATES_PREFIX } from "../../storage/keys.ts";
import { recordOf } from "../../storage/records.ts";
import type { Store } from "../../storage/store.ts";
import { keyStateRecord } from "../keys/key-records.ts";
import type { GivenState, ReadStates, StatesReading } from "../turn/session-frame.ts";

const FRAME_BYTES_MAX = 512 * 1024;
/** Bytes after which no more are read at once. */
const READ_BYTES_MAX = 1024 * 1024;
/** Keys that are read at once: few, because each state may have 1 MiB. */
const STEP_FIRST = 4;
const STEP_MAX = 256;
/** A state in a frame, beside its bytes and its key. */
const STATE_OVERHEAD_BYTES = 16;

/** Says so of keys that have no state now. Throws store_corrupt, naming the row. */
export async function readStates(store: Store, reading: StatesReading): Promise<ReadStates> {
  const frames: GivenState[][] = [];
  let [count, step, bytes, frameBytes] = [0, STEP_FIRST, 0, Infinity];
  while (count < reading.keys.length && bytes < READ_BYTES_MAX) {
    const part = reading.keys.slice(count, count + step);
    const rows = part.map(({ path }) => `${STATES_PREFIX}${path}`);
    const values = await store.getMany(rows);
    for (const [at, { text: key }] of part.entries()) {
      const [value, row = ""] = [values[at], rows[at]];
      const found = value && recordOf(store, { key: row, value }, keyStateRecord);
      const size = STATE_OVERHEAD_BYTES + key.length + (found?.state.length ?? 0);
      if (frameBytes + size > FRAME_BYTES_MAX) {
        frames.push([]);
        frameBytes = 0;
      }
      frames.at(-1)?.push({ key, commit: found?.commit ?? 0, state: found?.state ?? null });
      frameBytes += size;
      bytes += size;
    }
    count += part.length;
    const fitting = Math.floor(((READ_BYTES_MAX - bytes) * count) / bytes);
    step = Math.max(1, Math.min(STEP_MAX, 4 * step, fitting));
  }
  return { reading, frames, count };
}
