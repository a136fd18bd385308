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
      ? " It was not heard since this coordinator began to lead."
      : ` It was last heard ${spanText(worker.lastBeatAgeMs)} ago.`;
  switch (word) {
    case "gone":
      return [
        "It has drained and left, and gets no more items.",
        ...(worker.trouble === undefined ? [] : [`It left because ${printable(worker.trouble)}.`]),
        ...(worker.revoked ? ["Its certificate was revoked: it cannot come back."] : []),
      ];
    case "revoked":
      return revokedSentences(worker);
    case "failed":
      return [`It has failed.${silent} Its items were taken back; if it is heard again, it is told which.`];
    case "removed":
      return ["It failed or left so long ago that the coordinator has forgotten it."];
    case "suspected":
      return [`Its heartbeat is late.${silent}`, ...holdingSentences(worker)];
    case "draining":
      return [
        "It is draining: it gets no new items, and leaves when it has finished or handed back those that it has.",
        ...drainSentences(worker),
        ...holdingSentences(worker),
      ];
    case "init":
      return ["It is starting: it gets items when it reports that it is ready."];
    case "cordoned":
      return [
        `It is cordoned and gets no items: ${printable(worker.cordonReason ?? "")}.`,
        ...holdingSentences(worker),
      ];
    default:
      return [...holdingSentences(worker), whyNoMore(worker, run, line), ...releaseSentences(worker, run)];
  }
}

/** The sentences under a head, those about its fleet behind, and what the worker has; ends with a line ending. */
export function workerDetailText(
  worker: WorkerDetail,
  run: RunStatus,
  {
    nowMs,
    line,
    ofFleet = [],
  }: { readonly nowMs: number; readonly line: HintedLine; readonly ofFleet?: readonly string[] },
): string {
  const { workerId, slots, plugins, registeredAtMs, holds } = worker;
  const names = plugins.map(({ name, version }) => printable(`${name}@${version}`)).join(", ");
  const shown = holds.slice(0, SHOWN_ITEMS).map(({ item, attempt }) => `    ${item}  attempt ${attempt}`);
  const more = worker.held - shown.length;
  const lines = [
    `worker ${workerId}: ${workerWord(worker)}, ${slots} slot${slots === 1 ? "" : "s"}, ${names === "" ? "no plugins" : names}`,
    ...[...workerSentences(worker, run, line), ...ofFleet].map((sentence) => `  ${sentence}`),
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
  orphan: "no coordinator answered for worker.orphan_timeout",
  lifetime: "it has been there for worker.leave_after",
  idle: "it had nothing to do for worker.idle_timeout",
};

function drainSentences({ drain }: WorkerDetail): string[] {
  if (drain === undefined) return [];
  const why = DRAIN_CAUSES[drain.cause] ?? printable(drain.cause);
  return [`It drains because ${why}; items that still execute in ${spanText(drain.leftMs)} are abandoned.`];
}

/** Until it counts as lost it may execute what it has. */
function revokedSentences({ held }: WorkerDetail): string[] {
  const revoked =
    "Its certificate was revoked: the coordinator accepts nothing from it, and it cannot come back.";
  if (held === 0) return [`${revoked} It has no items.`];
  const items = held === 1 ? "1 item, which goes" : `${number(held)} items, which go`;
  return [`${revoked} It has ${items} to other workers when it counts as failed.`];
}

function holdingSentences({ held, slots, failuresInRow, lastBeatAgeMs, trouble }: WorkerDetail): string[] {
  const has = held === 0 ? "It has no items" : `It has ${number(held)} item${held === 1 ? "" : "s"}`;
  const beat =
    lastBeatAgeMs === undefined
      ? "was not heard since this coordinator began to lead"
      : `was last heard ${spanText(lastBeatAgeMs)} ago`;
  return [
    `${has} for ${number(slots)} slot${slots === 1 ? "" : "s"}, and ${beat}.`,
    ...(trouble === undefined ? [] : [`It reports a problem: ${printable(trouble)}.`]),
    ...(failuresInRow === 0 ? [] : [`Its last ${number(failuresInRow)} attempts failed.`]),
  ];
}

/** The coordinator has looked at its versions. */
function releaseSentences({ releasePart }: WorkerDetail, { release }: RunStatus): string[] {
  if (releasePart === undefined || release === undefined) return [];
  const tries = `Release ${release.release} tries version ${printable(release.candidateVersion)}`;
  return [`${tries}: ${printable(releasePart)}.`];
}

/** Why a worker that could take more gets none. */
function whyNoMore(
  { credit, hasSession, plugins, unfitReason }: WorkerDetail,
  run: RunStatus,
  line: HintedLine,
): string {
  const plugin = run.task?.plugin ?? "";
  if (!hasSession && credit === 0)
    return "It sends heartbeats but has no session, so it has not asked for items.";
  if (run.state === "paused") {
    const why =
      run.pauseReason === undefined || run.pauseReason === "" ? "" : ` (${printable(run.pauseReason)})`;
    return `The run is paused${why}: nothing is assigned until \`${line("resume")}\`.`;
  }
  if (plugin !== "" && !plugins.some(({ name }) => name === plugin)) {
    return `It gets no items: the run needs the plugin ${printable(plugin)}, which it does not have.`;
  }
  if (unfitReason !== undefined) return `It gets no items: ${printable(unfitReason)}.`;
  if (credit === 0) return "It gets no more items because it is full.";
  const room = `It has room for ${number(credit)} more`;
  if (run.pending === 0) return `${room}, and no item is waiting.`;
  if (run.pending === run.delayed) return `${room}, but the items that wait may not start yet.`;
  return `${room}, and gets the items that wait.`;
}
