// The last words of a process: bytes that must have left before it is aborted. Blocks the whole process, so nothing
// but the fence event and a crash message goes this way.
import { writeSync } from "node:fs";
import { blockThread } from "../base/clock.ts";
import { errnoOf } from "../base/errors.ts";

const PAUSE_MS = 10;

/** How long a full pipe is tried again. Well under the 5 s in which a fenced leader has to be gone. */
const PATIENCE_MS = 1_000;

/** Writes all of `text` to `fd`. False when the reader has gone, or has read nothing for a second. Never throws. */
export function writeAllSync(fd: number, text: string): boolean {
  const bytes = Buffer.from(text);
  let triesLeft = PATIENCE_MS / PAUSE_MS;
  let at = 0;
  while (at < bytes.length) {
    try {
      at += writeSync(fd, bytes, at);
    } catch (error) {
      const errno = errnoOf(error);
      if (errno === "EINTR") continue;
      // A pipe that Node has made non-blocking says EAGAIN while it is full.
      if (errno !== "EAGAIN" || triesLeft === 0) return false;
      triesLeft--;
      blockThread(PAUSE_MS);
    }
  }
  return true;
}
