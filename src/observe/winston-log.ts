// A log on standard error. winston keeps the levels; the lines are made here and leave through a bounded output, because winston alone
// holds all that a stuck reader does not take, and loses at the end what has not left.
import { Writable } from "node:stream";
import winston from "winston";
import { isoTime } from "../base/clock.ts";
import { LineOutput } from "./line-output.ts";
import { printable, REDACTED, redactSecrets } from "../base/safe-text.ts";
import { RolloutError, describeError, errnoOf } from "../base/errors.ts";
import { LEVELS, loggerOver } from "./log.ts";
import type { LogFields, LogLevel, LogOptions, LogSink } from "./log.ts";

const CLOSE_DEADLINE_MS = 1_000;

/** A log on `stream`. The caller closes it before the process ends. */
export function createLog(options: LogOptions): LogSink {
  const style: LineStyle = { ...options, withStack: options.level === "debug" };
  const format = style.format === "json" ? jsonLine : humanLine;
  const lineOf = (record: Omit<LogRecord, "wallMs">): string =>
    format({ ...record, wallMs: options.clock.wallMs() }, style);
  const output = new LineOutput({
    stream: options.stream,
    clock: options.clock,
    limitBytes: options.limitBytes,
    gapLine: (count) =>
      `${lineOf({ level: "warn", message: "log lines were dropped: nobody read them", fields: { count } })}\n`,
  });
  const sink = new Writable({
    decodeStrings: false,
    write(line, _encoding, done) {
      output.write(String(line));
      done();
    },
  });
  const backend = winston.createLogger({
    levels: LEVELS,
    level: options.level,
    format: winston.format.printf((info) => String(info["line"])),
    transports: [new winston.transports.Stream({ stream: sink, eol: "\n" })],
  });
  const write = (level: LogLevel, message: string, fields: LogFields): void => {
    if (closed !== undefined || !backend.isLevelEnabled(level)) return;
    backend.log({ level, message: "", line: lineOf({ level, message, fields }) });
  };
  let closed: Promise<void> | undefined;
  const close = async (): Promise<void> => {
    const transport = backend.transports[0];
    await new Promise<void>((resolve) => {
      if (transport === undefined) return resolve();
      transport.once("finish", resolve);
      backend.end();
    });
    await output.close(CLOSE_DEADLINE_MS);
  };
  return { logger: loggerOver(write, {}), close: () => (closed ??= close()) };
}

// How a log line looks: for a person at a terminal, or as JSON for everything else. Always one line.

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

// Fields of a log call, as they may be written. Only plain data passes; everything else is named by its kind, so that a key,
// a socket or a request that was logged by mistake shows nothing. Secrets are recognised by their name and by their look.

type Plain = string | number | boolean | null | readonly Plain[] | { readonly [key: string]: Plain };

const SECRET_NAME =
  /authorization|password|passwd|passphrase|secret|token|cookie|credential|private_?key|key_?pem|api_?key/i;
const DEPTH_MAX = 3;
const ENTRIES_MAX = 64;
const TEXT_MAX_CHARS = 4_096;

/** The fields as plain data without secrets. `withStack`: an error under `err` shows where it was thrown. */
function safeFields(fields: LogFields, withStack: boolean): Record<string, Plain> {
  const safe: Record<string, Plain> = {};
  for (const [name, value] of Object.entries(fields).slice(0, ENTRIES_MAX)) {
    if (value !== undefined) safe[name] = safeValue(name, value, DEPTH_MAX, withStack);
  }
  return safe;
}

/** A message or value as it may be written: no secrets, and not without end. */
function safeText(text: string): string {
  const redacted = redactSecrets(text);
  return redacted.length > TEXT_MAX_CHARS ? `${redacted.slice(0, TEXT_MAX_CHARS)}…` : redacted;
}

function safeValue(name: string, value: unknown, depthLeft: number, withStack: boolean): Plain {
  if (SECRET_NAME.test(name)) return REDACTED;
  switch (typeof value) {
    case "string":
      return safeText(value);
    case "number":
    case "boolean":
      return value;
    case "bigint":
      return value.toString();
    case "object":
      return value === null ? null : safeObject(value, depthLeft, withStack);
    default:
      return `[${typeof value}]`;
  }
}

function safeObject(value: object, depthLeft: number, withStack: boolean): Plain {
  if (value instanceof Error) return safeError(value, withStack);
  if (value instanceof Uint8Array) return `[${value.length} bytes]`;
  if (depthLeft === 0) return "[…]";
  if (Array.isArray(value)) {
    return value
      .slice(0, ENTRIES_MAX)
      .map((entry: unknown) => safeValue("", entry, depthLeft - 1, withStack));
  }
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return `[${value.constructor.name}]`;
  const safe: Record<string, Plain> = {};
  for (const [name, entry] of Object.entries(value).slice(0, ENTRIES_MAX)) {
    if (entry !== undefined) safe[name] = safeValue(name, entry, depthLeft - 1, withStack);
  }
  return safe;
}

function safeError(error: Error, withStack: boolean): Plain {
  const code = error instanceof RolloutError ? error.code : (errnoOf(error) ?? error.name);
  const line = `${code}: ${safeText(describeError(error))}`;
  return withStack && error.stack !== undefined ? { error: line, stack: safeText(error.stack) } : line;
}
