// Results as a table for spreadsheets: RFC 4180, with a line of titles. A cell that a spreadsheet would take for a formula
// begins with an apostrophe, which it hides.
import { isoTime } from "../../base/clock.ts";
import type { Result } from "../../client/results.ts";
import { valueOf } from "./value.ts";

const COLUMNS = [
  "item",
  "id",
  "ok",
  "output",
  "attempt",
  "worker",
  "plugin_version",
  "started_at",
  "duration_ms",
  "finished_at",
  "error_class",
  "error_message",
] as const;
const ENDING = "\r\n";
const FORMULA = /^[=+\-@\t\r]/;
const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** The line of titles. */
export function csvHeader(withInput: boolean): string {
  return [...COLUMNS, ...(withInput ? ["input"] : [])].join(",") + ENDING;
}

export function csvLine(result: Result, withInput: boolean): string {
  const { startedAtMs, error } = result;
  const cells: Record<(typeof COLUMNS)[number], string> = {
    item: result.item,
    id: textCell(result.id ?? ""),
    ok: String(result.ok),
    output: result.ok ? textCell(textOf(result.output)) : "",
    attempt: String(result.attempt),
    worker: result.worker ?? "",
    plugin_version: textCell(result.pluginVersion ?? ""),
    started_at: startedAtMs === undefined ? "" : isoTime(startedAtMs),
    duration_ms: String(result.durationMs ?? ""),
    finished_at: isoTime(result.finishedAtMs),
    error_class: error?.class ?? "",
    error_message: textCell(error?.message ?? ""),
  };
  const input = withInput ? [textCell(textOf(result.input ?? new Uint8Array()))] : [];
  return [...COLUMNS.map((column) => cells[column]), ...input].join(",") + ENDING;
}

/** A text of JSON without its quotes and escapes, other JSON as it stands, and any other text as it is. */
function textOf(bytes: Uint8Array): string {
  const value = valueOf(bytes);
  switch (value.kind) {
    case "json":
      return value.text.startsWith('"') ? String(JSON.parse(value.text)) : value.text;
    case "text":
      return value.text;
    case "binary":
      return `base64:${value.base64}`;
  }
}

function textCell(text: string): string {
  const harmless = FORMULA.test(text) && !NUMBER.test(text) ? `'${text}` : text;
  return /[",\r\n]|^\s|\s$/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}
