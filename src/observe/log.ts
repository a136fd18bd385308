// Logs: what a person needs to know of what the program does, as its parts say it. winston-log.ts writes it
// down, late-log.ts when there is something to write.
import type { Writable } from "node:stream";
import type { Clock } from "../base/clock.ts";

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

export type LogLevel = "debug" | "info" | "warn" | "error";

export type LogFields = Readonly<Record<string, unknown>>;

/** Which lines a level lets through: those of it and below. */
export const LEVELS = { error: 0, warn: 1, info: 2, debug: 3 } as const satisfies Record<LogLevel, number>;

/** Logs nothing. */
export const silentLogger: Logger = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLogger,
};

export type WriteRecord = (level: LogLevel, message: string, fields: LogFields) => void;

/** Says everything by `write`, with `common` on every line. */
export function loggerOver(write: WriteRecord, common: LogFields): Logger {
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
