import { key } from "../../machines/key.ts";
import { ignored, testChartTable } from "./chart-table.ts";

const idle = { mail: 0, isPaused: false, hasFailed: false, isDelayed: false };
const one = { ...idle, mail: 1 };
const two = { ...idle, mail: 2 };

/** Nothing of it is with a worker, so no end of an attempt is about it. */
const notRunning = ignored("item.settled", "item.failed", "item.returned", "item.delayed");
const notParked = ignored("item.retried", "key.skipped");

describe("the chart of a key", () => {
  testChartTable({
    machine: key,
    begins: "Idle; mail = 0, isPaused = false, hasFailed = false, isDelayed = false",
    compiles: true,
    events: {
      "mail.arrived": { type: "mail.arrived" },
      "key.assigned": { type: "key.assigned" },
      "item.settled": { type: "item.settled" },
      "item.failed": { type: "item.failed" },
      "item.returned": { type: "item.returned" },
      "item.delayed": { type: "item.delayed" },
      "item.due": { type: "item.due" },
      "item.retried": { type: "item.retried" },
      "key.paused": { type: "key.paused" },
      "key.resumed": { type: "key.resumed" },
      "key.skipped": { type: "key.skipped" },
      "key.retired": { type: "key.retired" },
    },
    rows: {
      Idle: {
        context: idle,
        cells: {
          "mail.arrived": "Waiting; mail = 1",
          "key.paused": "Parked; isPaused = true",
          "key.retired": "Retired",
          ...notRunning,
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.resumed"),
        },
      },
      Waiting: {
        context: one,
        cells: {
          "mail.arrived": "Waiting; mail = 2",
          "key.assigned": "Running",
          "item.settled": "Idle; mail = 0",
          "key.paused": "Parked; isPaused = true",
          ...ignored("item.failed", "item.returned", "item.delayed"),
          ...notParked,
          ...ignored("item.due", "key.resumed", "key.retired"),
        },
      },
      "Waiting, more behind it": {
        state: "Waiting",
        context: two,
        cells: {
          "mail.arrived": "Waiting; mail = 3",
          "key.assigned": "Running",
          "item.settled": "Waiting; mail = 1",
          "key.paused": "Parked; isPaused = true",
          ...ignored("item.failed", "item.returned", "item.delayed"),
          ...notParked,
          ...ignored("item.due", "key.resumed", "key.retired"),
        },
      },
      Running: {
        context: one,
        cells: {
          "mail.arrived": "Running; mail = 2",
          "item.settled": "Idle; mail = 0",
          "item.failed": "Parked; mail = 0, hasFailed = true",
          "item.returned": "Waiting",
          "item.delayed": "Delayed; isDelayed = true",
          "key.paused": "Running; isPaused = true",
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.resumed", "key.retired"),
        },
      },
      "Running, more behind it": {
        state: "Running",
        context: two,
        cells: {
          "mail.arrived": "Running; mail = 3",
          "item.settled": "Waiting; mail = 1",
          "item.failed": "Parked; mail = 1, hasFailed = true",
          "item.returned": "Waiting",
          "item.delayed": "Delayed; isDelayed = true",
          "key.paused": "Running; isPaused = true",
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.resumed", "key.retired"),
        },
      },
      "Running, to be paused": {
        state: "Running",
        context: { ...two, isPaused: true },
        cells: {
          "mail.arrived": "Running; mail = 3",
          "item.settled": "Parked; mail = 1",
          "item.failed": "Parked; mail = 1, hasFailed = true",
          "item.returned": "Parked",
          "item.delayed": "Parked; isDelayed = true",
          "key.resumed": "Running; isPaused = false",
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.paused", "key.retired"),
        },
      },
      Delayed: {
        context: { ...one, isDelayed: true },
        cells: {
          "mail.arrived": "Delayed; mail = 2",
          "item.due": "Waiting; isDelayed = false",
          "key.paused": "Parked; isPaused = true",
          ...notRunning,
          ...notParked,
          ...ignored("key.assigned", "key.resumed", "key.retired"),
        },
      },
      "Parked, paused": {
        state: "Parked",
        context: { ...one, isPaused: true },
        cells: {
          "mail.arrived": "Parked; mail = 2",
          "key.resumed": "Waiting; isPaused = false",
          ...notRunning,
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.paused", "key.retired"),
        },
      },
      "Parked, paused while idle": {
        state: "Parked",
        context: { ...idle, isPaused: true },
        cells: {
          "mail.arrived": "Parked; mail = 1",
          "key.resumed": "Idle; isPaused = false",
          ...notRunning,
          ...notParked,
          ...ignored("key.assigned", "item.due", "key.paused", "key.retired"),
        },
      },
      "Parked, paused while its head waits": {
        state: "Parked",
        context: { ...one, isPaused: true, isDelayed: true },
        cells: {
          "mail.arrived": "Parked; mail = 2",
          "item.due": "Parked; isDelayed = false",
          "key.resumed": "Delayed; isPaused = false",
          ...notRunning,
          ...notParked,
          ...ignored("key.assigned", "key.paused", "key.retired"),
        },
      },
      "Parked, its head has failed": {
        state: "Parked",
        context: { ...idle, hasFailed: true },
        cells: {
          "mail.arrived": "Parked; mail = 1",
          "item.retried": "Waiting; mail = 1, hasFailed = false",
          "key.skipped": "Idle; hasFailed = false",
          "key.paused": "Parked; isPaused = true",
          ...notRunning,
          ...ignored("key.assigned", "item.due", "key.resumed", "key.retired"),
        },
      },
      "Parked, its head has failed before others": {
        state: "Parked",
        context: { ...one, hasFailed: true },
        cells: {
          "mail.arrived": "Parked; mail = 2",
          "item.retried": "Waiting; mail = 2, hasFailed = false",
          "key.skipped": "Waiting; hasFailed = false",
          "key.paused": "Parked; isPaused = true",
          ...notRunning,
          ...ignored("key.assigned", "item.due", "key.resumed", "key.retired"),
        },
      },
      "Parked, its head has failed, and paused": {
        state: "Parked",
        context: { ...one, hasFailed: true, isPaused: true },
        cells: {
          "mail.arrived": "Parked; mail = 2",
          "item.retried": "Parked; mail = 2, hasFailed = false",
          "key.skipped": "Parked; hasFailed = false",
          ...notRunning,
          ...ignored("key.assigned", "item.due", "key.paused", "key.resumed", "key.retired"),
        },
      },
      Retired: {
        context: idle,
        cells: {
          ...notRunning,
          ...notParked,
          ...ignored("mail.arrived", "key.assigned", "item.due", "key.paused", "key.resumed", "key.retired"),
        },
      },
    },
  });
});
