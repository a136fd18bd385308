// Actors for a terminal.
import { printable } from "../../base/safe-text.ts";
import type { HintedLine } from "../shell-words.ts";
import { number } from "./quantities.ts";
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
      ? "No actor is like that.\n"
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
