// This machine: what it has, and whether a process may have as many files and sockets open as its role needs.
import { availableParallelism, totalmem } from "node:os";
import { openFilesLimit } from "../../base/process-table.ts";
import { demandFiles, filesOfCoordinator, filesOfWorker, workersWithin } from "../open-files.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";

/** Workers of a fleet that nobody takes for a large one. */
const WORKERS_USUAL = 100;
const OPEN_FILES = "open files";
const GIB = 2 ** 30;

/** `slots` as a worker of this machine would have them. */
export async function examineMachine(slots: number): Promise<readonly Finding[]> {
  const memory = `${(totalmem() / GIB).toFixed(1)} GiB of memory`;
  const machine = good(
    "machine",
    `Node ${process.versions.node}, ${availableParallelism()} cores, ${memory}`,
  );
  return [machine, ...(await examined(OPEN_FILES, () => examineOpenFiles(slots)))];
}

/** Throws too_few_files. */
async function examineOpenFiles(slots: number): Promise<readonly Finding[]> {
  const limit = openFilesLimit();
  if (limit === undefined) return [];
  demandFiles(filesOfWorker(slots));
  demandFiles(filesOfCoordinator(1));
  const { who } = filesOfWorker(slots);
  const workers = workersWithin(limit);
  const detail = `up to ${limit} in a process: enough for ${who}, and for a coordinator of ${workers} workers`;
  if (workers >= WORKERS_USUAL) return [good(OPEN_FILES, detail)];
  const { files } = filesOfCoordinator(WORKERS_USUAL);
  return [
    warning(
      OPEN_FILES,
      detail,
      `for ${WORKERS_USUAL} workers, on the coordinator's machine: ulimit -n ${files}`,
    ),
  ];
}
