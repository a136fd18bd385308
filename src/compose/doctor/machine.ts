// This machine: enough descriptors for the sockets of a fleet, and the tools that user code is killed with.
import { readFile } from "node:fs/promises";
import { availableParallelism, totalmem } from "node:os";
import type { Finding } from "./finding.ts";
import { good, warning } from "./finding.ts";

/** A coordinator has a socket for each worker, and a database has files. */
const OPEN_FILES_WANTED = 4_096;
const GIB = 2 ** 30;

export async function examineMachine(): Promise<readonly Finding[]> {
  const memory = `${(totalmem() / GIB).toFixed(1)} GiB of memory`;
  const machine = good(
    "machine",
    `Node ${process.versions.node}, ${availableParallelism()} cores, ${memory}`,
  );
  return [machine, ...(await examineOpenFiles())];
}

async function examineOpenFiles(): Promise<readonly Finding[]> {
  // Elsewhere than on Linux there is no such file, and nothing to say.
  const limits = await readFile("/proc/self/limits", "utf8").catch(() => "");
  const soft = /^Max open files\s+(\d+|unlimited)/m.exec(limits)?.[1];
  if (soft === undefined) return [];
  if (soft === "unlimited" || Number(soft) >= OPEN_FILES_WANTED) return [good("open files", `up to ${soft}`)];
  const detail = `a process may have ${soft} files and sockets open`;
  return [warning("open files", detail, `a fleet of hundreds needs more: ulimit -n ${OPEN_FILES_WANTED}`)];
}
