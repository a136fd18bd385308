// `npm run machines:lock`: adds each new version of a chart to the lock, and writes its golden snapshots. It never
// changes what is there; scripts/structure-lock.ts has the rule.
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { charts } from "../machines/index.ts";
import type { Chart } from "../machines/migration.ts";
import { goldenRecords } from "../test/machines/golden-snapshots.ts";
import { GOLDEN_FOLDER, LOCK_FILE, lockProblems, withNewVersions } from "./structure-lock.ts";
import type { StructureLock } from "./structure-lock.ts";

const old = existsSync(LOCK_FILE)
  ? (JSON.parse(readFileSync(LOCK_FILE, "utf8")) as StructureLock)
  : { released: [], structures: {} };
const lock = withNewVersions(old, charts);
const problems = lockProblems(lock, charts);
if (problems.length > 0) {
  for (const problem of problems) console.error(problem);
  process.exitCode = 1;
} else {
  for (const [id, chart] of Object.entries<Chart>(charts)) {
    const file = join(GOLDEN_FOLDER, `${id}@${chart.machine.version ?? ""}.json`);
    if (!existsSync(file)) writeJson(file, await goldenRecords(id, chart));
  }
  writeJson(LOCK_FILE, lock);
}

function writeJson(file: string, value: unknown): void {
  const text = `${JSON.stringify(value, null, 2)}\n`;
  if (existsSync(file) && readFileSync(file, "utf8") === text) return;
  writeFileSync(file, text);
  console.log(`written: ${file}`);
}
