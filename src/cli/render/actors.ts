// Actors for a terminal.
import { printable } from "../../base/safe-text.ts";
import type { Key } from "../../client/keys.ts";
import type { HintedLine } from "../shell-words.ts";
import { parkedSentences } from "./keys.ts";
import { counted, durationText, number, renderAge } from "./quantities.ts";
import { renderTable } from "./table.ts";

/** One line of the list. */
export interface ActorLine {
  readonly key: string;
  readonly value: string;
  readonly status: string;
  readonly tags: readonly string[];
  readonly events: number;
  readonly pending: number;
  /** Why it is parked; empty when it is not. */
  readonly why: string;
}

export function actorsText(actors: readonly ActorLine[], isSome: boolean, line: HintedLine): string {
  if (actors.length === 0)
    return isSome
      ? "No actor matches.\n"
      : `No actors yet: \`${line("actor", "send")}\` makes one by its first event.\n`;
  return renderTable<ActorLine>(
    [
      { title: "actor", value: ({ key }) => key },
      { title: "state", value: ({ value }) => value },
      { title: "status", value: ({ status }) => status },
      { title: "tags", value: ({ tags }) => tags.join(" ") },
      { title: "events", value: ({ events }) => String(events), align: "right" },
      { title: "waiting", value: ({ pending }) => String(pending), align: "right" },
      { title: "why parked", value: ({ why }) => why },
    ],
    actors,
  );
}

/** One line of the history. */
export interface EventLine {
  readonly event: { readonly type: string };
  readonly value: string;
  readonly status: string;
  readonly atMs: number;
  readonly item: string;
  /** Undefined for one that was submitted. */
  readonly from: string | undefined;
}

export function historyText(actor: string, events: readonly EventLine[], nowMs: number): string {
  if (events.length === 0) return `No event of actor ${printable(actor)} has succeeded yet.\n`;
  return renderTable<EventLine>(
    [
      { title: "when", value: ({ atMs }) => renderAge(nowMs - atMs) },
      { title: "event", value: ({ event }) => event.type },
      { title: "from", value: ({ from = "-" }) => from },
      {
        title: "state after",
        value: ({ value, status }) => (status === "active" ? value : `${value} (${status})`),
      },
      { title: "item", value: ({ item }) => item.slice(0, 12) },
    ],
    events,
  );
}

/** A timer that is armed. */
export interface TimerLine {
  readonly id: string;
  readonly dueAtMs: number;
  readonly event: Uint8Array;
  /** The actor that is told; undefined: the one that has set it. */
  readonly to: string | undefined;
}

export function timersText(actor: string, timers: readonly TimerLine[], nowMs: number): string {
  if (timers.length === 0) return `Actor ${printable(actor)} waits for no timer.\n`;
  return renderTable<TimerLine>(
    [
      { title: "due", value: ({ dueAtMs }) => dueText(dueAtMs, nowMs) },
      { title: "timer", value: ({ id }) => id },
      { title: "event", value: ({ event }) => Buffer.from(event).toString("utf8") },
      { title: "to", value: ({ to = "itself" }) => to },
    ],
    timers,
  );
}

/** The part of what an actor has asked for that people are shown. */
export interface AskedLine {
  readonly timers: readonly Pick<TimerLine, "id" | "dueAtMs">[];
  readonly invocations: readonly { readonly id: string; readonly source: string; readonly item: string }[];
  readonly children: readonly string[];
  /** Named actions that are not done; undefined when there are none. */
  readonly actions: number | undefined;
  readonly actionsError: { readonly class: string; readonly message: string } | undefined;
  readonly retiresAtMs: number | undefined;
  readonly parent: string | undefined;
}

/** The named actions of an actor that are not done, and what is to be done about one that has failed. */
function actionSentences(
  {
    actions = 0,
    actionsError,
    actor,
  }: Pick<AskedLine, "actions" | "actionsError"> & { readonly actor: string },
  line: HintedLine,
): string[] {
  const some = actions === 1 ? "1 named action" : `${number(actions)} named actions`;
  if (actionsError === undefined)
    return actions === 0 ? [] : [`${some} of it ${actions === 1 ? "is" : "are"} not done.`];
  const why = `${printable(actionsError.class)}: ${printable(actionsError.message)}`;
  const behind = actions === 0 ? "" : `, and ${some} ${actions === 1 ? "waits" : "wait"} behind it`;
  return [
    `A named action of it has failed (${why})${behind}: \`${line("retry", "--failed")}\` tries it again, \`${line("actor", "skip", actor)}\` goes on without it.`,
  ];
}

/** Why an actor waits, of which no event waits: a sentence for each reason. */
export function waitSentences(
  actor: string,
  { timers, invocations, children, actions, actionsError, retiresAtMs, parent }: AskedLine,
  line: HintedLine,
  nowMs: number,
): string[] {
  const inOrder = timers.toSorted((one, other) => one.dueAtMs - other.dueAtMs);
  return [
    ...inOrder.map(
      ({ id, dueAtMs }) => `It waits for timer ${printable(id)}, due ${dueText(dueAtMs, nowMs)}.`,
    ),
    ...invocations.map(({ id, source, item }) => {
      if (item === "")
        return `${printable(source)}, which it has invoked as ${printable(id)}, has ended: that waits in its mail.`;
      const explained = line("explain", item.slice(0, 12));
      return `It waits for ${printable(source)}, which it has invoked as ${printable(id)}: \`${explained}\` says how that is.`;
    }),
    ...children.map((child) => `It has started ${printable(child)}: \`${line("actor", "get", child)}\``),
    ...(parent === undefined ? [] : [`${printable(parent)} has started it.`]),
    ...actionSentences({ actions, actionsError, actor }, line),
    ...(retiresAtMs === undefined ? [] : [`It is final, and is forgotten ${dueText(retiresAtMs, nowMs)}.`]),
  ];
}

/** All actors of one type. */
export interface BoardLines {
  readonly states: readonly { readonly value: string; readonly actors: number; readonly final: number }[];
  readonly moved: readonly { readonly key: string; readonly value: string; readonly events: number }[];
  readonly parked: readonly Key[];
}

export function boardText(type: string, { states, moved, parked }: BoardLines, line: HintedLine): string {
  if (states.length === 0 && parked.length === 0)
    return `No actor of type ${printable(type)} yet: \`${line("actor", "send", `${type}/ID`)}\` makes one by its first event.\n`;
  const table = renderTable(
    [
      { title: printable(type), value: ({ value }: BoardLines["states"][number]) => value },
      { title: "actors", value: ({ actors }) => String(actors), align: "right" },
      { title: "final", value: ({ final }) => String(final), align: "right" },
    ],
    states,
  );
  const kept = parked.flatMap((key) => [
    printable(key.key),
    ...parkedSentences(key, line, "actor").map((why) => `  ${why}`),
  ]);
  const last = moved.map(
    ({ key, value, events }) => `${printable(key)} is ${printable(value)} after ${counted(events, "event")}`,
  );
  return [table, ...[...kept, ...last].map((text) => `${text}\n`)].join("");
}

/**
 * "in 3m 05s", or "now".
 * @internal
 */
export function dueText(dueAtMs: number, nowMs: number): string {
  const leftMs = dueAtMs - nowMs;
  return leftMs < 1_000 ? "now" : `in ${durationText(leftMs)}`;
}

/** Actors of one type in one state, among those that other code was tried on. */
export interface CheckedLine {
  readonly type: string;
  /** Empty for actors that have no state yet. */
  readonly value: string;
  readonly actors: number;
  readonly parks: number;
}

const SHOWN_MAX = 20;

export function checkText(
  groups: readonly CheckedLine[],
  parks: readonly { readonly key: string; readonly reason: string }[],
): string {
  const actors = groups.reduce((sum, group) => sum + group.actors, 0);
  if (actors === 0) return "The run has no actors: there is nothing to try this code on.\n";
  const table = renderTable<CheckedLine>(
    [
      { title: "type", value: ({ type }) => type },
      { title: "state", value: ({ value }) => (value === "" ? "(none yet)" : value) },
      { title: "actors", value: (group) => String(group.actors), align: "right" },
      { title: "would park", value: (group) => String(group.parks), align: "right" },
    ],
    groups,
  );
  if (parks.length === 0) return `${table}All ${number(actors)} go on with this code.\n`;
  const shown = parks
    .slice(0, SHOWN_MAX)
    .map(({ key, reason }) => `${printable(key)}: ${printable(reason)}\n`);
  const rest = parks.length - shown.length;
  const more = rest > 0 ? [`and ${number(rest)} more, all of them with --json\n`] : [];
  return [table, `${number(parks.length)} of ${number(actors)} would park:\n`, ...shown, ...more].join("");
}
