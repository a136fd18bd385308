// The first version that kept a run on a Postgres, as its users had it: packed, and with a dump of a run in the middle. How these files were
// made says test/e2e/earlier/first-postgres/README.md.
import { execFileSync } from "node:child_process";
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const EARLIER = fileURLToPath(new URL("./first-postgres", import.meta.url));
const PACKAGES = fileURLToPath(new URL("../../../node_modules", import.meta.url));

/** The program of that version, unpacked there. The packages that it needs are those of today. */
export function unpackEarlier(directory: string): string {
  execFileSync("tar", ["-xzf", join(EARLIER, "rollout.tar.gz"), "-C", directory]);
  symlinkSync(PACKAGES, join(directory, "package/node_modules"));
  return join(directory, "package/bin/run.js");
}
