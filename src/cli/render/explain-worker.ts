// Why a worker does what it does, or nothing, in sentences. Pure.
import { printable } from "../../base/safe-text.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { WorkerDetail } from "../../client/workers.ts";
import type { HintedLine } from "../shell-words.ts";
import { momentText, number, spanText } from "./quantities.ts";
import { workerWord } from "./workers.ts";

const SHOWN_ITEMS = 20;

export function workerSentences(worker: WorkerDetail, run: RunStatus, line: HintedLine): string[] {
  const word = workerWord(worker);
  const silent =
    worker.lastBeatAgeMs === undefined
      ? " Nothing was heard of it since this coordinator began to lead."
      : ` Nothing was heard of it for ${spanText(worker.lastBeatAgeMs)}.`;
  switch (word) {
    case "gone":
      return [
        "It has left in good order and gets nothing more.",
        ...(worker.trouble === undefined ? [] : [`It has left because ${printable(worker.trouble)}.`]),
        ...(worker.revoked ? ["Its certificate was revoked: it cannot come back."] : []),
      ];
    case "revoked":
      return revokedSentences(worker);
    case "failed":
      return [`It counts as lost.${silent} What it had was given back; if it speaks again, it is told.`];
    case "removed":
      return ["It was lost for so long that it is no longer waited for."];
    case "suspected":
      return [`Its heartbeat is late.${silent}`, ...holdingSentences(worker)];
    case "draining":
      return [
        "It is draining: it gets nothing new, and leaves when it is rid of what it has.",
        ...drainSentences(worker),
        ...holdingSentences(worker),
      ];
    case "init":
      return ["It has only just started: it takes work when it says that it is ready."];
    case "cordoned":
      return [
        `It is cordoned and gets nothing: ${printable(worker.cordonReason ?? "")}.`,
        ...holdingSentences(worker),
      ];
    default:
      return [...holdingSentences(worker), whyNoMore(worker, run, line)];
  }
}

/** The sentences under a head, and what the worker has; ends with a line ending. */
export function workerDetailText(
  worker: WorkerDetail,
  run: RunStatus,
  { nowMs, line }: { readonly nowMs: number; readonly line: HintedLine },
): string {
  const { workerId, slots, plugins, registeredAtMs, holds } = worker;
  const names = plugins.map(({ name, version }) => printable(`${name}@${version}`)).join(", ");
  const shown = holds.slice(0, SHOWN_ITEMS).map(({ item, attempt }) => `    ${item}  attempt ${attempt}`);
  const more = worker.held - shown.length;
  const lines = [
    `worker ${workerId}: ${workerWord(worker)}, ${slots} slot${slots === 1 ? "" : "s"}, ${names === "" ? "no plugins" : names}`,
    ...workerSentences(worker, run, line).map((sentence) => `  ${sentence}`),
    ...(shown.length === 0 ? [] : ["  It has:", ...shown]),
    ...(more > 0 && shown.length > 0 ? [`    … ${number(more)} more`] : []),
    `  It registered at ${momentText(registeredAtMs, nowMs)}.`,
  ];
  return `${lines.join("\n")}\n`;
}

const DRAIN_CAUSES: Readonly<Record<string, string>> = {
  aws: "AWS is about to take its machine away",
  gcp: "Google Cloud is about to take its machine away",
  sigterm: "its process was asked to end",
  operator: "an operator has asked for it",
  backend: "its backend does not start",
};

function drainSentences({ drain }: WorkerDetail): string[] {
  if (drain === undefined) return [];
  const why = DRAIN_CAUSES[drain.cause] ?? printable(drain.cause);
  return [`It drains because ${why}; items that still execute in ${spanText(drain.leftMs)} are abandoned.`];
}

/** Until it counts as lost it may execute what it has. */
function revokedSentences({ held }: WorkerDetail): string[] {
  const revoked = "Its certificate was revoked: nothing of it is taken any more, and it cannot come back.";
  if (held === 0) return [`${revoked} It has no items.`];
  const items = held === 1 ? "1 item, which goes" : `${number(held)} items, which go`;
  return [`${revoked} It has ${items} to others when it counts as lost.`];
}

function holdingSentences({ held, slots, failuresInRow, lastBeatAgeMs, trouble }: WorkerDetail): string[] {
  const has = held === 0 ? "It has no items" : `It has ${number(held)} item${held === 1 ? "" : "s"}`;
  const beat =
    lastBeatAgeMs === undefined
      ? "was not heard of since this coordinator began to lead"
      : `was last heard of ${spanText(lastBeatAgeMs)} ago`;
  return [
    `${has} for ${number(slots)} slot${slots === 1 ? "" : "s"}, and ${beat}.`,
    ...(trouble === undefined ? [] : [`It has trouble: ${printable(trouble)}.`]),
    ...(failuresInRow === 0 ? [] : [`Its last ${number(failuresInRow)} attempts failed.`]),
  ];
}

/** Why a worker that could take more gets none. */
function whyNoMore(
  { credit, hasSession, plugins, unfitReason }: WorkerDetail,
  run: RunStatus,
  line: HintedLine,
): string {
  const plugin = run.task?.plugin ?? "";
  if (!hasSession && credit === 0) return "It has not asked for work: it beats, and has no session.";
  if (run.state === "paused") {
    const why =
      run.pauseReason === undefined || run.pauseReason === "" ? "" : ` (${printable(run.pauseReason)})`;
    return `The run is paused${why}: nothing is given out until \`${line("resume")}\`.`;
  }
  if (plugin !== "" && !plugins.some(({ name }) => name === plugin)) {
    return `It gets nothing: the run needs the plugin ${printable(plugin)}, which it does not have.`;
  }
  if (unfitReason !== undefined) return `It gets nothing: ${printable(unfitReason)}.`;
  if (credit === 0) return "It gets nothing more because it is full.";
  const room = `It has room for ${number(credit)} more`;
  if (run.pending === 0) return `${room}, and nothing is waiting.`;
  if (run.pending === run.delayed) return `${room}, and what is waiting may not start yet.`;
  return `${room}, and is given what is waiting.`;
}
