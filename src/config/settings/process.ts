// Settings of the mock backend, and of what a process says of itself.
import { everybody, members, worker } from "./setting.ts";
import type { Setting } from "./setting.ts";

export const PROCESS_SETTINGS = {
  "mock.sleep": {
    kind: "duration",
    default: "0ms",
    min: "0ms",
    max: "1h",
    flag: "mock-sleep",
    roles: worker,
    doc: "How long the mock backend pretends to work on an item.",
  },
  "mock.distribution": {
    kind: "choice",
    choices: ["constant", "uniform", "exponential"],
    default: "constant",
    flag: "mock-distribution",
    roles: worker,
    doc: "How that time varies: not at all, between nothing and twice of it, or exponentially around it.",
  },
  "mock.failure_percent": {
    kind: "integer",
    default: 0,
    min: 0,
    max: 100,
    flag: "mock-failure-percent",
    roles: worker,
    doc: "How many of a hundred attempts the mock backend lets fail.",
  },
  "mock.journal": {
    kind: "path",
    flag: "mock-journal",
    roles: worker,
    doc: "A file to which the mock backend appends a line for each execution.",
  },

  "events.hide": {
    kind: "list",
    of: "topic",
    default: [],
    flag: "hide-events",
    roles: members,
    doc: "Topics that are left out of the event stream.",
  },
  "events.buffer": {
    kind: "size",
    default: "8MiB",
    min: "64KiB",
    max: "1GiB",
    flag: "events-buffer",
    roles: members,
    doc: "How much of the event stream waits in memory for a slow reader; what does not fit is counted and left out.",
  },

  "log.level": {
    kind: "choice",
    choices: ["debug", "info", "warn", "error"],
    default: "info",
    flag: "log-level",
    roles: everybody,
    doc: "The least level that is logged.",
  },
  "log.format": {
    kind: "choice",
    choices: ["auto", "human", "json"],
    default: "auto",
    flag: "log-format",
    roles: everybody,
    doc: "How log lines look; `auto` is `human` on a terminal and `json` elsewhere.",
  },
} as const satisfies Record<string, Setting>;
