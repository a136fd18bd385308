// Events and logs of the processes of a simulated cluster, as lines of its trace.
import { describeError } from "../../src/base/errors.ts";
import type { EventEmitter } from "../../src/observe/events.ts";
import type { LogFields, Logger } from "../../src/observe/log.ts";
import type { SimProcess } from "./process.ts";

/** `heard`: told of each event that leaves. */
export function eventsOf(
  process: SimProcess,
  heard: (topic: string, payload: object) => void = () => undefined,
): EventEmitter {
  return {
    emit: (topic, payload) => {
      if (process.isAlive) heard(topic, payload);
      if (topic !== "worker_heartbeat" && process.isAlive) process.say(`${topic} ${JSON.stringify(payload)}`);
    },
  };
}

export function logOf(process: SimProcess): Logger {
  const say = (level: string, message: string, fields: LogFields = {}): void => {
    if (!process.isAlive) return;
    const { err, ...rest } = fields;
    const why = err === undefined ? "" : ` (${describeError(err)})`;
    process.say(`${level}: ${message} ${JSON.stringify(rest)}${why}`);
  };
  const logger: Logger = {
    debug: () => {},
    info: (message, fields) => {
      if (message === "transition") say("info", message, fields);
    },
    warn: (message, fields) => say("warn", message, fields),
    error: (message, fields) => say("error", message, fields),
    child: () => logger,
  };
  return logger;
}
