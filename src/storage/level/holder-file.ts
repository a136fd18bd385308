// `<path>.lock`: who holds the database, for people and for the next process that wants it. It lies beside the
// directory, because reading a file named LOCK inside would take LevelDB's own lock from its holder (docs/adr/0009).
//
// Keeps true: only the process that has LevelDB's lock writes or removes it, so a loser never touches the winner's; and
// a file that names a live process stops an open before LevelDB is touched.
import { readFile, rm } from "node:fs/promises";
import { jsonFields } from "../../base/exact-json.ts";
import { ifThere, replaceFile } from "../../base/file-system.ts";
import { isAlive, isSame } from "./process-identity.ts";
import type { ProcessIdentity } from "./process-identity.ts";

export interface Holder extends ProcessIdentity {
  /** "rollout coordinator run". */
  readonly command: string;
  /** ISO 8601. */
  readonly since: string;
}

export function holderFilePath(realPath: string): string {
  return `${realPath}.lock`;
}

/** "rollout coordinator run, pid 123 on host a since 2026-11-18T14:31:00.000Z". */
export function describeHolder(holder: Holder): string {
  return `${holder.command}, pid ${holder.pid} on host ${holder.host} since ${holder.since}`;
}

/**
 * The holder that the file names; undefined when there is none, or when it is not ours to understand.
 * @internal
 */
export async function readHolder(realPath: string): Promise<Holder | undefined> {
  const text = await ifThere(readFile(holderFilePath(realPath), "utf8"));
  return text === undefined ? undefined : parseHolder(text);
}

/** The holder that the file names, if it still runs. This very process counts: another thread may be it. */
export async function findLiveHolder(realPath: string, self: ProcessIdentity): Promise<Holder | undefined> {
  const holder = await readHolder(realPath);
  return holder !== undefined && (await isAlive(holder, self)) ? holder : undefined;
}

/** Makes the file name `holder`, whatever it said before. Atomic: a reader sees the old or the new one, whole. */
export async function writeHolder(realPath: string, holder: Holder): Promise<void> {
  const file = holderFilePath(realPath);
  const how = { temporary: `${file}.${holder.pid}`, mode: 0o600, synced: "nothing" } as const;
  await replaceFile(file, `${JSON.stringify(holder)}\n`, how);
}

/** Removes the file if it names `holder`. Idempotent. */
export async function removeHolder(realPath: string, holder: Holder): Promise<void> {
  const present = await readHolder(realPath);
  if (present !== undefined && isSame(present, holder)) await rm(holderFilePath(realPath), { force: true });
}

function parseHolder(text: string): Holder | undefined {
  // One that is not written by us, or damaged, names nobody: the kernel's lock decides, and the winner writes it anew.
  const { pid, host, startTicks, bootId, command, since } = jsonFields(text);
  if (typeof pid !== "number" || !Number.isSafeInteger(pid) || pid < 1) return undefined;
  if (typeof host !== "string" || typeof command !== "string" || typeof since !== "string") return undefined;
  if (!isTextOrNull(startTicks) || !isTextOrNull(bootId)) return undefined;
  return { pid, host, startTicks, bootId, command, since };
}

function isTextOrNull(value: unknown): value is string | null {
  return value === null || typeof value === "string";
}
