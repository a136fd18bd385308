// Paths in what is said to people.
import { relative } from "node:path";

/** As the user would type it. */
export function shownPath(path: string): string {
  const short = relative(".", path);
  return short.startsWith("..") || short === "" ? path : short;
}
