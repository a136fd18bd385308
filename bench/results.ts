// Results read by `rollout results` into a file: how fast, and that a hundred times as many take no more memory, neither of the
// command nor of the coordinator that is read from.
import { spawn } from "node:child_process";
import { readFileSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { assert } from "../src/base/assert.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { MeasuredRun } from "./support/measured-run.ts";

const SIZES = [10_000, 1_000_000] as const;
const ORDERS = ["input", "completion"] as const;
const PAYLOAD_BYTES = 200;
const WORKERS = 2;
const SLOTS = 256;
const POLL_MS = 20;
const PROGRAM = join(import.meta.dirname, "../bin/run.js");

type Note = (line: string) => void;

interface Reading {
  readonly seconds: number;
  readonly peakBytes: number;
  readonly fileBytes: number;
}

export const results: Bench = {
  name: "results",
  async run(note) {
    const figures: Figure[] = [];
    for (const items of SIZES) figures.push(...(await afterARunOf(items, note)));
    return figures;
  },
};

async function afterARunOf(items: number, note: Note): Promise<Figure[]> {
  const run = await MeasuredRun.start({ collects: true });
  try {
    await run.submit(items, PAYLOAD_BYTES);
    for (let at = 0; at < WORKERS; at++) run.startWorker(SLOTS);
    await run.until(({ done }) => done === items);
    const figures: Figure[] = [];
    for (const order of ORDERS) {
      const reading = await read(run, order);
      const perSecond = items / reading.seconds;
      note(`${items} in order of ${order}: ${round(reading.fileBytes / 2 ** 20)} MiB written`);
      const name = `${items} results in order of ${order}`;
      figures.push({ name: `${name}: read`, value: round(perSecond), unit: "1/s" });
      figures.push({ name: `${name}: the command's memory at most`, ...mib(reading.peakBytes) });
    }
    const { rss_bytes, rss_of_files_bytes, in_use_bytes } = await run.coordinator.lag();
    const name = `${items} results: the coordinator's memory after both`;
    figures.push({ name, ...mib(rss_bytes) });
    figures.push({ name: `${name}, of it pages of the database's files`, ...mib(rss_of_files_bytes) });
    figures.push({
      name: `${items} results: of the coordinator's memory in use after both`,
      ...mib(in_use_bytes),
    });
    return figures;
  } finally {
    await run.stop();
  }
}

/** From the start of the command to its end. */
async function read({ coordinator }: MeasuredRun, order: string): Promise<Reading> {
  const { configFile, address } = coordinator;
  const output = join(dirname(configFile), `${order}.jsonl`);
  const args = ["results", "-c", configFile, "--coordinator-addr", address, "--order", order, "-o", output];
  const startedMs = systemClock.monotonicMs();
  const child = spawn(process.execPath, [PROGRAM, ...args], { stdio: ["ignore", "ignore", "inherit"] });
  const ended = new Promise<number | null>((resolve) => child.once("exit", resolve));
  let peakBytes = 0;
  while (child.exitCode === null && child.signalCode === null) {
    peakBytes = Math.max(peakBytes, peakOf(child.pid ?? 0));
    await Promise.race([ended, sleep(systemClock, POLL_MS)]);
  }
  assert((await ended) === 0, "the results can be read");
  const seconds = (systemClock.monotonicMs() - startedMs) / 1_000;
  return { seconds, peakBytes, fileBytes: statSync(output).size };
}

/** The most that was resident so far; 0 when it is gone, or where that is not told. */
function peakOf(pid: number): number {
  try {
    const kib = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
    return Number(kib ?? 0) * 1_024;
  } catch {
    return 0;
  }
}

function mib(bytes: number): { readonly value: number; readonly unit: string } {
  return { value: round(bytes / 2 ** 20), unit: "MiB" };
}
