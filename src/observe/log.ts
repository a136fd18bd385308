// Logs: what a person needs to know of what the program does, on standard error. winston keeps the levels; the lines are
// made in log-line.ts and leave through a bounded output, because winston alone holds all that a stuck reader does
// not take, and loses at the end what has not left.
import { Writable } from "node:stream";
import type { Clock } from "../base/clock.ts";
import winston from "winston";
import type { LogFields } from "./log-fields.ts";
import { formatLogLine } from "./log-line.ts";
import type { LineStyle, LogLevel, LogRecord } from "./log-line.ts";
import { LineOutput } from "./line-output.ts";

export type { LogFields } from "./log-fields.ts";

/** Says what happens. Total: never throws, never waits. `err` holds an error; secrets are left out. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  /** The same log, with `fields` on every line. */
  child(fields: LogFields): Logger;
}

export interface LogSink {
  readonly logger: Logger;
  /** Resolves when every line has left, or after a second. Idempotent. Later lines are ignored. */
  close(): Promise<void>;
}

export interface LogOptions {
  readonly stream: Writable;
  readonly clock: Clock;
  readonly level: LogLevel;
  readonly format: "human" | "json";
  readonly colour: boolean;
  readonly limitBytes: number;
}

const LEVELS = { error: 0, warn: 1, info: 2, debug: 3 } as const satisfies Record<LogLevel, number>;
const CLOSE_DEADLINE_MS = 1_000;

/** Logs nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

/** A log on `stream`. The caller closes it before the process ends. */
export function createLog(options: LogOptions): LogSink {
  const style: LineStyle = { ...options, withStack: options.level === "debug" };
  const lineOf = (record: Omit<LogRecord, "wallMs">): string =>
    formatLogLine({ ...record, wallMs: options.clock.wallMs() }, style);
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

type WriteRecord = (level: LogLevel, message: string, fields: LogFields) => void;

function loggerOver(write: WriteRecord, common: LogFields): Logger {
  const at =
    (level: LogLevel) =>
    (message: string, fields?: LogFields): void =>
      write(level, message, { ...common, ...fields });
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    child: (fields) => loggerOver(write, { ...common, ...fields }),
  };
}
