// This machine: what it has, whether a process may have as many files and sockets open as its role needs, whether its workers and
// its coordinator can keep what is their own, and whether a metadata server says when it is taken away.
import { availableParallelism, totalmem } from "node:os";
import type { Clock } from "../../base/clock.ts";
import { failure } from "../../base/errors.ts";
import { openFilesLimit } from "../../base/process-table.ts";
import type { ClientConfig } from "../../config/resolve.ts";
import type { StatFs } from "../../storage/level/directory.ts";
import { askCloud } from "../../worker/preemption/cloud.ts";
import { PATIENCE_MAX_MS } from "../../worker/preemption/metadata-http.ts";
import { metadataAddress } from "../worker-process.ts";
import { demandFiles, filesOfCoordinator, filesOfWorker, workersWithin } from "../open-files.ts";
import type { Finding } from "./finding.ts";
import { examined, good, warning } from "./finding.ts";
import { examinePlace } from "./place.ts";

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

const PREEMPTION = "preemption notices";
/** A worker hears one that is slower as well, and a notice that much later. */
const QUICK_MS = 1_000;

/** Asks the metadata server as a worker of this machine does. Throws config_invalid_value for an address that no worker would ask. */
export async function examinePreemption(config: ClientConfig, clock: Clock): Promise<readonly Finding[]> {
  const { preemption: choice, metadataAddr } = config.worker;
  if (choice === "none") return [];
  const address = metadataAddress(config);
  const startMs = clock.monotonicMs();
  const { signal } = new AbortController();
  const cloud = await askCloud({ address, clock, timeoutMs: PATIENCE_MAX_MS }, signal);
  const tookMs = Math.ceil(clock.monotonicMs() - startMs);
  if (cloud === undefined) {
    const detail = `no metadata server answers at ${metadataAddr} within ${PATIENCE_MAX_MS} ms`;
    return [warning(PREEMPTION, detail, 'set worker.preemption = "none" where no cloud takes machines away')];
  }
  const detail = `the metadata server of ${cloud} answers at ${metadataAddr} within ${tookMs} ms`;
  if (choice !== "auto" && choice !== cloud)
    return [warning(PREEMPTION, detail, `set worker.preemption = "${cloud}", or "auto"`)];
  if (tookMs <= QUICK_MS) return [good(PREEMPTION, detail)];
  return [warning(PREEMPTION, detail, "a notice is heard that much later: see what keeps that server busy")];
}

/** Throws file_unwritable, and store_unusable where no database can be. */
export async function examineStateDirectory(path: string, statFs: StatFs): Promise<readonly Finding[]> {
  const place = await examinePlace(path, statFs);
  if (place.kind === "unusable") throw failure("file_unwritable", { file: path, reason: place.reason });
  const use = place.isThere ? "it can be written" : "it will be made at the first start";
  return [good("state directory", `${path}: ${use}`)];
}
