// Short commands, one a line: `rollout run` from its start to its end beside `xargs -P2`, which keeps nothing. Each is measured twice, in
// turn, and the better counts.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "../src/base/assert.ts";
import { systemClock } from "../src/base/clock.ts";
import type { Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";

const COMMANDS = Number(process.env["ROLLOUT_BENCH_COMMANDS"] ?? 5_000);
const ROUNDS = 2;
const AT_ONCE = "2";
const COMMAND = ["sh", "-c", "cat >/dev/null; echo ok"];
const PROGRAM = join(import.meta.dirname, "../bin/run.js");

export async function shortCommands(note: (line: string) => void): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
  try {
    const input = join(directory, "in.jsonl");
    writeFileSync(input, Array.from({ length: COMMANDS }, (_, at) => `{"n":${at}}\n`).join(""));
    const best = { xargs: Infinity, rollout: Infinity };
    for (let turn = 0; turn < ROUNDS; turn++) {
      // An item has its line as its standard input; xargs gives none.
      const xargs = ["--arg-file", input, "--delimiter", "\n", "-P", AT_ONCE, "-n", "1", ...COMMAND];
      const plainMs = await timed(directory, "xargs", xargs);
      const files = [input, "-o", join(directory, `out-${turn}.jsonl`)];
      const words = [PROGRAM, "run", ...files, "--workers", AT_ONCE, "--slots", "1", "--", ...COMMAND];
      const rolloutMs = await timed(directory, process.execPath, words);
      note(`xargs ${round(plainMs)} ms, rollout run ${round(rolloutMs)} ms`);
      best.xargs = Math.min(best.xargs, plainMs);
      best.rollout = Math.min(best.rollout, rolloutMs);
    }
    const perSecond = (ms: number): number => round((COMMANDS / ms) * 1_000);
    return [
      { name: `${COMMANDS} short commands: xargs -P${AT_ONCE}`, value: perSecond(best.xargs), unit: "1/s" },
      { name: `${COMMANDS} short commands: rollout run`, value: perSecond(best.rollout), unit: "1/s" },
      { name: "time of rollout run / xargs", value: round(best.rollout / best.xargs, 3), unit: "×" },
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** From the start to the end. Output is read and dropped. */
async function timed(cwd: string, program: string, args: readonly string[]): Promise<number> {
  const startMs = systemClock.monotonicMs();
  const child = spawn(program, args, { cwd, stdio: ["ignore", "ignore", "ignore"] });
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", resolve);
  });
  assert(code === 0, `${program} came to its end`);
  return systemClock.monotonicMs() - startMs;
}
