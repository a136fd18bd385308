// Examines the databases that are its arguments, one line of JSON for each: what is reported, or null. A process of its
// own, because LevelDB ends the process at some kinds of damage.
import { writeSync } from "node:fs";
import { examineLamps } from "../support/lamp-store.ts";

for (const path of process.argv.slice(2)) {
  const finding = await examineLamps(path);
  writeSync(1, `${JSON.stringify(finding ?? null)}\n`);
}
