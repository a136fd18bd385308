// `rollout run` over items without work, its output file included, beside the same number of items through the bench's own processes: what
// the files, the checking of the input, the start and the end cost. And what it takes until the first result is in the file, until the same
// command says that there is nothing to do, and of memory that is not pages of files.
import { spawn } from "node:child_process";
import { createWriteStream, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { once } from "node:events";
import { assert } from "../src/base/assert.ts";
import { sleep, systemClock } from "../src/base/clock.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { measureRun } from "./support/measured-run.ts";

const SIZES = [100_000, 1_000_000] as const;
/** The one that is compared. */
const COMPARED = 100_000;
const SHAPE = { workers: 2, slots: 256, payloadBytes: 100 };
const PROGRAM = join(import.meta.dirname, "../bin/run.js");
const POLL_MS = 10;

interface Course {
  readonly ms: number;
  /** Until something stood in the output; undefined when nothing came to stand there. */
  readonly firstMs: number | undefined;
  /** At most, in memory that is not pages of files. */
  readonly commandBytes: number;
  readonly coordinatorBytes: number;
  /** The last of its words to a person. */
  readonly said: string;
}

export const localRun: Bench = {
  name: "local-run",
  async run(note) {
    const figures: Figure[] = [];
    for (const items of SIZES) {
      const directory = mkdtempSync(join(tmpdir(), "rollout-bench-"));
      try {
        await writeInput(join(directory, "in.jsonl"), items);
        writeFileSync(join(directory, "mock.toml"), 'name = "mock"\nversion = "1"\nbackend = "mock"\n');
        const first = await perform(directory);
        note(first.said);
        const again = await perform(directory);
        assert(again.said.includes("nothing to do"), `the second run is up to date: ${again.said}`);
        figures.push(...figuresOf(items, first, again));
        if (items === COMPARED) figures.push(await share(items, first));
      } finally {
        rmSync(directory, { recursive: true, force: true });
      }
    }
    return figures;
  },
};

function figuresOf(items: number, first: Course, again: Course): Figure[] {
  const name = `${items} items`;
  const mib = (bytes: number): Pick<Figure, "value" | "unit"> => ({
    value: round(bytes / 2 ** 20),
    unit: "MiB",
  });
  return [
    {
      name: `${name}: from the command's start to its end`,
      value: round((items / first.ms) * 1_000),
      unit: "1/s",
    },
    { name: `${name}: first result in the file after`, value: round(first.firstMs ?? NaN), unit: "ms" },
    { name: `${name}: nothing to do, said after`, value: round(again.ms), unit: "ms" },
    { name: `${name}: anonymous memory of the coordinator at most`, ...mib(first.coordinatorBytes) },
    { name: `${name}: anonymous memory of the command at most`, ...mib(first.commandBytes) },
  ];
}

async function share(items: number, { ms }: Course): Promise<Figure> {
  const { endToEndPerSecond } = await measureRun({ items, ...SHAPE });
  const value = round(((items / ms) * 1_000) / endToEndPerSecond, 2);
  return { name: `${items} items: share of the bench's end to end`, value, unit: "" };
}

async function writeInput(file: string, items: number): Promise<void> {
  const stream = createWriteStream(file);
  const pad = "x".repeat(SHAPE.payloadBytes - 24);
  for (let at = 0; at < items; at++)
    if (!stream.write(`{"n":${at},"pad":"${pad}"}\n`)) await once(stream, "drain");
  stream.end();
  await once(stream, "finish");
}

/** The command from its start to its end, which has to be a good one. */
async function perform(directory: string): Promise<Course> {
  const { workers, slots } = SHAPE;
  const flags = ["--workers", String(workers), "--slots", String(slots), "--plugin", "mock.toml"];
  const words = [PROGRAM, "run", "in.jsonl", "-o", "out.jsonl", ...flags];
  const startedMs = systemClock.monotonicMs();
  const command = spawn(process.execPath, words, { cwd: directory, stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  command.stderr.on("data", (text) => (said = `${said}${String(text)}`.slice(-2_000)));
  const ended = once(command, "exit");
  let [firstMs, commandBytes, coordinatorBytes]: [number | undefined, number, number] = [undefined, 0, 0];
  let coordinator: number | undefined;
  while (command.exitCode === null && command.signalCode === null) {
    if (firstMs === undefined && lengthOf(join(directory, "out.jsonl")) > 0)
      firstMs = systemClock.monotonicMs() - startedMs;
    const pid = command.pid ?? 0;
    coordinator ??= coordinatorOf(pid);
    commandBytes = Math.max(commandBytes, anonymousOf(pid));
    if (coordinator !== undefined) coordinatorBytes = Math.max(coordinatorBytes, anonymousOf(coordinator));
    await Promise.race([ended, sleep(systemClock, POLL_MS)]);
  }
  assert(command.exitCode === 0, `the run gets to its end: ${said}`);
  return { ms: systemClock.monotonicMs() - startedMs, firstMs, commandBytes, coordinatorBytes, said };
}

function lengthOf(file: string): number {
  return statSync(file, { throwIfNoEntry: false })?.size ?? 0;
}

/** The process that the command has started for it. */
function coordinatorOf(pid: number): number | undefined {
  const children = textOf(`/proc/${pid}/task/${pid}/children`).split(" ").map(Number);
  return children.find((child) => child > 0 && textOf(`/proc/${child}/cmdline`).includes("\0coordinator\0"));
}

/** Bytes; 0 when it is gone, or where that is not told. */
function anonymousOf(pid: number): number {
  const kib = /^RssAnon:\s+(\d+) kB$/m.exec(textOf(`/proc/${pid}/status`))?.[1];
  return Number(kib ?? 0) * 1_024;
}

function textOf(file: string): string {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return "";
  }
}
