// Items without keys, by this program and by the one of another built tree, in turn: each is measured by its own tree's bench, so the two need
// not speak to each other.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { alternate } from "../alternating.ts";
import { round } from "../figure.ts";
import { measureRun } from "../measured-run.ts";
import type { RunMeasured } from "../measured-run.ts";

const SHAPE = { workers: 2, slots: 256, payloadBytes: 100 };
const ROUNDS = 2;

export interface BesideBefore {
  readonly ratio: number;
  /** The coordinator's processor time for an item, by that of the one before. */
  readonly cpuRatio: number;
}

interface Bench {
  readonly measureRun: typeof measureRun;
}

/** The same run by this tree and by the other one. */
export async function runsBeside(
  tree: string,
  items: number,
  note: (line: string) => void,
): Promise<Record<"own" | "before", () => Promise<RunMeasured>>> {
  const other = (await import(pathToFileURL(join(tree, "bench/support/measured-run.ts")).href)) as Bench;
  const noted = (name: string, measure: Bench["measureRun"]) => async () => {
    const measured = await measure({ items, ...SHAPE });
    note(`${name}: ${JSON.stringify(measured)}`);
    return measured;
  };
  return { own: noted("this tree", measureRun), before: noted("before", other.measureRun) };
}

export async function besideBefore(
  tree: string,
  items: number,
  note: (line: string) => void,
): Promise<BesideBefore> {
  const { own, before } = await runsBeside(tree, items, note);
  const pairs = await alternate(ROUNDS, own, before);
  const ratioOf = (value: (run: RunMeasured) => number): number => {
    const sum = (runs: readonly RunMeasured[]): number => runs.reduce((total, run) => total + value(run), 0);
    return round(sum(pairs.map(({ one }) => one)) / sum(pairs.map(({ other }) => other)), 2);
  };
  return {
    ratio: ratioOf(({ endToEndPerSecond }) => endToEndPerSecond),
    cpuRatio: ratioOf(({ lag }) => lag.cpu_ms),
  };
}
