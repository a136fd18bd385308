// How far a run is, in a few lines for a terminal or in one for a pipe. Pure: what is shown comes in, texts go out. Keeps true:
// no share above the whole, none rounded up to it, and no time that the evidence does not give.
import { printable } from "../../base/safe-text.ts";
import type { Pace, RunCounts } from "../../client/progress.ts";
import type { FailureMessage } from "../../client/run-status.ts";
import { failureMessageLines } from "./failure-messages.ts";
import { counted, durationText, number } from "./quantities.ts";

export interface ProgressView {
  readonly counts: RunCounts;
  /** By class. */
  readonly failures: Readonly<Record<string, number>>;
  /** The most frequent first. */
  readonly failureMessages: readonly FailureMessage[];
  /** Attempts beyond the first. */
  readonly reassigned: number;
  /** Items that there will be: those that are there, and those that are still to come. */
  readonly total: number;
  /** Lines that were submitted, while there are more. */
  readonly submitted: number | undefined;
  readonly pace: Pace;
  readonly elapsedMs: number;
  readonly workers: WorkerView;
  /** How the release stands, in a line; undefined while there was none. */
  readonly release: string | undefined;
  /** The reason why it does not get on; undefined when it gets on. */
  readonly situation: string | undefined;
}

export interface WorkerView {
  readonly ready: number;
  readonly draining: number;
  readonly suspected: number;
  readonly failed: number;
  readonly cordoned: number;
  /** Items that execute now, and how many could. */
  readonly executing: number;
  readonly slots: number;
  /** There were workers before. */
  readonly hadSome?: boolean;
}

export interface Palette {
  readonly colour: boolean;
  /** Whether the terminal shows more than ASCII. */
  readonly unicode: boolean;
}

/** More is in the summary, and in the file of failures. */
const MESSAGES_MAX = 3;
const BAR_MIN = 10;
const BAR_MAX = 60;
const EIGHTHS = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
const STYLES = { green: 32, red: 31, yellow: 33, dim: 2 } as const;

/** Lines for a terminal of that width, without the last line's ending. */
export function progressBlock(view: ProgressView, columns: number, palette: Palette): string {
  const paint = (style: keyof typeof STYLES, text: string): string =>
    palette.colour ? `\u001b[${STYLES[style]}m${text}\u001b[0m` : text;
  const { counts, situation } = view;
  const head = ` ${shareText(view)}  ${ofText(view)}  ${durationText(view.elapsedMs)}`;
  const room = Math.min(BAR_MAX, columns - head.length - 3);
  const bar = room < BAR_MIN ? "" : paint("green", barText(shareOf(view), room, palette.unicode));
  const failed = counts.failed > 0 ? paint("red", failuresText(view)) : undefined;
  const pace = view.pace.kind === "stalled" ? paint("yellow", paceText(view)) : paceText(view);
  const lines = [
    `${bar}${head}`,
    `  ${list([`${number(counts.done)} done`, failed, ...openTexts(view)], " · ")}`,
    ...progressMessages(view).map((line) => paint("red", `  ${line}`)),
    `  ${situation === undefined ? pace : paint("yellow", printable(situation))}`,
    ...(view.release === undefined ? [] : [`  ${view.release}`]),
    paint("dim", `  ${workersText(view)}`),
  ];
  return lines.map((line) => shortened(line, columns, palette.unicode)).join("\n");
}

/** Why items fail: lines that come with the block, or behind the line. */
export function progressMessages({ failureMessages, counts }: ProgressView): string[] {
  return failureMessageLines(failureMessages, counts, MESSAGES_MAX);
}

/** The same in one line. */
export function progressLine(view: ProgressView): string {
  const { counts, situation } = view;
  const parts = [
    ofText(view, ` (${shareText(view).trim()})`),
    counts.failed > 0 ? failuresText(view) : undefined,
    situation === undefined ? paceText(view) : printable(situation),
    view.release,
  ];
  return `${durationText(view.elapsedMs)}: ${list(parts, "; ")}`;
}

/** "3 failed (2 error, 1 timeout)" */
export function failuresText({ counts, failures }: Pick<ProgressView, "counts" | "failures">): string {
  const classes = Object.entries(failures)
    .filter(([, count]) => count > 0)
    .sort(([, left], [, right]) => right - left)
    .map(([name, count]) => `${number(count)} ${printable(name)}`);
  const known = classes.length === 0 ? "" : ` (${classes.join(", ")})`;
  return `${number(counts.failed)} failed${known}`;
}

function shareOf({ counts, total }: ProgressView): number {
  return total === 0 ? 0 : Math.min(1, (counts.done + counts.failed) / total);
}

/** Rounded down: it is all only when it is all. */
function shareText(view: ProgressView): string {
  return `${String(Math.floor(shareOf(view) * 100)).padStart(3)}%`;
}

/** "92 of 3,000 done (3%), 0 submitted so far"; items that have failed are not done, so they make it "finished". */
function ofText(view: ProgressView, share = ""): string {
  const { counts, total, submitted } = view;
  const word = counts.failed > 0 ? "finished" : "done";
  const finished = `${number(counts.done + counts.failed)} of ${number(total)} ${word}${share}`;
  return submitted === undefined ? finished : `${finished}, ${number(submitted)} submitted so far`;
}

function openTexts({ counts }: ProgressView): (string | undefined)[] {
  const later = counts.delayed > 0 ? ` (${number(counts.delayed)} after a failure)` : "";
  return [
    counts.running > 0 ? `${number(counts.running)} with workers` : undefined,
    counts.pending > 0 ? `${number(counts.pending)} waiting${later}` : undefined,
    insideOpen(counts) > 0 ? `${number(insideOpen(counts))} inside` : undefined,
  ];
}

/** Items between actors that are not final. */
function insideOpen({ inside }: RunCounts): number {
  return inside === undefined ? 0 : inside.pending + inside.running;
}

/** "waits for 12 timers, the next in 29d 0h" */
export function timersText({ armed, nextInMs }: NonNullable<RunCounts["timers"]>): string {
  const which = armed === 1 ? "1 timer, due" : `${number(armed)} timers, the next`;
  return `waits for ${which} ${nextInMs < 1_000 ? "now" : `in ${durationText(nextInMs)}`}`;
}

/** "14/s, 2m to 3m left", or why nothing can be said. */
export function paceText({ pace, counts }: Pick<ProgressView, "pace" | "counts">): string {
  switch (pace.kind) {
    case "unknown":
      if (counts.pending + counts.running + insideOpen(counts) > 0) return "no estimate yet";
      return counts.timers === undefined ? "nothing is left to do" : timersText(counts.timers);
    case "stalled":
      return `nothing has finished for ${durationText(pace.forMs)}`;
    case "steady":
      return `${rateText(pace.perSecond)}, ${leftText(pace.left)}`;
  }
}

/** In the unit in which it is at least one. */
function rateText(perSecond: number): string {
  if (perSecond >= 1) return `${significant(perSecond)}/s`;
  return perSecond * 60 >= 1 ? `${significant(perSecond * 60)}/min` : `${significant(perSecond * 3_600)}/h`;
}

function significant(value: number): string {
  return value >= 10 ? number(Math.round(value)) : value.toFixed(1);
}

function leftText({
  atLeastMs,
  atMostMs,
}: {
  readonly atLeastMs: number;
  readonly atMostMs: number | undefined;
}): string {
  const least = roughly(atLeastMs, Math.floor);
  if (atMostMs === undefined) return `more than ${least} left`;
  const most = roughly(atMostMs, Math.ceil);
  return least === most ? `about ${most} left` : `${least} to ${most} left`;
}

/** No finer than a range deserves: seconds, five seconds, minutes, quarters of an hour, hours. */
const GRAINS = [
  { belowMs: 20_000, ms: 1_000 },
  { belowMs: 120_000, ms: 5_000 },
  { belowMs: 7_200_000, ms: 60_000 },
  { belowMs: 43_200_000, ms: 900_000 },
  { belowMs: Infinity, ms: 3_600_000 },
] as const;

function roughly(ms: number, round: (value: number) => number): string {
  const grain = GRAINS.find(({ belowMs }) => ms < belowMs)?.ms ?? 1_000;
  const rounded = Math.max(1, round(ms / grain)) * grain;
  // The smaller unit of whole minutes and hours says nothing.
  return durationText(rounded).replace(/ 0+[sm]$/, "");
}

function workersText({ workers, reassigned }: ProgressView): string {
  const { ready, draining, suspected, failed, cordoned, executing, slots } = workers;
  const all = ready + draining + suspected + failed;
  if (all === 0) return workers.hadSome === true ? "no workers now" : "no workers yet";
  const states = [
    draining > 0 ? `${draining} draining` : undefined,
    suspected > 0 ? `${suspected} suspected` : undefined,
    failed > 0 ? `${failed} failed` : undefined,
    cordoned > 0 ? `${cordoned} cordoned` : undefined,
  ];
  const notes = list(states, ", ");
  const busy = slots > 0 ? `${executing} of ${counted(slots, "slot")} busy` : `${executing} executing`;
  return list(
    [
      `${all} worker${all === 1 ? "" : "s"}${notes === "" ? "" : ` (${notes})`}`,
      busy,
      reassigned > 0 ? `${number(reassigned)} attempt${reassigned === 1 ? "" : "s"} repeated` : undefined,
    ],
    " · ",
  );
}

function list(parts: readonly (string | undefined)[], separator: string): string {
  return parts.filter((part) => part !== undefined && part !== "").join(separator);
}

function barText(share: number, width: number, unicode: boolean): string {
  const inner = width - 2;
  const eighths = Math.floor(share * inner * 8);
  const full = Math.floor(eighths / 8);
  if (!unicode) return `[${"#".repeat(full).padEnd(inner, ".")}]`;
  const bar = `${"█".repeat(full)}${EIGHTHS[eighths % 8] ?? ""}`;
  return `▕${bar.padEnd(inner)}▏`;
}

/** Cut with a sign that it is. Colours take no room. */
function shortened(line: string, columns: number, unicode: boolean): string {
  const plain = line.replace(/\u001b\[[\d;]*m/g, "");
  const text = unicode ? line : line.replaceAll(" · ", ", ");
  if (Array.from(plain).length <= columns) return text;
  const mark = unicode ? "…" : "~";
  let room = columns - 1;
  let isCut = false;
  return text.replace(/\u001b\[[\d;]*m|./gsu, (part) => {
    if (part.startsWith("\u001b") || room-- > 0) return part;
    if (isCut) return "";
    isCut = true;
    return mark;
  });
}
