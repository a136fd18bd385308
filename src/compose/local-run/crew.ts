// How many workers a `rollout run` that goes on has started, and for which input, in a file of the run's directory: what a second
// command needs to add workers to it.
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { findLiveHolder } from "../../storage/level/holder-file.ts";
import { thisProcess } from "../../storage/level/process-identity.ts";
import { STATE, TASK_FILE, workersIn } from "./recorded.ts";

export const CREW_FILE = "crew.json";
const VERSION = 1;

export interface Crew {
  /** The process that has started them. */
  readonly pid: number;
  readonly workers: number;
  /** SHA-256 of the input, hexadecimal. */
  readonly input: string;
}

export async function crewText(crew: Omit<Crew, "pid">): Promise<string> {
  const { pid } = await thisProcess();
  return `${JSON.stringify({ version: VERSION, ...crew, pid })}\n`;
}

/** Undefined when no such file was written, or another one. */
export async function readCrew(directory: string): Promise<Crew | undefined> {
  const value = await readObject(join(directory, CREW_FILE));
  const { version, pid, workers, input } = value;
  if (version !== VERSION || typeof pid !== "number" || typeof workers !== "number") return undefined;
  return typeof input === "string" ? { pid, workers, input } : undefined;
}

/** Whether the directory is of that task. */
export async function isOfTask(directory: string, digest: Uint8Array): Promise<boolean> {
  const kept = await readObject(join(directory, TASK_FILE));
  return kept["digest"] === Buffer.from(digest).toString("hex");
}

/** Workers of this directory that run now, whoever has started them. */
export async function liveWorkers(directory: string): Promise<number> {
  const self = await thisProcess();
  const paths = (await workersIn(directory)).map((id) => join(directory, STATE, "workers", id));
  const holders = await Promise.all(paths.map((path) => findLiveHolder(path, self)));
  return holders.filter((holder) => holder !== undefined).length;
}

async function readObject(file: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    const value: unknown = JSON.parse(await readFile(file, "utf8"));
    return typeof value === "object" && value !== null ? { ...value } : {};
  } catch {
    return {};
  }
}
