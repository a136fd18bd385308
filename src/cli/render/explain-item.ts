// Why an item is where it is, in sentences. Pure: what is known of the item, the run and the workers comes in.
import { isoTime } from "../../base/clock.ts";
import { printable } from "../../base/safe-text.ts";
import type { EndedAttempt, Item } from "../../client/items.ts";
import { isReleaseOver } from "../../client/releases.ts";
import type { WorkerSummary } from "../../client/workers.ts";
import type { RunStatus } from "../../client/run-status.ts";
import type { HintedLine } from "../shell-words.ts";
import { momentText, number, spanText } from "./quantities.ts";
import { releaseLine } from "./release.ts";
import { renderTable } from "./table.ts";
import { canExecute, lackText, workerWord } from "./workers.ts";

export interface ItemSituation {
  readonly item: Item;
  readonly run: RunStatus;
  readonly workers: readonly WorkerSummary[];
  /** Wall clock. */
  readonly nowMs: number;
  readonly line: HintedLine;
}

/** How many items are counted that go before one. */
const AHEAD_KNOWN = 10_000;
const UNCHARGED: ReadonlySet<string> = new Set([
  "preempted",
  "stolen",
  "fenced",
  "cancelled",
  "crash_shared",
]);

export function itemSentences(situation: ItemSituation): string[] {
  return [...whereSentences(situation), ...historySentences(situation.item)];
}

/** The sentences under a head, and a table of attempts; ends with a line ending. */
export function itemText(situation: ItemSituation): string {
  const { item } = situation;
  const named = item.id === undefined ? "" : `, and "${printable(item.id)}" in the input`;
  const priority = item.priority === 0 ? "" : `, priority ${item.priority}`;
  const place = `It is number ${number(item.sequence + 1)} of the run${named}${priority}.`;
  const isOfLane = item.origin?.kind === "invocation" || item.origin?.kind === "action";
  const key = item.key === undefined || isOfLane ? [] : [`Its key is ${printable(item.key)}.`];
  const sentences = [place, ...key, ...originSentences(situation), ...itemSentences(situation)].map(
    (sentence) => `  ${sentence}`,
  );
  const attempts = item.attempts.length === 0 ? "" : `\n${attemptsTable(item.attempts)}`;
  return `${[`item ${item.item}`, ...sentences].join("\n")}\n${attempts}`;
}

/** The actor that has made it, for an item that nobody submitted. */
function originSentences({ item: { origin, key = "" }, line }: ItemSituation): string[] {
  if (origin === undefined) return [];
  const { kind, actor = "", id = "", source = "", type = "" } = origin;
  const [by, own, named] = [printable(actor), printable(key), printable(id)];
  const look = (whose: string): string => `\`${line("actor", "get", whose)}\` says where that is.`;
  switch (kind) {
    case "mail":
      return [`${by} has sent it to ${own}: ${look(actor)}`];
    case "timer":
      return [`It is timer ${named} of ${own}, which was due.`];
    case "outcome":
      return [`It is the end of ${named}, which ${own} has started.`];
    case "failure":
      return [`It is the failure of ${named}, which ${own} has started.`];
    case "start":
      return [`It begins ${own}, which ${by} has started as ${named} (${printable(source)}): ${look(actor)}`];
    case "invocation":
      return [`${by} has invoked it as ${named} (${printable(source)}), and waits for it: ${look(actor)}`];
    case "action":
      return [`It is action ${printable(type)} of ${by}: ${look(actor)}`];
    case "unknown":
      return ["Another item has made it, in a way that this version of rollout does not know."];
  }
}

function whereSentences(situation: ItemSituation): string[] {
  const { item, nowMs } = situation;
  const isWaiting = item.state === "fresh" || item.state === "returned" || item.state === "delayed";
  if (isWaiting && situation.run.state === "cancelled") {
    return ["It never ran: the run was cancelled while it waited."];
  }
  switch (item.state) {
    case "fresh":
      return ["It is waiting: no worker has had it yet.", ...waitingSentences(situation)];
    case "returned":
      return [`It is waiting to be assigned again${returnedWhy(item)}.`, ...waitingSentences(situation)];
    case "delayed": {
      const dueInMs = Math.max(0, (item.dueAtMs ?? nowMs) - nowMs);
      return [
        `Attempt ${item.attempt} did not succeed, so it waits ${spanText(dueInMs)} more before it can be assigned again.`,
        ...pausedSentence(situation),
      ];
    }
    case "running":
      return runningSentences(situation);
    case "done":
    case "failed":
      return finalSentences(situation);
    case "unknown":
      return ["It is in a state that this version of rollout does not know."];
  }
}

function returnedWhy({ attempts }: Item): string {
  const last = attempts.at(-1);
  return last === undefined ? "" : `: attempt ${last.attempt} ended as ${last.outcome}`;
}

function pausedSentence({ run: { state, pauseReason }, line }: ItemSituation): string[] {
  if (state !== "paused") return [];
  const why = pauseReason === undefined || pauseReason === "" ? "" : ` (${printable(pauseReason)})`;
  return [`The run is paused${why}: nothing is assigned until \`${line("resume")}\`.`];
}

function waitingSentences(situation: ItemSituation): string[] {
  const { item, workers } = situation;
  if (item.key !== undefined && (item.aheadInKey ?? 0) > 0)
    return [...pausedSentence(situation), ...behindSentences(situation, item.key)];
  return [
    ...pausedSentence(situation),
    ...keySentences(situation),
    aheadSentence(item.ahead),
    ...(item.alone ? ["It is isolated, so it waits for a worker that has no other item."] : []),
    workersSentence(situation),
    ...leftSentences(workers),
    ...releaseSentence(situation.run),
  ];
}

/** It may be tried. */
function releaseSentence({ release }: RunStatus): string[] {
  return release === undefined || isReleaseOver(release) ? [] : [`Under way is a ${releaseLine(release)}.`];
}

/** Its key lets it wait, whatever workers there are. */
function behindSentences({ item, line }: ItemSituation, key: string): string[] {
  const { aheadInKey = 0, keyHead, keyPhase } = item;
  const shown = printable(key);
  const first = keyHead === undefined ? "" : `, and ${keyHead.slice(0, 12)} is the next of them`;
  const who = aheadInKey === 1 ? "1 item of its key goes" : `${number(aheadInKey)} items of its key go`;
  const sentence = `${who} first${first}: items of ${shown} run one at a time, in order.`;
  if (keyPhase !== "parked") return [sentence];
  return [sentence, `Its key is parked: \`${line("key", "get", key)}\` says why.`];
}

function keySentences({ item: { key, keyPhase }, line }: ItemSituation): string[] {
  if (key === undefined) return [];
  if (keyPhase === "parked") return [`Its key is parked: \`${line("key", "get", key)}\` says why.`];
  return [`It is the next item of its key, ${printable(key)}.`];
}

/** Names workers that have left because they could not execute anything, while nobody else is there. */
function leftSentences(workers: readonly WorkerSummary[]): string[] {
  if (workers.some((worker) => workerWord(worker) === "ready")) return [];
  return workers.flatMap((worker) => {
    if (workerWord(worker) !== "gone" || worker.trouble === undefined) return [];
    return [`Worker ${worker.workerId} left because ${printable(worker.trouble)}.`];
  });
}

function aheadSentence(ahead: number | undefined): string {
  if (ahead === undefined) return `${number(AHEAD_KNOWN)} or more items are ahead of it.`;
  if (ahead === 0) return "No item is ahead of it.";
  return ahead === 1 ? "1 item is ahead of it." : `${number(ahead)} items are ahead of it.`;
}

function workersSentence({ run: { task }, workers, line }: ItemSituation): string {
  const present = workers.filter(
    (worker) => !["gone", "removed", "failed", "revoked"].includes(workerWord(worker)),
  );
  if (present.length === 0) return `There is no worker: \`${line("worker", "run")}\` starts one.`;
  const plugin = task?.plugin ?? "";
  const able = present.filter((worker) => canExecute(worker, plugin));
  const unfit = present.find(({ unfitReason }) => unfitReason !== undefined);
  if (able.length === 0 && unfit !== undefined)
    return `${lackText("version", plugin)}: \`${line("explain", unfit.workerId)}\` says what to do.`;
  if (able.length === 0)
    return present.length === 1
      ? `The only worker does not have the plugin ${printable(plugin)}.`
      : `None of the ${present.length} workers has the plugin ${printable(plugin)}.`;
  const ready = able.filter((worker) => workerWord(worker) === "ready");
  if (ready.length === 0) return `No worker takes work: ${wordsOf(able)}.`;
  const isFull = ready.every(({ held, slots }) => held >= slots);
  const who =
    ready.length === 1 ? "The worker that can run it" : `All ${ready.length} workers that can run it`;
  if (isFull) return `${who} ${ready.length === 1 ? "is" : "are"} full.`;
  return `${ready.length === 1 ? "One worker" : `${ready.length} workers`} can run it.`;
}

/** "2 draining, 1 cordoned" */
function wordsOf(workers: readonly WorkerSummary[]): string {
  const counts = new Map<string, number>();
  for (const word of workers.map(workerWord)) counts.set(word, (counts.get(word) ?? 0) + 1);
  return [...counts].map(([word, count]) => `${count} ${word}`).join(", ");
}

function runningSentences({ item, workers, line }: ItemSituation): string[] {
  const { worker, attempt, assignedAgeMs, maxAttempts, charged } = item;
  const since = assignedAgeMs === undefined ? "" : `, for ${spanText(assignedAgeMs)}`;
  const row = workers.find(({ workerId }) => workerId === worker);
  const word = row === undefined ? undefined : workerWord(row);
  return [
    `Worker ${worker ?? "?"} has it${since}, as attempt ${attempt}; ${charged} of ${maxAttempts} allowed failures are used up.`,
    ...(word === undefined || word === "ready"
      ? []
      : [`That worker is ${word}: \`${line("explain", worker ?? "WORKER")}\`.`]),
    ...(row?.trouble === undefined ? [] : [`That worker reports a problem: ${printable(row.trouble)}.`]),
    ...(item.alone ? ["It is isolated: its worker has no other item."] : []),
  ];
}

function finalSentences({ item: found, nowMs, line }: ItemSituation): string[] {
  const { item, state, result, maxAttempts, charged } = found;
  if (result === undefined) return [`It is ${state}.`];
  const { error, attempt, worker, durationMs, finishedAtMs, pluginVersion } = result;
  const by = worker === undefined ? "" : ` on worker ${worker}`;
  const version = pluginVersion === undefined ? "" : `, plugin version ${printable(pluginVersion)}`;
  const took = durationMs === undefined ? "" : ` took ${spanText(durationMs)} and`;
  const when = `It${took} became final at ${momentText(finishedAtMs, nowMs)}.`;
  if (error === undefined) return [`It is done: attempt ${attempt} succeeded${by}${version}.`, when];
  const why = error.message === "" ? "" : `: ${printable(error.message)}`;
  const which = attempt === 0 ? "" : ` with attempt ${attempt}${by}${version}`;
  return [
    `It has failed as ${printable(error.class)}${which}${why}`,
    when,
    `${charged} of ${maxAttempts} allowed failures are used up. \`${line("retry", item.slice(0, 12))}\` runs it again.`,
  ];
}

function historySentences({ state, lost, maxLost, checkpointBytes, attempts }: Item): string[] {
  const uncharged = attempts.filter(({ outcome }) => UNCHARGED.has(outcome)).length;
  return [
    ...(lost === 0
      ? []
      : [
          `Its worker vanished ${times(lost)} while it ran; it fails when that has happened ${times(maxLost)}.`,
        ]),
    ...(uncharged === 0
      ? []
      : [`${uncharged} of its attempts ended for a reason that is not charged to it.`]),
    ...(checkpointBytes === 0 || state === "done"
      ? []
      : [`Its next attempt continues from a checkpoint of ${number(checkpointBytes)} bytes.`]),
  ];
}

function times(count: number): string {
  if (count === 1) return "once";
  return count === 2 ? "twice" : `${count} times`;
}

function attemptsTable(attempts: readonly EndedAttempt[]): string {
  return renderTable<EndedAttempt>(
    [
      { title: "attempt", value: ({ attempt }) => String(attempt), align: "right" },
      { title: "outcome", value: ({ outcome }) => outcome },
      { title: "worker", value: ({ worker }) => worker ?? "-" },
      { title: "ended", value: ({ endedAtMs }) => isoTime(endedAtMs) },
      {
        title: "took",
        value: ({ durationMs }) => (durationMs === undefined ? "-" : spanText(durationMs)),
        align: "right",
      },
      {
        title: "log",
        value: ({ logBytes }) => (logBytes === 0 ? "-" : `${number(logBytes)} B`),
        align: "right",
      },
      { title: "message", value: ({ message }) => message },
    ],
    attempts,
  );
}
