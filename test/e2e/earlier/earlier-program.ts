// The first version that kept a run on a Postgres, as its users had it: packed, and with a dump of a run in the middle. How these files were
// made says test/e2e/earlier/first-postgres/README.md.
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const EARLIER = fileURLToPath(new URL("./first-postgres", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

let directory: string | undefined;

after(() => {
  if (directory !== undefined) rmSync(directory, { recursive: true, force: true });
});

/**
 * The program of that version, which is unpacked once for all tests: so it is compiled once too. The packages that it needs are those
 * of today.
 */
export function earlierProgram(): string {
  if (directory === undefined) {
    directory = realpathSync(mkdtempSync(join(tmpdir(), "rollout-earlier-")));
    execFileSync("tar", ["-xzf", join(EARLIER, "rollout.tar.gz"), "-C", directory]);
    symlinkSync(PACKAGES, join(directory, "package/node_modules"));
  }
  return join(directory, "package/bin/run.js");
}
