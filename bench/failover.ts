// How long nobody gives out work when a leader is lost, and what becomes of the items: three coordinators over one Postgres, as many
// takeovers of each kind as ROLLOUT_BENCH_TAKEOVERS says. Resumable: what was measured is kept in a file, row by row, and counts for
// the next call of the same program, until there are as many.
import { createHash } from "node:crypto";
import { globSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { systemClock } from "../src/base/clock.ts";
import { sharedPostgresUrl } from "../test/support/postgres-server.ts";
import { inNewDatabase } from "../test/support/postgres-database.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { FAULTS, measureTakeovers } from "./support/takeovers.ts";
import type { Fault, Takeovers } from "./support/takeovers.ts";

const WANTED = Number(process.env["ROLLOUT_BENCH_TAKEOVERS"] ?? 100);
/** Clusters side by side: nearly all of a takeover is waiting. */
const LANES = Number(process.env["ROLLOUT_BENCH_LANES"] ?? 2);
/** A row has a cluster of its own. */
const ROW = 20;
/** A takeover with all that is before the next one, and a cluster that is set up and ended, as far as nothing was measured yet. */
const TAKEOVER_MS: Readonly<Record<Fault, number>> = {
  "kill -9": 10_000,
  SIGSTOP: 10_500,
  "cut from Postgres": 10_000,
  "cut from the workers": 9_500,
  "step-down": 3_000,
};
const SCENE_MS = 12_000;
/** A handover takes less than the start of a process: none of another cluster's is beside it. */
const ALONE: ReadonlySet<Fault> = new Set(["step-down"]);

const PROGRAM = resolve(import.meta.dirname, "../dist");
const KEPT = resolve(import.meta.dirname, "../.cache/bench/failover.json");

type Measured = Partial<Record<Fault, readonly Takeovers[]>>;
interface Kept {
  /** A digest of what was measured. */
  readonly program: string;
  readonly measured: Measured;
}

export const failover: Bench = {
  name: "failover",
  isLong: true,
  async run(note) {
    const program = digestOf(PROGRAM);
    const measured = read(program);
    const server = await sharedPostgresUrl();
    const rows = rowsLeft(measured);
    const sayLeft = (): void => note(`about ${Math.ceil(leftMs(rows) / 60_000)} min left`);
    const measure = async (row: Row): Promise<void> => {
      const beganMs = systemClock.monotonicMs();
      const done = await inNewDatabase(server, (url) => measureTakeovers(row.fault, row.count, url));
      rows.splice(rows.indexOf(row), 1);
      measured[row.fault] = [...(measured[row.fault] ?? []), done];
      write({ program, measured });
      const tookS = round((systemClock.monotonicMs() - beganMs) / 1_000);
      note(`${row.fault}: ${JSON.stringify(rounded(done))} in ${tookS} s`);
      sayLeft();
    };
    sayLeft();
    await inLanes(LANES, rows.filter(isBeside), measure);
    await inLanes(1, rows.slice(), measure);
    return FAULTS.flatMap((fault) => figuresOf(fault, measured[fault] ?? []));
  },
};

interface Row {
  readonly fault: Fault;
  readonly count: number;
}

/** A row of each in turn: the machine is not the same all the time. */
function rowsLeft(measured: Measured): Row[] {
  const left = new Map(FAULTS.map((fault) => [fault, WANTED - timesOf(measured[fault] ?? []).length]));
  const rows: Row[] = [];
  while ([...left.values()].some((count) => count > 0))
    for (const fault of FAULTS) {
      const count = Math.min(ROW, left.get(fault) ?? 0);
      if (count > 0) rows.push({ fault, count });
      left.set(fault, (left.get(fault) ?? 0) - ROW);
    }
  return rows;
}

function isBeside({ fault }: Row): boolean {
  return !ALONE.has(fault);
}

function leftMs(rows: readonly Row[]): number {
  const sum = (of: readonly Row[]): number =>
    of.reduce((total, { fault, count }) => total + SCENE_MS + count * TAKEOVER_MS[fault], 0);
  return sum(rows.filter(isBeside)) / LANES + sum(rows.filter((row) => !isBeside(row)));
}

/** Ends when nothing is under way any more. Throws the first failure; nothing is begun after it. */
async function inLanes(
  lanes: number,
  rows: readonly Row[],
  measure: (row: Row) => Promise<void>,
): Promise<void> {
  const [waiting, failures] = [[...rows], [] as unknown[]];
  const lane = async (): Promise<void> => {
    for (let row = waiting.shift(); row !== undefined && failures.length === 0; row = waiting.shift())
      await measure(row).catch((error: unknown) => void failures.push(error));
  };
  await Promise.all(Array.from({ length: lanes }, lane));
  if (failures.length > 0) throw failures[0];
}

function figuresOf(fault: Fault, rows: readonly Takeovers[]): Figure[] {
  const times = timesOf(rows);
  const share = (of: (time: Takeovers["times"][number]) => number, part: number): number => {
    const sorted = times.map(of).toSorted((left, right) => left - right);
    return round(sorted[Math.ceil(part * sorted.length) - 1] ?? NaN);
  };
  const sum = (what: Exclude<keyof Takeovers, "times">): number =>
    rows.reduce((total, row) => total + row[what], 0);
  const name = `${fault}, ${times.length} takeovers`;
  return [
    { name: `${name}: p50 until another leads`, value: share(({ ledMs }) => ledMs, 0.5), unit: "ms" },
    { name: `${name}: p50`, value: share(({ tookMs }) => tookMs, 0.5), unit: "ms" },
    { name: `${name}: p99`, value: share(({ tookMs }) => tookMs, 0.99), unit: "ms" },
    { name: `${name}: max`, value: share(({ tookMs }) => tookMs, 1), unit: "ms" },
    { name: `${name}: lost`, value: sum("lost"), unit: "items" },
    { name: `${name}: duplicated`, value: sum("duplicated"), unit: "results" },
    { name: `${name}: executed again`, value: sum("executedAgain"), unit: "items" },
  ];
}

function timesOf(rows: readonly Takeovers[]): Takeovers["times"][number][] {
  return rows.flatMap(({ times }) => times);
}

function rounded({ times, ...counts }: Takeovers): object {
  return {
    tookMs: times.map(({ tookMs }) => round(tookMs)),
    ledMs: times.map(({ ledMs }) => round(ledMs)),
    ...counts,
  };
}

/** One digest over all files of the program. */
function digestOf(directory: string): string {
  const digest = createHash("sha256");
  for (const file of globSync(`${directory}/**/*.js`).sort()) digest.update(readFileSync(file));
  return digest.digest("hex");
}

function read(program: string): Measured {
  try {
    const kept = JSON.parse(readFileSync(KEPT, "utf8")) as Kept;
    return kept.program === program ? kept.measured : {};
  } catch {
    return {};
  }
}

function write(kept: Kept): void {
  mkdirSync(dirname(KEPT), { recursive: true });
  writeFileSync(KEPT, `${JSON.stringify(kept)}\n`);
}
