// How far a run is, for a person.
import { printable } from "../../base/safe-text.ts";
import type { FleetSummary } from "../../client/fleets.ts";
import type { Pace } from "../../client/progress.ts";
import type { RunStatus, WorkerNumbers } from "../../client/run-status.ts";
import type { HintedLine } from "../shell-words.ts";
import { failureMessageLines } from "./failure-messages.ts";
import { number } from "./quantities.ts";
import { releaseLine } from "./release.ts";
import { paceText, timersText } from "./progress.ts";

const MESSAGES_MAX = 5;

/** A block of lines; ends with a line ending. `lack`: what all workers that are there lack, a sentence without its stop. */
export function runStatusText(status: RunStatus, pace: Pace, line: HintedLine, lack?: string): string {
  const { task, pending, running, done, failed } = status;
  const all = pending + running + done + failed + status.setAside;
  // How fast a run was that stands still says nothing.
  const isMoving = status.state !== "complete" && status.state !== "cancelled" && status.state !== "paused";
  const lines = [
    [sentenceOf(status, line), ...idleSentences(status, lack)].join(" "),
    ...(task === undefined ? [] : [`  task: ${printable(task.summary === "" ? task.plugin : task.summary)}`]),
    ...(all === 0 ? [`  no items yet: \`${line("submit")}\` adds some`] : countLines(status, all)),
    ...failureMessageLines(status.failureMessages, status, MESSAGES_MAX).map((line) => `  ${line}`),
    ...setAsideLines(status),
    ...parkedLines(status, line),
    ...insideLines(status),
    ...(status.release === undefined ? [] : [`  ${releaseLine(status.release)}`]),
    ...status.fleets.map((fleet) => `  ${fleetLine(fleet)}`),
    ...(!isMoving || all === 0 ? [] : [`  ${paceText({ pace, counts: status })}`]),
    `  ${workersText(status.workers, line)}`,
  ];
  return `${lines.filter((line) => line.trim() !== "").join("\n")}\n`;
}

function sentenceOf({ state, sealed, pauseReason }: RunStatus, line: HintedLine): string {
  switch (state) {
    case "open":
      return "The run is open: it takes more items.";
    case "sealed":
      return "The run is sealed: it ends with the last of its items.";
    case "complete":
      return "The run is complete.";
    case "cancelled":
      return "The run is cancelled.";
    case "paused": {
      const why = pauseReason === undefined || pauseReason === "" ? "" : ` (${printable(pauseReason)})`;
      return `The run is paused${why}${sealed ? ", and sealed" : ""}: \`${line("resume")}\` lets it go on.`;
    }
    case "unknown":
      return "The run is in a state that this version of rollout does not know.";
  }
}

/** Why nothing of what waits is executed, for the line that is read first. */
function idleSentences({ state, pending, workers }: RunStatus, lack: string | undefined): string[] {
  if (pending === 0 || (state !== "open" && state !== "sealed")) return [];
  if (lack !== undefined) return [`${lack}.`];
  return Object.values(workers).every((count) => count === 0) ? ["There is no worker."] : [];
}

const SET_ASIDE_SHOWN = 10;

/** A sentence. */
export function setAsideText({ setAside }: Pick<RunStatus, "setAside">): string {
  const items =
    setAside === 1 ? "1 item has no result: its row" : `${number(setAside)} items have no result: their rows`;
  return `${items} could not be read.`;
}

/** Items without a result because their rows were set aside, each with its key; empty when there are none. */
function setAsideLines({ setAside, setAsideItems }: RunStatus): string[] {
  if (setAside === 0) return [];
  const shown = setAsideItems.slice(0, SET_ASIDE_SHOWN);
  const more = setAside - shown.length;
  return [
    `  ${number(setAside)} set aside: ${setAside === 1 ? "its row" : "their rows"} could not be read, and there will be no result`,
    ...shown.map(({ item, key }) => `    item ${item.slice(0, 12)} (${printable(key)})`),
    ...(more > 0 ? [`    and ${number(more)} more`] : []),
  ];
}

/** Keys of which nothing starts, and how many items wait behind them; empty when there are none. */
function parkedLines({ keys, state }: RunStatus, line: HintedLine): string[] {
  if (keys === undefined || keys.parked + keys.parkedActions === 0 || state === "cancelled") return [];
  const who = parkedText(keys);
  const behind = keys.itemsBehindParked;
  const items = behind === 1 ? "1 item waits" : `${number(behind)} items wait`;
  const list = line("key", "list", "--parked");
  return [
    `  ${who}, and ${items} behind ${keys.parked === 1 && keys.parkedActions === 0 ? "it" : "them"}: \`${list}\` says why, \`${line("retry", "--failed")}\` tries failed items again, \`${line("key", "skip", "--all")}\` goes on without them`,
  ];
}

function parkedText({ parked, parkedActions }: NonNullable<RunStatus["keys"]>): string {
  const actors = parkedActions === 1 ? "1 actor" : `${number(parkedActions)} actors`;
  if (parked === 0) return `the named actions of ${actors} are parked`;
  const keys = parked === 1 ? "1 key" : `${number(parked)} keys`;
  if (parkedActions > 0) return `${keys} and the named actions of ${actors} are parked`;
  return `${keys} ${parked === 1 ? "is" : "are"} parked`;
}

/** Items that actors have asked for, which are in none of the counts, and timers; empty where there are none. */
function insideLines({ inside, timers, state }: RunStatus): string[] {
  const waits = timers === undefined || state === "cancelled" ? [] : [`  ${timersText(timers)}`];
  if (inside === undefined) return waits;
  const { pending, running, done, failed, stopped } = inside;
  const counts = [
    ...(failed > 0 ? [`${number(failed)} failed`] : []),
    ...(running > 0 ? [`${number(running)} with workers`] : []),
    ...(pending > 0 ? [`${number(pending)} waiting`] : []),
    ...(stopped > 0 ? [`${number(stopped)} stopped, because what they were for was left`] : []),
  ];
  return [`  inside, between actors: ${[`${number(done)} done`, ...counts].join(", ")}`, ...waits];
}

function countLines(status: RunStatus, all: number): string[] {
  const { pending, delayed, executing, done, failed, failedByClass } = status;
  const classes = Object.entries(failedByClass).map(([name, count]) => `${number(count)} ${printable(name)}`);
  const started = Math.min(executing, status.running);
  const rows = [
    { count: all, what: all === 1 ? "item" : "items", note: "" },
    { count: done, what: "done", note: "" },
    { count: failed, what: "failed", note: classes.join(", ") },
    { count: started, what: "executing", note: "" },
    { count: status.running - started, what: "assigned", note: "not started" },
    {
      count: pending,
      what: status.state === "cancelled" ? "never run" : "waiting",
      note: delayed === 0 ? "" : `${number(delayed)} of them after a failure`,
    },
  ].filter(({ count, what }) => count > 0 || what === "done");
  const columns = Math.max(...rows.map(({ count }) => number(count).length));
  const words = Math.max(...rows.map(({ what }) => what.length));
  return rows.map(({ count, what, note }) =>
    `  ${number(count).padStart(columns)} ${what.padEnd(words)}  ${note}`.trimEnd(),
  );
}

function workersText(
  { ready, draining, suspected, failed, cordoned, revoked }: WorkerNumbers,
  line: HintedLine,
): string {
  const groups = [
    [ready, "ready"],
    [draining, "draining"],
    [suspected, "suspected"],
    [failed, "failed"],
    [revoked, "revoked"],
    [cordoned, `cordoned: \`${line("worker", "list")}\` says why`],
  ] as const;
  const shown = groups.filter(([count]) => count > 0).map(([count, word]) => `${number(count)} ${word}`);
  if (shown.length === 0) return `no workers: \`${line("worker", "run")}\` starts one`;
  return `workers: ${shown.join(", ")}`;
}

/** One line of how a fleet stands. */
export function fleetLine({
  name,
  state,
  want,
  joined,
  starting,
  queued,
  machineHours,
  cost,
  reason,
}: FleetSummary): string {
  const coming = starting + queued === 0 ? "" : `, ${starting + queued} on their way`;
  const money = cost === undefined ? "" : `, cost ${cost.toFixed(2)}`;
  const why = reason === "" ? "" : `: ${printable(reason)}`;
  return `fleet ${printable(name)}: ${state}, wants ${want}, ${joined} joined${coming}, ${machineHours.toFixed(2)} machine-hours${money}${why}`;
}
