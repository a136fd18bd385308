// A release before it begins, or just begun: its stages, and what it can show with the items that are left; for a terminal and for programs.
import type { MetricSpec } from "../../base/statistics/metric.ts";
import { formatPercent } from "../../config/percent.ts";
import type { ReleaseProspect } from "../../config/release-prospect.ts";
import type { ReleaseSpec, StageSpec } from "../../config/release.ts";
import type { HintedLine } from "../shell-words.ts";
import { number } from "./quantities.ts";
import { metricAmount } from "./release.ts";
import { renderTable } from "./table.ts";

export interface PlannedRelease {
  /** Undefined where nothing has begun. */
  readonly release: string | undefined;
  readonly plugin: string;
  readonly stableVersion: string;
  readonly candidateVersion: string;
  readonly itemsLeft: number;
  readonly spec: ReleaseSpec;
  readonly detects: ReleaseProspect;
}

/** Ends with a line ending. `advice`: how it would be provable, where it is not. */
export function plannedText(planned: PlannedRelease, line: HintedLine): string {
  const { release, plugin, stableVersion, candidateVersion, itemsLeft, spec, detects } = planned;
  const from = stableVersion === "" ? "" : `${stableVersion} to `;
  const head =
    release === undefined
      ? `A release of ${plugin} from ${from}${candidateVersion} would begin; nothing was changed.`
      : `Release ${release} has begun: ${plugin} from ${from}${candidateVersion}.`;
  const items = itemsLeft === 1 ? "1 item is left" : `${number(itemsLeft)} items are left`;
  const next = release === undefined ? [] : [`\`${line("release", "status", "-w")}\` shows how it goes.`];
  return [
    `${head}\n${items}.\n`,
    renderTable(
      [
        { title: "stage", value: ({ at }) => String(at + 1), align: "right" },
        { title: "candidate gets", value: ({ stage }) => shareText(stage) },
        { title: "items to try", value: ({ at }) => triesText(detects, at), align: "right" },
      ],
      spec.stages.map((stage, at) => ({ stage, at })),
    ),
    ...[...detects.metrics.map(metricSentence), ...next].map((sentence) => `${sentence}\n`),
  ].join("");
}

/** As `--json` has it. */
export function plannedObject(planned: PlannedRelease): object {
  const { release, plugin, stableVersion, candidateVersion, itemsLeft, spec, detects } = planned;
  return {
    ...{ release: release ?? null, plugin },
    ...{ stable_version: stableVersion, candidate_version: candidateVersion, items_left: itemsLeft },
    stages: spec.stages.map((stage, at) => ({
      ...{ stage: at + 1, share: shareText(stage), min_items: stage.minItems, min_time_ms: stage.minTimeMs },
      ...{ max_items: stage.maxItems ?? null, tries: detects.stages[at]?.tries ?? null },
    })),
    detects: {
      provable: detects.isProvable,
      metrics: detects.metrics.map(({ metric, assumed, shows, proofItems }) => ({
        ...{ metric: nameOf(metric), max_worse: metric.maxWorse, assumed },
        ...{ shows: shows ?? null, items_for_proof: proofItems ?? null },
      })),
    },
  };
}

/** Why it will not come to its end by itself, and what to type instead; none where it can. */
export function doubtsAbout(planned: PlannedRelease, instead: string | undefined): string[] {
  const { detects, spec, itemsLeft } = planned;
  const short = detects.stages.findIndex(({ isEnough }) => !isEnough);
  const [stage, prospect] = [spec.stages[short], detects.stages[short]];
  const type =
    instead === undefined ? "a person can promote it: `rollout release promote`" : `try ${instead}`;
  if (stage !== undefined && prospect !== undefined)
    return [
      `Stage ${short + 1} needs ${number(stage.minItems)} items of the candidate, and ${shareText(stage)} of what is left for it are ${number(prospect.tries)}: it will not be promoted by itself; ${type}.`,
    ];
  if (detects.isProvable) return [];
  return [
    `With ${number(itemsLeft)} items left it cannot be proven that the candidate is not worse, so the release will wait before all items; ${type}.`,
  ];
}

function metricSentence({ metric, assumed, shows, proofItems }: ReleaseProspect["metrics"][number]): string {
  const amount = (value: number): string => metricAmount(nameOf(metric), value);
  const found =
    shows === undefined
      ? "it finds no difference for sure"
      : `it finds a candidate that is worse by ${amount(shows)} or more`;
  const proof =
    proofItems === undefined
      ? `no number of items proves that it is not worse by ${amount(metric.maxWorse)}`
      : `about ${number(proofItems)} items prove that it is not worse by ${amount(metric.maxWorse)}`;
  const given =
    metric.kind === "number" ? `a deviation of ${amount(assumed)}` : `${amount(assumed)} in the old version`;
  return `${nameOf(metric)}: ${found}; ${proof} (with ${given}).`;
}

function triesText({ stages }: ReleaseProspect, at: number): string {
  const prospect = stages[at];
  if (prospect === undefined) return "all that are left";
  return prospect.isEnough ? number(prospect.tries) : `${number(prospect.tries)}, too few`;
}

function shareText(stage: StageSpec): string {
  if (stage.kind === "items") return stage.share === 1 ? "100%" : formatPercent(stage.share);
  return stage.workers === 1 ? "1 worker" : `${stage.workers} workers`;
}

function nameOf(metric: MetricSpec): string {
  return metric.kind === "number" ? metric.name : metric.kind;
}
