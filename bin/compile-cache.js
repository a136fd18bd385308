// Has Node keep what it compiles of this program for the next start: below ~/.cache (or $XDG_CACHE_HOME), in a directory that is
// this user's and that nobody else may write to; nowhere when that cannot be had. Files that lie there are executed.
import { lstatSync, mkdirSync } from "node:fs";
// As a whole: an old Node, which is told so after this file was loaded, has no such function and would fail at its name.
import module from "node:module";
import { isAbsolute, join } from "node:path";

const OTHERS_WRITE = 0o022;
const OTHERS = 0o077;

/** Never throws. */
export function keepCompiled() {
  const { HOME = "", XDG_CACHE_HOME = "", NODE_COMPILE_CACHE } = process.env;
  const place = XDG_CACHE_HOME !== "" ? XDG_CACHE_HOME : join(HOME, ".cache");
  const user = process.geteuid?.();
  if (user === undefined || !isAbsolute(place) || NODE_COMPILE_CACHE !== undefined) return;
  const directory = join(place, "rollout");
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    const isOwn = (path, forbidden) => {
      const found = lstatSync(path);
      return found.isDirectory() && found.uid === user && (found.mode & forbidden) === 0;
    };
    if (isOwn(place, OTHERS_WRITE) && isOwn(directory, OTHERS)) module.enableCompileCache(directory);
  } catch {
    // A start without it takes longer, and nothing else.
  }
}
