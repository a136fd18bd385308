// The manifests of what is measured, written where a run has its files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { stringify } from "smol-toml";
import { loadManifest } from "../../../src/config/manifest.ts";
import type { Manifest } from "../../../src/config/manifest.ts";

export interface MeasuredPlugin {
  readonly file: string;
  readonly manifest: Manifest;
}

const ACTORS = join(import.meta.dirname, "counters.ts");
const MODULE = { module: join(import.meta.dirname, "noop.ts"), export: "noop" };

/** Actors of a type, or the module that does nothing. */
export async function withPlugin<Found>(
  what: "counter" | "alarm" | "module",
  use: (plugin: MeasuredPlugin) => Promise<Found>,
): Promise<Found> {
  const backend = what === "module" ? what : "actor";
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-plugin-"));
  try {
    const file = join(directory, "plugin.toml");
    const about = { name: `bench-${backend}`, version: "1", backend };
    writeFileSync(
      file,
      stringify({ ...about, [backend]: what === "module" ? MODULE : { module: ACTORS, types: [what] } }),
    );
    return await use({ file, manifest: await loadManifest(file) });
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}
