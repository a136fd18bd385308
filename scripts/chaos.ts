// `npm run chaos -- postgres [--cuts N] [--seed S] [--json]`: leaders over a real Postgres whose connection is cut in the middle of
// commits, N in all, and what the ledger holds against what the leaders were told. Ends with 1 when they differ.
// `npm run chaos -- postgres --held-xmin 1h`: a run while somebody keeps a transaction open. Ends with 1 when loads take twice as long.
// `npm run chaos -- power [--images N] [--seed S] [--unsynced] [--json]`: a coordinator on a file system of its own, images of which are
// taken at random instants, N in all, and led from. Ends with 1 when one lacks what was acknowledged before it. As root, for it mounts.
import { parseArgs } from "node:util";
import { systemClock } from "../src/base/clock.ts";
import { parseDurationMs } from "../src/config/duration.ts";
import { CommitCampaign } from "../test/contract/postgres/commit-campaign.ts";
import { sumOf } from "../test/contract/postgres/commit-figures.ts";
import type { CommitFigures } from "../test/contract/postgres/commit-figures.ts";
import { runWithHeldXmin } from "../test/contract/postgres/held-xmin-campaign.ts";
import type { Interval } from "../test/contract/postgres/held-xmin-campaign.ts";
import { sharedPostgresUrl } from "../test/support/postgres-server.ts";
import { cutPower } from "../test/e2e/power/power-campaign.ts";
import type { StatementKind } from "../test/contract/postgres/statement-times.ts";

const TOLD_EVERY_MS = 10_000;
/** After so many violations the rest would say the same. */
const VIOLATIONS_MAX = 5;
/** Campaigns at once, each over tables of its own: one of them mostly waits. */
const CAMPAIGNS = 8;
const HELD_INTERVALS = 20;
/** A load of a window that takes so many times as long in the end is too slow. */
const SLOWER_MAX = 2;
const STATEMENTS: readonly StatementKind[] = ["window load", "rows by key", "turn", "renewal"];

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    cuts: { type: "string", default: "10000" },
    seed: { type: "string", default: "1" },
    "held-xmin": { type: "string" },
    images: { type: "string", default: "100" },
    unsynced: { type: "boolean", default: false },
    json: { type: "boolean", default: false },
  },
});
const trouble = positionals.join();
if (trouble !== "postgres" && trouble !== "power")
  throw new Error("name what is put under trouble: postgres or power");
const heldMs = parseDurationMs(values["held-xmin"] ?? "0s");
if (heldMs === undefined) throw new Error("--held-xmin takes a duration, such as 10m");
const [cuts, seed] = [numberOf("cuts", values.cuts), numberOf("seed", values.seed)];
const startMs = systemClock.monotonicMs();
const campaigns: CommitCampaign[] = [];
let toldMs = startMs;
if (trouble === "power") process.exitCode = await loseDisks();
else process.exitCode = heldMs > 0 ? await holdXmin(heldMs) : await cutCommits();

/** The exit code. */
async function loseDisks(): Promise<number> {
  const images = numberOf("images", values.images);
  const note = (line: string): void => console.error(line);
  const figures = await cutPower({ images, seed, liesAboutSync: values.unsynced, note });
  const seconds = Math.round((systemClock.monotonicMs() - startMs) / 1_000);
  const { submitted, lostItems, results, lostResults, unled } = figures;
  console.log(
    values.json
      ? JSON.stringify({ kind: "summary", seed, seconds, ...figures })
      : `${images} images in ${seconds} s: of ${submitted} acknowledged items ${lostItems} are lost, of ${results} results ${lostResults}; ${unled} images led by nobody`,
  );
  return lostItems + lostResults + unled === 0 ? 0 : 1;
}

/** The exit code. */
async function cutCommits(): Promise<number> {
  const url = await sharedPostgresUrl();
  for (let at = 0; at < CAMPAIGNS; at++) campaigns.push(await CommitCampaign.open({ seed: seed + at, url }));
  await Promise.all(campaigns.map(run));
  const figures = campaigns.map((campaign) => campaign.figures).reduce(sumOf);
  const seconds = (systemClock.monotonicMs() - startMs) / 1_000;
  const summary = { kind: "summary", seed, seconds, ...figures };
  console.log(values.json ? JSON.stringify(summary) : inWords(figures, seconds));
  return figures.violations.length === 0 ? 0 : 1;
}

/** The exit code. */
async function holdXmin(durationMs: number): Promise<number> {
  const intervals: Interval[] = [];
  for await (const interval of runWithHeldXmin(durationMs, durationMs / HELD_INTERVALS)) {
    intervals.push(interval);
    console.log(values.json ? JSON.stringify(plainOf(interval)) : lineOf(interval));
  }
  const [first, last] = [intervals[0], intervals.at(-1)];
  const ratios = STATEMENTS.map((kind) => {
    const [start, end] = [first?.medians.get(kind)?.ms, last?.medians.get(kind)?.ms];
    return [kind, (end ?? NaN) / (start ?? NaN)] as const;
  });
  const shown = ratios.map(([kind, ratio]) => `${kind} ${ratio.toFixed(2)}`).join(", ");
  console.log(
    values.json
      ? JSON.stringify({ kind: "ratios", ...Object.fromEntries(ratios) })
      : `end to start: ${shown}`,
  );
  return ratios.every(([kind, ratio]) => kind !== "window load" || ratio < SLOWER_MAX) ? 0 : 1;
}

function plainOf({ seconds, done, medians }: Interval): object {
  return { kind: "interval", seconds, done, ...Object.fromEntries(medians) };
}

function lineOf({ seconds, done, medians }: Interval): string {
  const each = STATEMENTS.map((kind) => {
    const { ms = NaN, seen = 0 } = medians.get(kind) ?? {};
    return `${kind} ${ms.toFixed(3)} ms (${seen})`;
  });
  return [`${String(seconds).padStart(5)} s`, `${String(done).padStart(8)} done`, ...each].join("  ");
}

function total(count: (campaign: CommitCampaign) => number): number {
  return campaigns.reduce((sum, campaign) => sum + count(campaign), 0);
}

async function run(campaign: CommitCampaign): Promise<void> {
  const violations = (): number => total((one) => one.figures.violations.length);
  while (total((one) => one.cuts) < cuts && violations() < VIOLATIONS_MAX) {
    await campaign.lead();
    if (systemClock.monotonicMs() - toldMs < TOLD_EVERY_MS) continue;
    toldMs = systemClock.monotonicMs();
    console.error(`${total((one) => one.cuts)} of ${cuts} cuts, ${violations()} violations`);
  }
  await campaign.close();
}

function inWords(
  { leaders, cuts: cutsAt, failures, outcomes, unknownThere, cutClaims, violations }: CommitFigures,
  seconds: number,
): string {
  const listed = (counts: Readonly<Record<string, number>>): string =>
    Object.entries(counts)
      .map(([name, count]) => `${count} ${name}`)
      .join(", ");
  return [
    `${leaders} leaders in ${seconds.toFixed(0)} s; commits cut: ${listed(cutsAt)}; ${failures} failed`,
    `batches answered: ${listed(outcomes)} (${unknownThere} of those are there); claims cut: ${listed(cutClaims)}`,
    violations.length === 0 ? "nothing was violated" : violations.join("\n"),
  ].join("\n");
}

function numberOf(name: string, text: string): number {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 0)
    throw new Error(`--${name} takes a whole number, not ${text}`);
  return value;
}
