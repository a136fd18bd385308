// A file in which each execution leaves a line before it does anything: the witness of tests that nothing ran twice, and
// independent of what the ledger says. Any number of workers append to one file.
//
// Keeps true: a line is one write to a file opened with O_APPEND, so that lines of several processes never mix.
import { closeSync, openSync, writeSync } from "node:fs";
import { failure } from "../../../base/errors.ts";
import type { WorkerId } from "../../../base/ids.ts";
import { systemReason } from "../../../base/system-reason.ts";

export interface ExecutionJournal {
  /** Returns when the line has been handed to the system: it outlives this process, if not this machine. */
  record(itemId: Uint8Array, attempt: number): void;
  close(): void;
}

/** Lines are `<item id in hex> <attempt> <worker id> <pid>`. Throws file_unwritable. */
export function openExecutionJournal(file: string, workerId: WorkerId): ExecutionJournal {
  const fd = open(file);
  const author = `${workerId} ${process.pid}`;
  return {
    record: (itemId, attempt) => {
      const bytes = Buffer.from(itemId.buffer, itemId.byteOffset, itemId.byteLength);
      writeSync(fd, `${bytes.toString("hex")} ${attempt} ${author}\n`);
    },
    close: () => closeSync(fd),
  };
}

function open(file: string): number {
  try {
    return openSync(file, "a", 0o600);
  } catch (error) {
    throw failure("file_unwritable", { file, reason: systemReason(error) }, error);
  }
}
