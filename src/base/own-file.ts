// Files of this package that are started by their path: in `src` as source, in `dist` as built.
import { findPackageJSON } from "node:module";
import { dirname, join } from "node:path";
import { assert } from "./assert.ts";

const PACKAGE_FILE = findPackageJSON(import.meta.url);
assert(PACKAGE_FILE !== undefined, "this file belongs to a package");
const ROOT = dirname(PACKAGE_FILE);
const IS_SOURCE = import.meta.url.endsWith(".ts");

/** Absolute path of a program, a thread and the like; `path` is that of its source from the package's root, without the ending. */
export function ownFile(path: string): string {
  return IS_SOURCE ? join(ROOT, `${path}.ts`) : join(ROOT, "dist", `${path}.js`);
}

/** Absolute path of the command `rollout`. */
export function ownCommand(): string {
  return join(ROOT, "bin", IS_SOURCE ? "dev.js" : "run.js");
}

/** Absolute path of what the build has made that is no program; from the folder of what is built. */
export function builtFile(path: string): string {
  return join(ROOT, "dist", path);
}
