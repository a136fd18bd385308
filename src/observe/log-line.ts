// How a log line looks: for a person at a terminal, or as JSON for everything else. Always one line.
import { isoTime } from "../base/clock.ts";
import { printable } from "../base/safe-text.ts";
import { safeFields, safeText } from "./log-fields.ts";
import type { LogFields } from "./log-fields.ts";

export type LogLevel = "debug" | "info" | "warn" | "error";

export interface LogRecord {
  readonly wallMs: number;
  readonly level: LogLevel;
  readonly message: string;
  readonly fields: LogFields;
}

export interface LineStyle {
  readonly format: "human" | "json";
  /** Only for `human`. */
  readonly colour: boolean;
  readonly withStack: boolean;
}

const COLOUR_OF_LEVEL = { debug: 90, info: 36, warn: 33, error: 31 } as const satisfies Record<
  LogLevel,
  number
>;
const DIM = 2;
const LEVEL_COLUMNS = 5;

/** The record as one line, without its ending. */
export function formatLogLine(record: LogRecord, style: LineStyle): string {
  return style.format === "json" ? jsonLine(record, style) : humanLine(record, style);
}

function jsonLine(record: LogRecord, style: LineStyle): string {
  const head = { ts: isoTime(record.wallMs), level: record.level, message: safeText(record.message) };
  // Head again at the end: no field can stand in for it, and it still comes first.
  // The same values, spelled so that a terminal that is shown the line obeys nothing of it.
  return printable(JSON.stringify({ ...head, ...safeFields(record.fields, style.withStack), ...head }));
}

function humanLine(record: LogRecord, style: LineStyle): string {
  const paint = (code: number, text: string): string =>
    style.colour ? `\u001b[${code}m${text}\u001b[0m` : text;
  const time = isoTime(record.wallMs).slice("2026-01-01T".length);
  const parts = [
    paint(DIM, time),
    paint(COLOUR_OF_LEVEL[record.level], record.level.padEnd(LEVEL_COLUMNS)),
    printable(safeText(record.message)),
  ];
  for (const [name, value] of Object.entries(safeFields(record.fields, style.withStack))) {
    const text = typeof value === "string" ? value : JSON.stringify(value);
    const shown = /^[^\s"=]+$/.test(text) ? printable(text) : JSON.stringify(printable(text));
    parts.push(`${paint(DIM, `${printable(name)}=`)}${shown}`);
  }
  return parts.join(" ");
}
