// The layer table: which room of the house stands on which. Imports go down only, rooms of one layer never import each
// other, and a room that is not named here does not exist. .dependency-cruiser.mjs turns it into rules.

export interface Layer {
  readonly name: string;
  /** Folders, or single files, relative to the repository. */
  readonly rooms: readonly string[];
}

/** From the ground up. */
export const LAYERS: readonly Layer[] = [
  { name: "0a", rooms: ["src/base"] },
  { name: "0b", rooms: ["machines", "src/gen"] },
  { name: "1", rooms: ["src/config", "src/observe"] },
  { name: "2", rooms: ["src/storage", "src/transport"] },
  { name: "3", rooms: ["src/runtime"] },
  { name: "4", rooms: ["src/coordinator", "src/worker", "src/inspector", "src/client"] },
  { name: "5a", rooms: ["src/cli"] },
  { name: "5b", rooms: ["src/compose"] },
  { name: "5c", rooms: ["src/commands", "src/index.ts"] },
];

/** Where the program is put together: only here an implementation of a port is picked. */
export const COMPOSITION: readonly string[] = ["src/compose", "src/commands", "src/index.ts"];

/** Implementations of ports, by regular expression. Nobody imports one but itself, the composition and tests. */
export const ADAPTERS: readonly string[] = [
  "src/storage/(?:level|memory|postgres)",
  "src/worker/backends/(?:mock|command|process|http|module|machine)",
  // All but the port.
  "src/worker/preemption(?!/compute-hint\\.ts)",
];

/** The only packages that a room may import; a room that is not named may import any dependency of the product. */
export const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  "src/base": [],
  machines: ["xstate"],
  "src/gen": ["@bufbuild/protobuf"],
};

/** The code of clouds, which the coordinator never reaches, not even through others. */
export const CLOUD_CODE: readonly string[] = [
  "src/worker/(?:backends|preemption)",
  "node_modules/(?:@aws-sdk|@google-cloud|@azure|google-auth-library|gcp-metadata)",
];

/** What stands beside the product and is never imported by it. */
export const OUTSIDE: readonly string[] = ["test", "bench", "examples", "scripts"];

/** A regular expression for every file of a room. */
export function roomPattern(room: string): string {
  return room.endsWith(".ts") ? `^${room.replaceAll(".", "\\.")}$` : `^${room}/`;
}
