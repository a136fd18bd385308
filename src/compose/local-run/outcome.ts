// The outcome of a local run, for a person, for a program and as an exit code.
import { resolve } from "node:path";
import { unreachable } from "../../base/assert.ts";
import { EXIT } from "../../base/error-row.ts";
import type { ExitCode } from "../../base/error-row.ts";
import type { ErrorCode } from "../../base/errors.ts";
import { printable } from "../../base/safe-text.ts";
import { failureMessageLines } from "../../cli/render/failure-messages.ts";
import { durationText, number } from "../../cli/render/quantities.ts";
import { failuresText } from "../../cli/render/progress.ts";
import { setAsideText } from "../../cli/render/run-status.ts";
import type { FailedInside } from "../../cli/results/result-sink.ts";
import { hintedLine, shellWords, shownPath } from "../../cli/shell-words.ts";
import { jsonOf } from "../../client/operator-message.ts";
import { FailureMessageSchema } from "../../gen/rollout/v1/run_pb.ts";
import type { MemberError } from "./kept-process.ts";
import type { LocalRunEnd, LocalRunSummary } from "./request.ts";
import type { ResultFiles } from "./result-files.ts";

const MESSAGES_MAX = 5;
const BACKEND_BROKEN: ErrorCode = "backend_broken";
/** There may be room again. */
const WRITE_FAILED: ErrorCode = "store_write_failed";

export interface Outcome {
  readonly exit: ExitCode;
  /** The error that it ended with; said to programs too. */
  readonly error?: string;
  /** Lines for a person, behind it. */
  readonly lines: readonly string[];
  /** The stable form of `--json`, in docs/results.md. */
  readonly object: object;
}

/** `again` is the same command with more words before what stands after `--`. */
export function outcomeOf(
  summary: LocalRunSummary,
  files: ResultFiles,
  again: (...words: string[]) => string,
): Outcome {
  const { end, counts, submitted, directory } = summary;
  const { done = 0, failed = 0, pending = 0, running = 0, setAside = 0 } = counts ?? {};
  const { failed: failedInside, unheard } = summary.failedInside ?? { failed: 0, unheard: 0 };
  const account = {
    state: end.kind === "already" ? "complete" : end.kind,
    total: done + failed + pending + running,
    done,
    failed,
    failed_by_class: counts?.failedByClass ?? {},
    failure_messages: (counts?.failureMessages ?? []).map((each) => jsonOf(FailureMessageSchema, each)),
    failed_inside: failedInside,
    pending,
    running,
    set_aside: setAside,
    added: submitted?.added ?? null,
    known: submitted?.known ?? null,
    started_again: summary.reassigned,
    pause_reason: end.kind === "paused" ? end.reason : null,
    output: files.output ?? null,
    errors: failed + failedInside > 0 ? (files.errors ?? null) : null,
    directory: resolve(directory),
    duration_ms: Math.round(summary.elapsedMs),
  };
  // Results that stand on standard output too have no field of this name.
  const object = files.output === undefined ? { summary: account } : account;
  const lines = [...headline(summary, files), ...failureLines(summary, files, again)];
  switch (end.kind) {
    case "complete":
    case "already":
      if (setAside > 0) return { exit: EXIT.storage, lines: [...lines, setAsideText({ setAside })], object };
      return { exit: failed + unheard > 0 ? EXIT.itemsFailed : EXIT.done, lines, object };
    case "cancelled":
      return { exit: EXIT.itemsFailed, lines: [...lines, forMore(summary, files)], object };
    case "interrupted":
      return { exit: EXIT.interrupted, lines: [...lines, goOn(again)], object };
    case "paused":
      return { exit: EXIT.paused, lines: [...lines, goOn(again)], object };
    case "parked":
      return { exit: EXIT.itemsFailed, lines: [...lines, ...parkedLines(end, directory, again)], object };
    case "helped":
      return {
        exit: exitOfHelp(end.how, failed),
        lines: [...headline(summary, files), ...(end.how === "left" ? [goOn(again)] : [])],
        object,
      };
    case "given-up": {
      const { error, exit } = end.reason;
      const { code, message } = error;
      const hint = hintOf(error);
      const line = `error: ${printable(message)} (${printable(hint)})`;
      return {
        exit: exitOf(exit),
        error: line,
        lines: goesOn(end) ? [goOn(again)] : [],
        object: { ...object, error: { code, message, hint } },
      };
    }
    default:
      return unreachable(end, "end of a local run");
  }
}

function headline(summary: LocalRunSummary, files: ResultFiles): string[] {
  const { end, counts, elapsedMs } = summary;
  if (end.kind === "helped") return [HELPED[end.how]];
  if (counts === undefined) return end.kind === "interrupted" ? ["interrupted before anything was done"] : [];
  const where = files.output === undefined ? "" : `: ${shownPath(files.output)}`;
  const all = counts.done + counts.failed + counts.pending + counts.running;
  const share = `${number(counts.done)} of ${number(all)} done`;
  const { items = all } = summary;
  const part = all > items ? ` (${number(items)} of them are of this input)` : "";
  switch (end.kind) {
    case "complete":
      return [
        `${doneText(summary, counts)} in ${durationText(elapsedMs)}${where}${othersText(summary, counts)}`,
      ];
    case "already":
      return [`nothing to do: ${doneText(summary, counts)} before${where}${othersText(summary, counts)}`];
    case "cancelled": {
      const wanted = Math.max(all, items);
      const never = wanted - counts.done - counts.failed;
      const rest = never === 0 ? "" : `, ${number(never)} never ran`;
      return [`cancelled: ${number(counts.done)} of ${number(wanted)} done${rest}${where}`];
    }
    case "interrupted":
      return [`interrupted: ${share}${part}${where}`];
    case "paused":
      return [`paused (${printable(end.reason)}), so this ends with code 5: ${share}${part}${where}`];
    case "parked":
      return [`not complete: ${share}${part}${where}`];
    case "given-up":
      return [];
    default:
      return unreachable(end, "end of a local run");
  }
}

/** The outcome of a run is said where it was started. */
const HELPED = {
  complete: "the run is complete, and the added workers have left",
  cancelled: "the run was cancelled, and the added workers have left",
  paused: "the run was paused, and the added workers have left",
  interrupted: "the added workers have left; the run goes on without them",
  left: "the process that has the run has ended before the run, and the added workers have left",
} as const;

function exitOfHelp(how: keyof typeof HELPED, failed: number): ExitCode {
  if (how === "interrupted" || how === "left") return EXIT.interrupted;
  if (how === "paused") return EXIT.paused;
  return how === "cancelled" || failed > 0 ? EXIT.itemsFailed : EXIT.done;
}

interface Final {
  readonly done: number;
  readonly failed: number;
}

/** Where others have failed nobody has counted which of them are of this input. */
function doneText({ end, submitted, ...summary }: LocalRunSummary, { done, failed }: Final): string {
  const were = end.kind === "already" ? " were" : "";
  const all = done + failed;
  const { items = all } = summary;
  if (all > items && failed === 0) return `${number(items)} of this input's ${number(items)}${were} done`;
  if (all > items) return `this input's ${number(items)}${were} all tried`;
  const { added, known } = submitted ?? { added: 0, known: 0 };
  const news = added > 0 && known > 0 ? ` (${number(added)} of them new)` : "";
  return `${number(done)} of ${number(all)}${were} done${news}`;
}

/** Items of inputs before, as they stand in the run. */
function othersText({ items }: LocalRunSummary, { done, failed }: Final): string {
  const all = done + failed;
  if (all <= (items ?? all)) return "";
  return failed === 0
    ? `, with those before ${number(all)}`
    : `, with those before ${number(done)} of ${number(all)} done`;
}

function failureLines(
  { counts, end, directory, failedItem, failedInside }: LocalRunSummary,
  files: ResultFiles,
  again: (...words: string[]) => string,
): string[] {
  if (counts === undefined || counts.failed === 0) return insideLines(failedInside, files, again);
  const text = failuresText({ counts: { ...counts, delayed: 0 }, failures: counts.failedByClass });
  const where = files.errors === undefined ? "" : `: ${shownPath(files.errors)}`;
  const isOver = end.kind === "complete" || end.kind === "already";
  // There is nothing to look into in what was only cut short.
  const isLookedInto = counts.failed > (counts.failedByClass["cancelled"] ?? 0);
  return [
    `${text}${where}`,
    ...failureMessageLines(counts.failureMessages, counts, MESSAGES_MAX).map((line) => `  ${line}`),
    ...(isLookedInto && failedItem !== undefined ? [lookText(failedItem, directory)] : []),
    ...(isOver ? [`to try them again: ${again("--retry-failed")}`] : []),
    ...(end.kind === "paused" ? [`to go on and try them again: ${again("--retry-failed")}`] : []),
    ...insideLines(failedInside && { ...failedInside, unheard: 0 }, files, again),
  ];
}

/** Failures of items that nobody submitted. One of which an actor was told is not tried again. */
function insideLines(
  { failed, unheard }: FailedInside = { failed: 0, unheard: 0 },
  { errors }: ResultFiles,
  again: (...words: string[]) => string,
): string[] {
  if (failed === 0) return [];
  const where = errors === undefined ? "" : `: ${shownPath(errors)}`;
  return [
    `${number(failed)} failed inside, between actors${where}`,
    ...(unheard > 0 ? [`to try them again: ${again("--retry-failed")}`] : []),
  ];
}

function lookText(item: string, directory: string): string {
  const line = hintedLine(shownPath(directory));
  return `to look into one: ${line("coordinator", "run")}, and in another terminal: ${line("explain", item)}`;
}

/** Keys behind whose failed item others wait. */
function parkedLines(
  { items, keys }: Extract<LocalRunEnd, { readonly kind: "parked" }>,
  directory: string,
  again: (...words: string[]) => string,
): string[] {
  const line = hintedLine(shownPath(directory));
  const who = items === 1 ? "1 item waits" : `${number(items)} items wait`;
  const what = keys === 1 ? "1 key that is parked" : `${number(keys)} keys that are parked`;
  return [
    `${who} behind ${what}, by a failed item or by \`rollout key pause\`; to see which: ${line("coordinator", "run")}, and in another terminal: ${line("key", "list", "--parked")}`,
    `to try the failed items again: ${again("--retry-failed")}`,
    `to go on without them: ${again("--on-failed", "skip")}`,
  ];
}

/** A run that was cancelled takes nothing any more. */
function forMore({ directory, counts }: LocalRunSummary, { output, errors }: ResultFiles): string {
  const files = [output, (counts?.failed ?? 0) > 0 ? errors : undefined].filter((file) => file !== undefined);
  const kept = shellWords([directory, ...files].map(shownPath));
  const way = output === undefined ? "name one with -o" : "choose another -o";
  return `a cancelled run does not go on; for more work ${way}, or remove ${kept}`;
}

/** A worker's hint is meant for somebody who starts workers. */
function hintOf({ code, hint }: MemberError): string {
  return code === BACKEND_BROKEN
    ? "correct the command or what it needs and run it again; no item was charged"
    : hint;
}

/** Whether the same command may get any further: not in a run that is cancelled, nor where something has to be corrected first. */
export function goesOn(end: LocalRunEnd): boolean {
  if (end.kind !== "given-up") return end.kind !== "cancelled";
  const { error, exit } = end.reason;
  const isToBeCorrected = exit === EXIT.usage || exit === EXIT.storage || exit === EXIT.bug;
  return !isToBeCorrected || error.code === WRITE_FAILED;
}

export function goOn(again: () => string): string {
  return `to go on: ${again()}`;
}

function exitOf(code: number | undefined): ExitCode {
  return Object.values(EXIT).find((known) => known === code) ?? EXIT.unreachable;
}
