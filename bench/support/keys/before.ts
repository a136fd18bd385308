// Items without keys, by this program and by the one of another built tree, in turn: each is measured by its own tree's bench, so the two need
// not speak to each other.
import { join } from "node:path";
import { pathToFileURL } from "node:url";
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

export async function besideBefore(
  tree: string,
  items: number,
  note: (line: string) => void,
): Promise<BesideBefore> {
  const before = (await import(pathToFileURL(join(tree, "bench/support/measured-run.ts")).href)) as Bench;
  const [own, others]: [RunMeasured[], RunMeasured[]] = [[], []];
  const contenders = [
    { runs: own, measure: measureRun },
    { runs: others, measure: before.measureRun },
  ];
  for (let turn = 0; turn < ROUNDS; turn++)
    for (const { runs, measure } of turn % 2 === 0 ? contenders : contenders.toReversed()) {
      const measured = await measure({ items, ...SHAPE });
      note(`${runs === own ? "this tree" : "before"}: ${JSON.stringify(measured)}`);
      runs.push(measured);
    }
  const sum = (runs: readonly RunMeasured[], value: (run: RunMeasured) => number): number =>
    runs.reduce((total, run) => total + value(run), 0);
  const ratioOf = (value: (run: RunMeasured) => number): number =>
    round(sum(own, value) / sum(others, value), 2);
  return {
    ratio: ratioOf(({ endToEndPerSecond }) => endToEndPerSecond),
    cpuRatio: ratioOf(({ lag }) => lag.cpu_ms),
  };
}
