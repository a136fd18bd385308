// rollout beside what its users would take instead, and its two databases beside each other: items that do nothing, results kept, a producer
// and workers as processes of their own.
// All of them in one run, in turn, each as often as the others: their ratios hold, their figures are those of this machine.
import { tmpdir } from "node:os";
import { PostgresServer } from "../test/support/postgres-server.ts";
import type { Bench, Figure } from "./support/figure.ts";
import { round } from "./support/figure.ts";
import { measure } from "./support/peers/contender.ts";
import type { Contender, Measured, Mode } from "./support/peers/contender.ts";
import { bullMq, graphile, jetStream, rollout } from "./support/peers/contenders.ts";

const ITEMS = Number(process.env["ROLLOUT_BENCH_ITEMS"] ?? 100_000);
const MODES: readonly Mode[] = ["phased", "overlapped"];
const WORKERS = [2, 1] as const;
/** Once in this order and once in the other. */
const ROUNDS = 2;
const ON_LEVELDB = "rollout on LevelDB";
const ON_POSTGRES = "rollout on Postgres";
/** As a queue that writes much has it; everything is synced. */
const POSTGRES = { shared_buffers: "512MB", max_wal_size: "8GB" };

export const peers: Bench = {
  name: "peers",
  run: (note) => compare(note, [bullMq("always", note), bullMq("everysec", note), jetStream(note)]),
};

/** The part of `peers` that is about Postgres: what a run costs there, beside a run in a directory, and beside another queue on that server. */
export const onPostgres: Bench = { name: "postgres", isLong: true, run: (note) => compare(note, []) };

async function compare(
  note: (line: string) => void,
  elsewhere: readonly ReturnType<typeof jetStream>[],
): ReturnType<Bench["run"]> {
  const server = await PostgresServer.start({ place: tmpdir(), settings: POSTGRES });
  try {
    const postgres = graphile(server, note);
    const contenders: Contender[] = [rollout(ON_LEVELDB), rollout(ON_POSTGRES, { server })];
    const skipped: Record<string, string> = {};
    for (const other of [postgres, ...elsewhere])
      if ("skipped" in other) note(`${other.name} is skipped: ${(skipped[other.name] = other.skipped)}`);
      else contenders.push(other);
    const runs = await measureAll(contenders, note);
    const best = bestPeer(runs, contenders.slice(2));
    const own = rateOf(runs, ON_LEVELDB, "overlapped", 2);
    const there = rateOf(runs, ON_POSTGRES, "overlapped", 2);
    const hasRatio = !("skipped" in postgres) && best !== undefined;
    const ratios = {
      ...(hasRatio && { ratio_to_best_peer: round(own / best, 2) }),
      postgres_to_leveldb: round(there / own, 2),
    };
    return { figures: [...figuresOf(runs), ...ratioFigures(ratios)], e2e: { ...ratios, skipped, runs } };
  } finally {
    await server.close();
  }
}

async function measureAll(
  contenders: readonly Contender[],
  note: (line: string) => void,
): Promise<readonly Measured[]> {
  const runs: Measured[] = [];
  for (const workers of WORKERS)
    for (const mode of MODES)
      for (let turn = 0; turn < ROUNDS; turn++)
        for (const contender of turn % 2 === 0 ? contenders : contenders.toReversed()) {
          const measured = await measure(contender, { mode, workers, items: ITEMS });
          note(JSON.stringify(measured));
          runs.push(measured);
        }
  return runs;
}

function bestPeer(runs: readonly Measured[], peers: readonly Contender[]): number | undefined {
  const rates = peers.map(({ name }) => rateOf(runs, name, "overlapped", 2));
  return rates.length === 0 ? undefined : Math.max(...rates);
}

function rateOf(runs: readonly Measured[], contender: string, mode: Mode, workers: number): number {
  return mean(alike(runs, contender, mode, workers).map(({ itemsPerSecond }) => itemsPerSecond));
}

function ratioFigures(ratios: {
  readonly ratio_to_best_peer?: number;
  readonly postgres_to_leveldb: number;
}): Figure[] {
  const { ratio_to_best_peer: toBest, postgres_to_leveldb: toLevelDb } = ratios;
  const figures: Figure[] = [
    { name: `${ON_POSTGRES} / ${ON_LEVELDB}, overlapped`, value: toLevelDb, unit: "×" },
  ];
  if (toBest !== undefined)
    figures.push({ name: `${ON_LEVELDB} / the best of the others, overlapped`, value: toBest, unit: "×" });
  return figures;
}

function figuresOf(runs: readonly Measured[]): Figure[] {
  const figures: Figure[] = [];
  const names = new Set(runs.map(({ contender }) => contender));
  for (const workers of WORKERS)
    for (const mode of MODES)
      for (const name of names) {
        const what = `${name}, ${ITEMS} items, ${mode}, ${workers} ${workers === 1 ? "worker" : "workers"}`;
        const idle = mean(alike(runs, name, mode, workers).map(({ idleShare }) => idleShare));
        figures.push(
          { name: what, value: round(rateOf(runs, name, mode, workers)), unit: "1/s" },
          { name: `${what}: idle`, value: round(100 * idle), unit: "% of the machine" },
        );
      }
  return figures;
}

function alike(runs: readonly Measured[], contender: string, mode: Mode, workers: number): Measured[] {
  return runs.filter((run) => run.contender === contender && run.mode === mode && run.workers === workers);
}

function mean(values: readonly number[]): number {
  return values.reduce((sum, value) => sum + value, 0) / values.length;
}
