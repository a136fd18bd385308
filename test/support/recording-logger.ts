// Keeps what was logged, for tests to look at.
import type { LogFields, Logger } from "../../src/observe/log.ts";

interface LoggedLine {
  readonly level: "debug" | "info" | "warn" | "error";
  readonly message: string;
  readonly fields: LogFields;
}

export class RecordingLogger implements Logger {
  readonly lines: LoggedLine[];
  readonly #common: LogFields;

  constructor(lines: LoggedLine[] = [], common: LogFields = {}) {
    this.lines = lines;
    this.#common = common;
  }

  debug(message: string, fields?: LogFields): void {
    this.#keep("debug", message, fields);
  }

  info(message: string, fields?: LogFields): void {
    this.#keep("info", message, fields);
  }

  warn(message: string, fields?: LogFields): void {
    this.#keep("warn", message, fields);
  }

  error(message: string, fields?: LogFields): void {
    this.#keep("error", message, fields);
  }

  child(fields: LogFields): Logger {
    return new RecordingLogger(this.lines, { ...this.#common, ...fields });
  }

  #keep(level: LoggedLine["level"], message: string, fields: LogFields = {}): void {
    this.lines.push({ level, message, fields: { ...this.#common, ...fields } });
  }
}
