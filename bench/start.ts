// The time that people wait for the program to start: as many times the start of `node -e 0` in the same minute.
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { round } from "./support/figure.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { MeasuredCoordinator } from "./support/measured-coordinator.ts";

const PROGRAM = join(import.meta.dirname, "..", "bin", "run.js");
const ROUNDS = 15;

interface Start {
  readonly name: string;
  readonly words: (at: number) => readonly string[];
}

const EMPTY: Start = { name: "node -e 0", words: () => ["-e", "0"] };
const STARTS: readonly Start[] = [
  { name: "--help", words: () => [PROGRAM, "--help"] },
  { name: "--version", words: () => [PROGRAM, "--version"] },
  {
    name: "run of one item",
    words: (at) => [PROGRAM, "run", "in.jsonl", "-o", `out-${at}.jsonl`, "--workers", "1", "--", "cat"],
  },
];

export const start: Bench = {
  name: "start",
  run: async (say) => {
    const directory = mkdtempSync(join(tmpdir(), "rollout-bench-start-"));
    const coordinator = await MeasuredCoordinator.start();
    const { configFile, address } = coordinator;
    const asked = [PROGRAM, "status", "-c", configFile, "--coordinator-addr", address];
    try {
      writeFileSync(join(directory, "in.jsonl"), "{}\n");
      const all = [...STARTS, { name: "status of a live coordinator", words: () => asked }];
      return all.map((one): Figure => {
        say(one.name);
        const times = Array.from({ length: ROUNDS }, (_, at) => [
          timeOf(one, at, directory),
          timeOf(EMPTY, at, directory),
        ]);
        const [own, empty] = [0, 1].map((at) => medianOf(times.map((pair) => pair[at] ?? NaN)));
        return { name: one.name, value: round((own ?? NaN) / (empty ?? NaN), 2), unit: "× node -e 0" };
      });
    } finally {
      await coordinator.stop();
      rmSync(directory, { recursive: true, force: true });
    }
  },
};

function timeOf({ name, words }: Start, at: number, cwd: string): number {
  const fromMs = systemClock.monotonicMs();
  const { status } = spawnSync(process.execPath, [...words(at)], { cwd, stdio: "ignore" });
  if (status !== 0) throw new Error(`${name} ended with ${String(status)}`);
  return systemClock.monotonicMs() - fromMs;
}

function medianOf(values: readonly number[]): number {
  return values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? NaN;
}
