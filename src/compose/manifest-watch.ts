// A manifest's file as it is watched: the manifest, and the files that it names. A change counts when it has stood still from one
// look to the next, so that a file that is being written is judged when its writer is done with it.
import { createHash } from "node:crypto";
import { readFile, realpath, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { RolloutError, describeError } from "../base/errors.ts";
import { demandTrusted } from "../base/trusted-place.ts";
import { systemReason } from "../base/system-reason.ts";
import { loadManifest } from "../config/manifest.ts";
import type { Manifest } from "../config/manifest.ts";

/** How often files are looked at. */
export const LOOK_INTERVAL_MS = 500;
/** Words of a command that are looked at: enough for `python3 -u infer.py`. */
const WORDS_MAX = 16;
/** Larger files are known by size and time alone. */
const READ_MAX_BYTES = 16 * 1_024 * 1_024;

export interface ManifestWatchOptions {
  /** A link counts as the file that it leads to, from look to look. */
  readonly file: string;
  /** The manifest as it was taken up before; undefined: it is still to be taken up. */
  readonly taken: Manifest | undefined;
  /** Takes up what the file says now, after what it said when it was last taken up. Why not, if it is not. */
  readonly takeUp: (after: Manifest, before: Manifest | undefined) => Promise<string | undefined>;
  /** Each refusal is told once, until the files change again. */
  readonly onRefused: (reason: string, taken: Manifest | undefined) => void;
}

export class ManifestWatch {
  readonly #options: ManifestWatchOptions;
  #taken: Manifest | undefined;
  /** The files as they were when they were last judged; undefined before that. */
  #judged: string | undefined;
  #lastLook: string | undefined;

  constructor(options: ManifestWatchOptions) {
    this.#options = options;
    this.#taken = options.taken;
  }

  /** The files are from now on those that were judged. */
  async begin(): Promise<void> {
    this.#judged = this.#lastLook = await this.#print();
  }

  /** `isStill`: what is there now counts, also if it is seen for the first time. */
  async look({ isStill = false } = {}): Promise<void> {
    const print = await this.#print();
    const stoodStill = isStill || print === this.#lastLook;
    this.#lastLook = print;
    if (!stoodStill || print === this.#judged) return;
    this.#judged = print;
    const refusal = await this.#takeUp();
    if (refusal !== undefined) this.#options.onRefused(refusal, this.#taken);
  }

  async #takeUp(): Promise<string | undefined> {
    const after = await loadFollowed(this.#options.file).catch(refusalOf);
    if (typeof after === "string") return after;
    const refusal = await this.#options.takeUp(after, this.#taken);
    if (refusal !== undefined) return refusal;
    this.#taken = after;
    // It may name other files.
    await this.begin();
    return undefined;
  }

  async #print(): Promise<string> {
    return fingerprint(this.#options.file, this.#taken);
  }
}

/** Paths in it are relative to where the file itself is, not to a link that leads there. Throws as `loadManifest` does. */
export async function loadFollowed(file: string): Promise<Manifest> {
  await demandTrusted(file);
  // One that leads nowhere is said to do so by its own name.
  return loadManifest(await realpath(file).catch(() => file));
}

/** Why no manifest could be loaded, with what to do. */
export function refusalOf(error: unknown): string {
  if (error instanceof RolloutError) return `${describeError(error)} (${error.hint})`;
  return systemReason(error);
}

/** Equal as long as no file has changed. */
async function fingerprint(file: string, taken: Manifest | undefined): Promise<string> {
  const named = taken === undefined ? [] : filesNamedBy(taken);
  const prints = await Promise.all([file, ...named].map(filePrint));
  return prints.join("\n");
}

/** Files beside the manifest; a word of a command that is no file has no print. */
function filesNamedBy(manifest: Manifest): string[] {
  const { directory, workingDirectory } = manifest;
  switch (manifest.backend) {
    case "module":
    case "machine":
    case "actor":
      return [resolve(directory, manifest.spec.module)];
    case "command":
    case "process":
      return manifest.spec.command.slice(0, WORDS_MAX).map((word) => resolve(workingDirectory, word));
    case "mock":
    case "http":
      return [];
  }
}

async function filePrint(file: string): Promise<string> {
  try {
    const found = await stat(file);
    if (!found.isFile()) return "";
    if (found.size > READ_MAX_BYTES) return `${found.size} ${found.mtimeMs}`;
    return createHash("sha256")
      .update(await readFile(file))
      .digest("hex");
  } catch {
    // It is not there, or cannot be read, which is what whoever needs it will say.
    return "";
  }
}
