// A release for a terminal: its stages, each metric with both intervals and the margin drawn, why it stands where it stands, and what
// is needed next.
import { printable } from "../../base/safe-text.ts";
import { isReleaseOver } from "../../client/releases.ts";
import type { Release, ReleaseMetric, ReleaseStage, ReleaseSummary } from "../../client/releases.ts";
import type { HintedLine } from "../shell-words.ts";
import { momentText, number, renderAge } from "./quantities.ts";
import { renderTable } from "./table.ts";

const TRACK_CHARACTERS = 41;
const RATES = ["errors", "slower"];

/** Ends with a line ending. */
export function releaseText(release: Release, line: HintedLine, nowMs: number): string {
  const { plugin, stableVersion, candidateVersion, stages, metrics, workers } = release;
  const versions = `${stableVersion === "" ? "" : `${stableVersion} to `}${candidateVersion}`;
  const head = `release ${release.release}: ${printable(plugin)} ${printable(versions)}, begun ${momentText(release.createdAtMs, nowMs)}`;
  const crew =
    workers === undefined || isReleaseOver(release)
      ? []
      : [`${workers.withCandidate} of ${workers.ready} ready workers have both versions`];
  return [
    head,
    `  ${stateSentence(release)}`,
    ...(release.reason === "" ? [] : [`  ${printable(release.reason)}`]),
    "",
    ...tableLines(stages, nowMs),
    "",
    ...metrics.flatMap(metricLines),
    ...[...crew, ...nextSentences(release, line)].map((sentence) => `  ${sentence}`),
  ]
    .map((text) => `${text}\n`)
    .join("");
}

/** The table, or a sentence when there is none to show. */
export function releasesText(releases: readonly ReleaseSummary[], line: HintedLine, nowMs: number): string {
  if (releases.length === 0)
    return `No release yet: \`${line("release", "create", "--plugin", "MANIFEST")}\` begins one.\n`;
  return renderTable<ReleaseSummary>(
    [
      { title: "release", value: ({ release }) => release },
      { title: "plugin", value: ({ plugin }) => plugin },
      { title: "from", value: ({ stableVersion }) => stableVersion },
      { title: "to", value: ({ candidateVersion }) => candidateVersion },
      { title: "state", value: ({ state }) => stateWords(state) },
      { title: "stage", value: ({ stage, stages }) => `${stage} of ${stages}` },
      { title: "begun", value: ({ createdAtMs }) => renderAge(nowMs - createdAtMs) },
      { title: "why", value: ({ reason }) => (reason === "" ? "-" : reason) },
    ],
    releases,
  );
}

/** One line of how it stands, for those who look at the run. */
export function releaseLine(release: ReleaseSummary): string {
  const { candidateVersion, stage, stages, state, share, reason } = release;
  const where = isReleaseOver(release) ? "" : `, stage ${stage} of ${stages} (${share})`;
  return `release of version ${printable(candidateVersion)}: ${stateWords(state)}${where}${reason === "" ? "" : `: ${printable(reason)}`}`;
}

/** A rate in percent, a number in its own unit. */
export function metricAmount(metric: string, value: number): string {
  return RATES.includes(metric) ? `${significant(value * 100)} %` : significant(value);
}

function stateWords(state: Release["state"]): string {
  return state.replace("_", " ");
}

function stateSentence({ state, stage, stages, by, endedAtMs }: Release): string {
  const who = by === undefined ? "" : ` (last decided by ${printable(by)})`;
  const where = `stage ${stage} of ${stages.length}`;
  if (endedAtMs === undefined) return `${stateWords(state)} in ${where}${who}`;
  return `${stateWords(state)}${state === "completed" ? "" : ` in ${where}`}${who}`;
}

function tableLines(stages: readonly ReleaseStage[], nowMs: number): string[] {
  const promoted = ({ promotedBy, promotedAtMs }: ReleaseStage): string =>
    promotedAtMs === undefined ? "-" : `by ${promotedBy ?? "unknown"}, ${renderAge(nowMs - promotedAtMs)}`;
  return renderTable<ReleaseStage>(
    [
      { title: "stage", value: ({ stage }) => String(stage), align: "right" },
      { title: "share", value: ({ share }) => share },
      { title: "phase", value: ({ phase }) => phase },
      { title: "tried", value: ({ tried }) => number(tried), align: "right" },
      { title: "judged", value: ({ judged }) => number(judged), align: "right" },
      { title: "open", value: ({ open }) => number(open), align: "right" },
      { title: "promoted", value: promoted },
    ],
    stages,
  )
    .trimEnd()
    .split("\n")
    .map((text) => `  ${text}`);
}

function metricLines(metric: ReleaseMetric): string[] {
  const { stable, candidate, difference, verdict, maxWorse } = metric;
  if (stable === undefined || candidate === undefined || difference === undefined) return [];
  const amount = (value: number): string => metricAmount(metric.metric, value);
  const worse = `worse by ${amount(difference.lower)} to ${amount(difference.upper)}, ${amount(maxWorse)} allowed: ${verdict}`;
  const scale = scaleOf(metric);
  const row = (name: string, arm: typeof stable, mark: string): string => {
    const value = arm.value === undefined ? "nothing yet" : `${amount(arm.value)} of ${number(arm.n)}`;
    return `    ${name.padEnd(9)} ${drawn(arm, scale, mark)}  ${value}, ${amount(arm.lower)} to ${amount(arm.upper)}`;
  };
  return [
    `  ${printable(metric.metric)}  ${worse}`,
    row("stable", stable, "o"),
    row("candidate", candidate, "x"),
    "",
  ];
}

interface Scale {
  readonly low: number;
  readonly high: number;
  /** The candidate's mean may be just there; undefined while stable has none. */
  readonly margin: number | undefined;
}

/** Both intervals and the margin fit. */
function scaleOf({ metric, stable, candidate, difference, maxWorse }: ReleaseMetric): Scale {
  const [lows, highs] = [
    [stable?.lower ?? 0, candidate?.lower ?? 0],
    [stable?.upper ?? 1, candidate?.upper ?? 1],
  ];
  const [own, other] = [stable?.value, candidate?.value];
  // More is worse, unless a candidate with a higher number is said to be better.
  const isLowerWorse =
    !RATES.includes(metric) &&
    own !== undefined &&
    other !== undefined &&
    difference?.value !== undefined &&
    (other - own) * difference.value < 0;
  const margin = own === undefined ? undefined : isLowerWorse ? own - maxWorse : own + maxWorse;
  const known = margin === undefined ? [] : [margin];
  return { low: Math.min(...lows, ...known), high: Math.max(...highs, ...known), margin };
}

/** `[---o----]` between the bounds, and `|` where the margin is. */
function drawn(
  {
    lower,
    upper,
    value,
  }: { readonly lower: number; readonly upper: number; readonly value: number | undefined },
  { low, high, margin }: Scale,
  mark: string,
): string {
  const at = (one: number): number =>
    high <= low ? 0 : Math.round(((one - low) / (high - low)) * (TRACK_CHARACTERS - 1));
  const track = Array.from({ length: TRACK_CHARACTERS }, () => " ");
  for (let column = at(lower); column <= at(upper); column++) track[column] = "-";
  track[at(lower)] = "[";
  track[at(upper)] = "]";
  if (margin !== undefined) track[at(margin)] = "|";
  if (value !== undefined) track[at(value)] = mark;
  return track.join("");
}

function nextSentences({ state, stage }: Release, line: HintedLine): string[] {
  switch (state) {
    case "held":
      return [
        `\`${line("release", "resume")}\` lets it go on, \`${line("release", "promote")}\` ends stage ${stage} without a verdict, \`${line("release", "abort")}\` ends the release.`,
      ];
    case "rolling":
      return [`\`${line("release", "pause")}\` holds it, \`${line("release", "abort")}\` ends it.`];
    case "completed":
      return ["All items get the candidate. To go back, begin a release with the version before."];
    default:
      return [];
  }
}

function significant(value: number): string {
  const text = String(Number(value.toPrecision(3)));
  return text === "-0" ? "0" : text;
}
