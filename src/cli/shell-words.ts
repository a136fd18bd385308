// A command line, and a path, as one would type it.
import { relative } from "node:path";

/** Words that a POSIX shell reads as they are. */
export function shellWords(words: readonly string[]): string {
  return words.map(quoted).join(" ");
}

/** The line of a command that a hint names: `rollout WORDS`. */
export type HintedLine = (...words: readonly string[]) => string;

/** Lines about the run of this configuration, as the user has named it (`-c`); undefined: the default one, which needs no words. */
export function hintedLine(config: string | undefined): HintedLine {
  return (...words) => shellWords(["rollout", ...words]) + configWords(config);
}

/** Words that go behind a command's for it, with a space before. */
export function configWords(config: string | undefined): string {
  return config === undefined ? "" : ` ${shellWords(["-c", config])}`;
}

/** A path as the user would type it here. */
export function shownPath(path: string): string {
  const short = relative(".", path);
  return short.startsWith("..") || short === "" ? path : short;
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`;
}
