// The command that would do in place of a release that cannot be proven with the items that are left.
import type { HintedLine } from "../cli/shell-words.ts";
import { shownPath } from "../cli/shell-words.ts";
import { formatPercent } from "../config/percent.ts";
import { prospectOf } from "../config/release-prospect.ts";
import type { ReleaseSpec } from "../config/release.ts";
import type { CreatedRelease } from "./releases.ts";

/** Fewer stages first, then wider margins. */
const SHARES: readonly (readonly number[])[] = [[0.1, 0.5], [0.5]];
const MARGINS = [0.01, 0.02, 0.05, 0.1, 0.2];

/** A command with which as many items are enough; undefined when there is none, or the release can be proven as it is. */
export function provableInstead(
  { detects, itemsLeft, spec }: CreatedRelease,
  manifestFile: string,
  line: HintedLine,
): string | undefined {
  const isReachable = detects.stages.every(({ isEnough }) => isEnough);
  const own = spec.metrics.find(({ kind }) => kind === "errors")?.maxWorse ?? 0;
  if ((isReachable && detects.isProvable) || spec.metrics.some(({ kind }) => kind !== "errors"))
    return undefined;
  const assumed = detects.metrics[0]?.assumed ?? 0;
  const facts = { itemsLeft, readyWorkers: 0, attempts: 1e6, failed: assumed * 1e6 };
  for (const maxWorse of [own, ...MARGINS.filter((margin) => margin > own)])
    for (const shares of SHARES) {
      const prospect = prospectOf(specWith(spec, shares, maxWorse), facts);
      if (!prospect.isProvable || !prospect.stages.every(({ isEnough }) => isEnough)) continue;
      const stages = shares.map(formatPercent).join(",");
      const words = ["--plugin", shownPath(manifestFile), "--stages", stages];
      return `\`${line("release", "create", ...words, "--max-worse", formatPercent(maxWorse))}\``;
    }
  return undefined;
}

function specWith(spec: ReleaseSpec, shares: readonly number[], maxWorse: number): ReleaseSpec {
  const demands = { minItems: 100, minTimeMs: 10_000, maxItems: undefined };
  const stages = [...shares, 1].map((share) => ({ ...demands, kind: "items" as const, share }));
  return { ...spec, stages, metrics: [{ kind: "errors", maxWorse }] };
}
