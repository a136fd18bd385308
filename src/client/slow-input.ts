// An input that keeps its reader waiting: a pipe into which nobody writes, or a terminal. That is said once; it looks like work otherwise.
import type { Clock } from "../base/clock.ts";

const SAY_AFTER_MS = 1_000;

/** The same chunks. `say` is called once, as soon as one of them was waited for so long. */
export async function* announced<Chunk>(
  chunks: AsyncIterable<Chunk>,
  clock: Clock,
  say: () => void,
): AsyncGenerator<Chunk> {
  let isSaid = false;
  const arm = (): { cancel: () => void } | undefined =>
    isSaid
      ? undefined
      : clock.after(SAY_AFTER_MS, () => {
          isSaid = true;
          say();
        });
  let timer = arm();
  try {
    for await (const chunk of chunks) {
      timer?.cancel();
      yield chunk;
      timer = arm();
    }
  } finally {
    timer?.cancel();
  }
}
