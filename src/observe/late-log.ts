// A log that is opened by its first line, for a command that asks something and ends, and hardly ever has one: what writes it is not
// loaded before.
import { LEVELS, loggerOver } from "./log.ts";
import type { LogOptions, LogSink, WriteRecord } from "./log.ts";

/** Lines that wait while the log is opened; later ones are left out. */
const WAITING_MAX = 1_024;

/** The caller closes it before the process ends. */
export function createLateLog(options: LogOptions): LogSink {
  let opened: Promise<LogSink> | undefined;
  let sink: LogSink | undefined;
  let waiting = 0;
  const open = async (): Promise<LogSink> => {
    const { createLog } = await import("./winston-log.ts");
    return (sink = createLog(options));
  };
  const write: WriteRecord = (level, message, fields) => {
    if (LEVELS[level] > LEVELS[options.level]) return;
    if (sink !== undefined) return sink.logger[level](message, fields);
    if (waiting++ >= WAITING_MAX) return;
    void (opened ??= open()).then(({ logger }) => logger[level](message, fields));
  };
  return { logger: loggerOver(write, {}), close: async () => (await opened)?.close() };
}
