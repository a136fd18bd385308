// Tiny items through children that stay: the backend `process` beside a plain pool of two such children, and beside rollout's own rate
// where nothing executes. Two workers; the rate counts from the 5,000th result to the last, when everything has started. Each is
// measured twice, in turn, and the better counts.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert } from "../src/base/assert.ts";
import { loadManifest } from "../src/config/manifest.ts";
import type { Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { MeasuredRun, measureRun } from "./support/measured-run.ts";

const ITEMS = Number(process.env["ROLLOUT_BENCH_ITEMS"] ?? 50_000);
const UNMEASURED = ITEMS / 10;
const ROUNDS = 2;
const WORKERS = 2;
const PAYLOAD_BYTES = 100;
const CHILD = [process.execPath, join(import.meta.dirname, "support/answering-child-program.ts")];
const PLAIN = "a plain pool of two";
const END_TO_END = "end to end with nothing to execute";

export async function throughChildren(note: (line: string) => void): Promise<readonly Figure[]> {
  const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
  try {
    const contenders: Readonly<Record<string, () => Promise<number>>> = {
      [PLAIN]: () => ofPlainPool(directory),
      "process, 1 slot": () => ofProcess(directory, 1),
      [END_TO_END]: async () =>
        (await measureRun({ items: ITEMS, workers: WORKERS, slots: 256, payloadBytes: PAYLOAD_BYTES }))
          .endToEndPerSecond,
      "process, 16 slots": () => ofProcess(directory, 16),
    };
    const best = new Map<string, number>();
    for (let turn = 0; turn < ROUNDS; turn++)
      for (const [name, measure] of Object.entries(contenders)) {
        const perSecond = await measure();
        note(`${name}: ${round(perSecond)} items a second`);
        best.set(name, Math.max(perSecond, best.get(name) ?? 0));
      }
    const ratio = (one: string, other: string): Figure => ({
      name: `${one} / ${other}`,
      value: round((best.get(one) ?? NaN) / (best.get(other) ?? NaN), 3),
      unit: "×",
    });
    return [
      ...[...best].map(([name, value]) => ({
        name: `${ITEMS} tiny items: ${name}`,
        value: round(value),
        unit: "1/s",
      })),
      ratio("process, 1 slot", PLAIN),
      ratio("process, 16 slots", END_TO_END),
    ];
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

async function ofPlainPool(directory: string): Promise<number> {
  const input = join(directory, "items.jsonl");
  const pad = "x".repeat(PAYLOAD_BYTES - 24);
  writeFileSync(input, Array.from({ length: ITEMS }, (_, at) => `{"n":${at},"pad":"${pad}"}\n`).join(""));
  const program = join(import.meta.dirname, "support/plain-pool-program.ts");
  const args = [program, input, join(directory, "answers.jsonl"), "2", String(UNMEASURED), ...CHILD];
  const pool = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
  let said = "";
  pool.stdout.on("data", (chunk: Buffer) => (said += chunk.toString()));
  const code = await new Promise<number | null>((resolve) => pool.once("close", resolve));
  assert(code === 0, "the plain pool came to its end");
  const { answered, perSecond } = JSON.parse(said) as {
    readonly answered: number;
    readonly perSecond: number;
  };
  assert(answered === ITEMS, "the plain pool executed each item once");
  return perSecond;
}

/** Everything is submitted before the workers start. */
async function ofProcess(directory: string, slots: number): Promise<number> {
  const file = join(directory, "answering.toml");
  const command = `command = ${JSON.stringify(CHILD)}`;
  writeFileSync(file, `name = "answering"\nversion = "1"\nbackend = "process"\n[process]\n${command}\n`, {
    mode: 0o600,
  });
  const run = await MeasuredRun.start();
  try {
    await run.submit(ITEMS, PAYLOAD_BYTES, await loadManifest(file));
    for (let at = 0; at < WORKERS; at++) run.startWorker(slots, "--plugin", file);
    return await run.ratePerSecond(UNMEASURED, ITEMS);
  } finally {
    await run.stop();
  }
}
