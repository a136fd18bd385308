// `npm run test:busy`: the whole of `make test` on a machine that does much else, three times in a row (or as often as is said).
// Beside it four loops that do nothing but use a core, and one that syncs a file again and again. Ends with the first
// run that fails; what it started is gone when it ends.
import { spawn, spawnSync } from "node:child_process";
import type { ChildProcess } from "node:child_process";
import { loadavg } from "node:os";
import { systemClock } from "../src/base/clock.ts";

const BUSY_LOOPS = 4;
const RUNS = 3;
const LOOP = "for (;;);";
/** It syncs what it has written beside the tests' own databases. */
const SYNCS = `
const { ftruncateSync, fsyncSync, mkdtempSync, openSync, rmSync, writeSync } = require("node:fs");
const { join } = require("node:path");
const directory = mkdtempSync(join(require("node:os").tmpdir(), "rollout-busy-"));
const file = openSync(join(directory, "synced"), "w");
rmSync(directory, { recursive: true });
for (let block = Buffer.alloc(65536), written = 0; ; written += block.length) {
  if (written > 2 ** 26) ftruncateSync(file, (written = 0));
  writeSync(file, block, 0, block.length, written);
  fsyncSync(file);
}`;

function startTrouble(): ChildProcess[] {
  const programs = [...Array.from({ length: BUSY_LOOPS }, () => LOOP), SYNCS];
  return programs.map((program) => spawn(process.execPath, ["-e", program], { stdio: "ignore" }));
}

/** Whether it passed. */
function runOnce(run: number, runs: number): boolean {
  const startMs = systemClock.monotonicMs();
  const { status } = spawnSync(process.execPath, ["scripts/test.ts"], { stdio: "inherit" });
  const seconds = ((systemClock.monotonicMs() - startMs) / 1_000).toFixed(0);
  const load = loadavg()[0]?.toFixed(1) ?? "";
  console.log(`run ${run} of ${runs}: ${status === 0 ? "passed" : "failed"} in ${seconds} s, load ${load}`);
  return status === 0;
}

const runs = Number(process.argv[2] ?? RUNS);
if (!Number.isInteger(runs) || runs < 1) throw new Error("say how many runs: a whole number, such as 3");
const trouble = startTrouble();
const end = (): void => {
  for (const loop of trouble) loop.kill("SIGKILL");
};
process.once("exit", end);
for (const signal of ["SIGINT", "SIGTERM"] as const) process.once(signal, () => process.exit(130));

let run = 1;
while (run <= runs && runOnce(run, runs)) run++;
// It would wait for the loops, which end with it.
process.exit(run > runs ? 0 : 1);
