// A process whose wall clock is wrong: libfaketime between it and the operating system. The monotonic clock stays true.
import { existsSync, readdirSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Where Debian, others and those who build it themselves put it; Debian has a folder for each architecture. */
const PLACES = [
  "/usr/lib/faketime",
  "/usr/local/lib/faketime",
  "/usr/lib64/faketime",
  "/opt/homebrew/lib/faketime",
];
/** The one for programs with several threads. */
const LIBRARY = "libfaketimeMT.so.1";

/** The environment of a process whose clock is off by so much: `+1h`, `-1h`. Throws, with how to get it, when it is not here. */
export function wrongClock(offset: string): Record<string, string> {
  return { ...falseClock(), FAKETIME: offset };
}

function falseClock(): Record<string, string> {
  return {
    LD_PRELOAD: findLibrary(),
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
    // Files keep their true times, and no shared memory is left behind.
    NO_FAKE_STAT: "1",
    FAKETIME_DISABLE_SHM: "1",
  };
}

/** Sets a clock of `settableClock`. The process that reads the file never meets half of it. */
export function setClock(file: string, offset: string): void {
  writeFileSync(`${file}.new`, offset);
  renameSync(`${file}.new`, file);
}

/** The same by what stands in `file` (`+0`, `-1h`), looked at each second: a clock that can be set while the process runs. */
export function settableClock(file: string): Record<string, string> {
  return { ...falseClock(), FAKETIME_TIMESTAMP_FILE: file, FAKETIME_CACHE_DURATION: "1" };
}

function findLibrary(): string {
  const byArchitecture = namesIn("/usr/lib").map((name) => join("/usr/lib", name, "faketime"));
  const found = [...byArchitecture, ...PLACES].map((place) => join(place, LIBRARY)).find(existsSync);
  if (found !== undefined) return found;
  throw new Error(
    `this test needs ${LIBRARY}, which is not here: run \`node scripts/setup-extras.ts\` as root, or on Debian ` +
      "`apt-get install faketime`",
  );
}

function namesIn(directory: string): string[] {
  return existsSync(directory) ? readdirSync(directory) : [];
}
