// Keys for a terminal: a table of them, and one in sentences.
import { printable } from "../../base/safe-text.ts";
import type { Key } from "../../client/keys.ts";
import type { HintedLine } from "../shell-words.ts";
import { number } from "./quantities.ts";
import { renderTable } from "./table.ts";

/** The table, or a sentence when there is none to show. `isSome`: only keys in some states were asked for. */
export function keysText(keys: readonly Key[], isSome: boolean, line: HintedLine): string {
  if (keys.length === 0)
    return isSome
      ? "No key matches.\n"
      : `No keys yet: \`${line("submit")}\` with --key-field gives items some.\n`;
  const table = renderTable<Key>(
    [
      { title: "key", value: ({ key, ofActions }) => (ofActions ? `${key} (actions)` : key) },
      { title: "state", value: ({ phase }) => phase },
      { title: "items", value: ({ items }) => String(items), align: "right" },
      { title: "partition", value: ({ partition }) => String(partition), align: "right" },
      { title: "next item", value: ({ head }) => head?.slice(0, 12) ?? "-" },
      { title: "worker", value: ({ worker }) => worker ?? "-" },
      { title: "why", value: whyText },
    ],
    keys,
  );
  const isFailed = keys.some(({ parkedBy }) => parkedBy === "failed");
  const isPaused = keys.some(({ parkedBy }) => parkedBy === "paused");
  const notes = [
    ...(isFailed
      ? [
          `\`${line("retry", "ITEM")}\` tries a failed item again, \`${line("key", "skip", "KEY")}\` goes on without it.`,
        ]
      : []),
    ...(isPaused ? [`\`${line("key", "resume", "KEY")}\` lets a paused key go on.`] : []),
  ];
  return `${table}${notes.map((note) => `${note}\n`).join("")}`;
}

/** Its lines under a head; ends with a line ending. */
export function keyText(key: Key, line: HintedLine): string {
  const sentences = keySentences(key, line, "key");
  return `key ${printable(key.key)}\n${sentences.map((sentence) => `  ${sentence}\n`).join("")}`;
}

/** How it stands. The commands for what is to be done about it are those of `noun`. */
export function keySentences(key: Key, line: HintedLine, noun: "key" | "actor"): string[] {
  return [
    phaseSentence(key),
    ...parkedSentences(key, line, noun),
    key.stateBytes === undefined
      ? "It has no state."
      : `Its state has ${number(key.stateBytes)} bytes: \`${line("key", "get", key.key, "--state")}\` prints it.`,
    `It is in partition ${key.partition}${key.owner === undefined ? "" : `, which worker ${key.owner} owns`}.`,
  ];
}

function phaseSentence({ phase, items, head, worker }: Key): string {
  const next = head === undefined ? "" : ` Item ${head.slice(0, 12)} is next.`;
  const wait = items === 1 ? "1 item waits." : `${number(items)} items wait.`;
  switch (phase) {
    case "idle":
      return "It is idle: no item waits.";
    case "waiting":
      return `${wait}${next}`;
    case "delayed":
      return `${wait}${next} It waits before its next attempt, because the last one did not succeed.`;
    case "running":
      return `Item ${head?.slice(0, 12) ?? ""} is with worker ${worker ?? "unknown"}; ${behindText(items - 1)}.`;
    case "parked":
      return `It is parked: none of its items starts. ${wait}`;
    case "unknown":
      return "It is in a state that this version of rollout does not know.";
  }
}

function behindText(items: number): string {
  if (items <= 0) return "none waits behind it";
  return items === 1 ? "1 waits behind it" : `${number(items)} wait behind it`;
}

/** The reason why nothing of it starts, and the remedy; none unless it is parked. */
export function parkedSentences(
  { parkedBy, head, error, key, ofActions }: Key,
  line: HintedLine,
  noun: "key" | "actor",
): string[] {
  if (parkedBy === "paused")
    return [`An operator has paused it: \`${line(noun, "resume", key)}\` lets it go on.`];
  if (parkedBy !== "failed" || head === undefined) return [];
  const why = error === undefined ? "" : ` (${printable(error.class)}: ${printable(error.message)})`;
  return [
    `${ofActions ? "A named action of it, item" : "Item"} ${head.slice(0, 12)}${ofActions ? "," : ""} has failed${why}: \`${line("retry", head.slice(0, 12))}\` tries it again, \`${line(noun, "skip", key)}\` goes on without it.`,
  ];
}

function whyText({ parkedBy, error }: Key): string {
  if (parkedBy === "failed" && error !== undefined) return `${error.class}: ${error.message}`;
  return parkedBy ?? "";
}
